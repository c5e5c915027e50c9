"""A primary with a synchronous standby, set up by the scripts that ship: what is committed is on both, and a failover
loses nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from svc.kernel.store.postgresql.connection.url import StoreUrl, store_url
from svc.world import elapsed_s, pause
from tests.support.postgresql import USER, Cluster

SCRIPTS = Path(__file__).parents[2] / "ops" / "postgresql"
_SETTINGS = ("synchronous_commit=remote_apply", "wal_retrieve_retry_interval=100ms")


def _allow_replication(primary: Cluster) -> None:
    primary.run_script(SCRIPTS / "allow-replication.sh")


class Pair:
    """Two servers with files of their own; a `Cluster` to those who kill one of them."""

    def __init__(self) -> None:
        self._primary = Cluster(*_SETTINGS, durable=True, prepared=_allow_replication)
        self._standby: Cluster | None = None
        self._ports: list[int] = []

    @contextmanager
    def database(self) -> Generator[str]:
        """The name of a fresh database, on both; `Pair` has one, which ends with it."""
        self._begin_standby()
        self._primary.execute("create database store")
        yield "store"

    def url(self, database: str) -> StoreUrl:
        """Names both hosts: that which can be written to is taken."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._ports)
        return store_url(f"postgresql://{USER}@{hosts}/{database}?sslmode=disable&target_session_attrs=read-write")

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[str | None, ...]]:
        """On the primary."""
        return self._primary.execute(sql, database)

    def kill(self) -> None:
        """`kill -9` of the primary."""
        self._primary.kill()

    def start(self) -> None:
        """Promote the standby, as the operator or a program of his does: the former primary stays away."""
        assert self._standby is not None
        self._standby.execute("select pg_promote(true, 60)")

    def mend(self) -> None:
        """Make the former primary a standby of the new one, from an empty folder."""
        assert self._standby is not None
        former, self._primary, self._standby = self._primary, self._standby, None
        former.close()
        self._begin_standby(former.port)

    def close(self) -> None:
        for one in (self._standby, self._primary):
            if one is not None:
                one.close()

    def _begin_standby(self, port: int = 0) -> None:
        """As `ops/postgresql/standby.sh` does it. Returns when the primary waits for it."""
        primary = f"host={self._primary.directory} port={self._primary.port}"
        follows = f"primary_conninfo={primary} user={USER} application_name=db2"

        def copied(standby: Cluster) -> None:
            standby.run_script(SCRIPTS / "standby.sh", "-C", "port", PRIMARY=primary)

        self._standby = Cluster(*_SETTINGS, follows, durable=True, copied=copied, port=port)
        self._ports = sorted((self._primary.port, self._standby.port))
        if port:  # a primary that was promoted: docs/postgresql.md
            self._primary.execute("alter system reset synchronous_standby_names")
            self._primary.execute("select pg_reload_conf()")
        until_s = elapsed_s() + 60
        while self._primary.execute("select sync_state from pg_stat_replication") not in ([("quorum",)], [("sync",)]):
            assert elapsed_s() < until_s, "the standby does not follow"
            pause(0.02)
