"""A PostgreSQL server of its own on loopback, with its default settings: each commit is on disk."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

SCHEMA = """
create table keys (digest bytea primary key, organization bigint not null);
create table visitors (organization bigint, token text, id uuid not null, primary key (organization, token));
create table idempotency (organization bigint, key text, request uuid not null, primary key (organization, key));
create table ledger (organization bigint, request uuid, micros bigint not null, primary key (organization, request));
create table events (
    organization bigint, request uuid, at timestamptz not null default now(), visitor uuid not null,
    address inet not null, user_agent text not null, report jsonb not null, primary key (organization, request)
);
create index on events (organization, at);
create index on events (organization, visitor);
"""


class Database(NamedTuple):
    """A running server."""

    dsn: str
    pid: int


@contextmanager
def database(directory: Path, port: int, api_key_digest: bytes) -> Generator[Database]:
    """A server on this port of loopback, with the schema and one key; stopped at the end.

    Runs as `postgres` or `nobody` where this process is root's: PostgreSQL refuses to run as root.
    """
    programs = Path(os.path.realpath(shutil.which("postgres") or "postgres")).parent
    user = _other_user()
    directory.mkdir(mode=0o700)
    if user is not None:
        directory.parent.chmod(0o755)
        shutil.chown(directory, user)
    initialize = [programs / "initdb", "-D", directory, "-U", "peer", "-A", "trust", "-E", "UTF8", "--no-locale"]
    subprocess.run(initialize, check=True, capture_output=True, user=user, cwd=directory)
    options = ["-c", "listen_addresses=127.0.0.1", "-c", f"port={port}", "-c", "unix_socket_directories="]
    command = [programs / "postgres", "-D", directory, *options]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user, cwd=directory)
    dsn = f"postgresql://peer@127.0.0.1:{port}/postgres"
    try:
        wait = [programs / "pg_isready", "-h", "127.0.0.1", "-p", str(port), "-t", "1"]
        for _ in range(30):
            if subprocess.run(wait, capture_output=True, check=False).returncode == 0:
                break
        key = f"insert into keys values ('\\x{api_key_digest.hex()}', 1)"
        subprocess.run([programs / "psql", dsn, "-q", "-c", SCHEMA, "-c", key], check=True, capture_output=True)
        yield Database(dsn, server.pid)
    finally:
        server.terminate()
        server.wait(timeout=30)


def _other_user() -> str | None:
    if os.getuid() != 0:
        return None
    names = {line.partition(":")[0] for line in Path("/etc/passwd").read_text().splitlines()}
    return "postgres" if "postgres" in names else "nobody"
