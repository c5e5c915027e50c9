"""A pgBouncer between a test and its server, where the machine has one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal

from psycopg import pq

from svc.world import elapsed_s, pause
from tests.support.ports import free_port
from tests.support.postgresql import USER, Cluster, as_user

Pooling = Literal["session", "transaction"]
SERVERS = 30
"""Sessions that it has with the server, for more clients than that."""


def program() -> str | None:
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")


@contextmanager
def pgbouncer(cluster: Cluster, pooling: Pooling, servers: int = SERVERS) -> Generator[int]:
    """The port of one while the block runs."""
    found, folder, port = program(), Path(mkdtemp(prefix="svc-pgbouncer-")), free_port()
    assert found is not None
    (folder / "users").write_text(f'"{USER}" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host=127.0.0.1 port={cluster.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {folder}/users\n"
        f"pool_mode = {pooling}\ndefault_pool_size = {servers}\nmax_client_conn = 200\n"
    )
    folder.chmod(0o755)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([found, folder / "pgbouncer.ini"], stdout=log, stderr=log, cwd="/", **as_user())
    try:
        until_s = elapsed_s() + 20
        while not _is_ready(port):
            assert elapsed_s() < until_s, (folder / "log").read_text()
            pause(0.02)
        yield port
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def _is_ready(port: int) -> bool:
    connection = pq.PGconn.connect(f"host=127.0.0.1 port={port} user={USER} dbname=postgres sslmode=disable".encode())
    ready = connection.status == pq.ConnStatus.OK
    connection.finish()
    return ready
