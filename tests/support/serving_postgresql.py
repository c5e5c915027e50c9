"""A serving store on the test process's PostgreSQL: each data directory has a database of its own."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from svc.store.directory import Opened, open_directory
from svc.store.postgresql.engine import PostgresqlEngine
from svc.store.postgresql.store import PostgresqlStore
from svc.store.postgresql.url import StoreUrl
from svc.store.store import Store
from svc.world import World
from tests.support.postgresql import MISSING, Cluster, shared_cluster
from tests.support.worlds import inline

_databases: dict[Path, str] = {}


@cache
def _cluster() -> Cluster:
    cluster = shared_cluster()
    assert cluster is not None, MISSING
    cluster.execute("create database template_of_stores")
    url = cluster.url("template_of_stores")
    Store.open(Path(), inline, open_engine=lambda _, /, **how: PostgresqlEngine.open(url, **how)).close()
    return cluster


def url_of(directory: Path, port: int | None = None) -> StoreUrl:
    """The database of a data directory: an empty store where it is new; `port` of a proxy, if not the server's own."""
    cluster = _cluster()
    name = _databases.get(directory)
    if name is None:
        name = _databases[directory] = f"served_{len(_databases)}"
        cluster.execute(f"create database {name} template template_of_stores")
    return cluster.url(name, port)


def open_served(directory: Path, world: World, serve: StoreUrl | None = None, **how: Any) -> Opened:
    """A directory with a pepper, and its store on PostgreSQL; what it serves goes over `serve`, if given. Every query
    sees the newest rows unless `how` says otherwise.
    """
    url = url_of(directory)
    opened = open_directory(
        directory,
        world.run_sync,
        world.entropy,
        durable=False,
        open_engine=lambda _, /, **settings: PostgresqlEngine.open(url, **settings),
    )
    engine = opened.store.engine
    assert isinstance(engine, PostgresqlEngine)
    return opened._replace(store=PostgresqlStore(engine, serve or url, world, **{"recent_s": 0.0, **how}))
