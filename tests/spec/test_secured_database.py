"""A database that takes TLS and a password alone: certificates, password files, service files."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trustme

from tests.spec.commands import Ran, Run
from tests.support.acknowledged import shop
from tests.support.postgresql import Cluster, programs_with_tls
from tests.support.process import Served

pytestmark = pytest.mark.only_on(None, "it has a database of its own")

HOST = "db.example"
"""In the certificate; nobody looks it up."""
PASSWORD = "it's a \\ secret"


class Secured:
    """A server of its own, and the files that a node has of it."""

    def __init__(self, folder: Path) -> None:
        self.cluster = Cluster(folder=programs_with_tls())
        authority = trustme.CA()
        self.ca, self.other_ca = folder / "ca.pem", folder / "other.pem"
        authority.cert_pem.write_to_path(self.ca)
        trustme.CA().cert_pem.write_to_path(self.other_ca)
        self.password_file = folder / "password"
        self.password_file.write_text(PASSWORD + "\n")
        issued = authority.issue_cert(HOST)
        self._write("server.crt", b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        self._write("server.key", issued.private_key_pem.bytes())
        self._write("pg_hba.conf", b"local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n")
        quoted = PASSWORD.replace("'", "''")
        self.cluster.execute(f"create role node login password '{quoted}'")
        self.cluster.execute("create database visits owner node")
        self.cluster.execute("alter system set ssl = on")
        self.cluster.execute("select pg_reload_conf()")

    def _write(self, name: str, content: bytes) -> None:
        path, folder = self.cluster.data / name, self.cluster.data.stat()
        path.write_bytes(content)
        path.chmod(0o600)
        os.chown(path, folder.st_uid, folder.st_gid)

    def url(self, host: str = HOST, database: str = "visits", **parameters: object) -> str:
        given = {"hostaddr": "127.0.0.1", "sslmode": "verify-full", "sslrootcert": self.ca} | parameters
        query = "&".join(f"{name}={value}" for name, value in given.items() if value is not None)
        return f"postgresql://node@{host}:{self.cluster.port}/{database}?{query}"


@pytest.fixture(scope="module")
def secured() -> Generator[Secured]:
    if programs_with_tls() is None:
        pytest.skip("no PostgreSQL with TLS: install the system's package postgresql")
    with TemporaryDirectory() as name:
        made = Secured(Path(name))
        try:
            yield made
        finally:
            made.cluster.close()


@pytest.fixture(autouse=True)
def _password(secured: Secured, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_STORE_PASSWORD_FILE", str(secured.password_file))


def begin(run: Run, url: str) -> Ran:
    return run("serve", "--store", url)


@pytest.mark.slow(8)
def test_a_node_connects_over_tls_with_a_password_from_a_file(secured: Secured, tmp_path: Path):
    environment = {"SVC_STORE": secured.url(), "SVC_STORE_PASSWORD_FILE": str(secured.password_file)}
    shop(tmp_path, **environment)
    server = Served(tmp_path, **environment)
    try:
        assert server.terminate() == 0
    finally:
        server.kill()
    assert PASSWORD not in "".join(server.log)


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"sslrootcert": "other"}, ("certificate verify failed", "sslrootcert in the store's URL has to name")),
        ({"host": "db.other"}, ("does not match host name", "as the database's certificate does")),
        ({"sslrootcert": "/none"}, ("/none", "needs sslrootcert=FILE")),
        ({"sslmode": "disable"}, ("no encryption", "pg_hba.conf")),
    ],
)
def test_an_untrusted_certificate_is_rejected_with_what_to_do(
    secured: Secured, run: Run, changed: dict[str, str], says: tuple[str, ...]
):
    given: dict[str, object] = {**changed}
    if given.get("sslrootcert") == "other":
        given["sslrootcert"] = secured.other_ca
    begin(run, secured.url(**given)).assert_refused(*says)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_database_without_tls_is_rejected_where_tls_is_required(cluster: Cluster, run: Run):
    url = f"postgresql://svc@127.0.0.1:{cluster.port}/postgres?sslmode=require"
    begin(run, url).assert_refused("server does not support SSL", "ssl = on")


@pytest.mark.slow
def test_a_wrong_and_a_missing_password_are_rejected(
    secured: Secured, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong\n")
    monkeypatch.setenv("SVC_STORE_PASSWORD_FILE", str(wrong))
    refused = begin(run, secured.url())
    refused.assert_refused("password authentication failed", "SVC_STORE_PASSWORD_FILE")
    monkeypatch.delenv("SVC_STORE_PASSWORD_FILE")
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    begin(run, secured.url()).assert_refused("no password supplied", "SVC_STORE_PASSWORD_FILE")


@pytest.mark.slow(1)
def test_a_passfile_and_a_service_file_of_libpq_are_used(
    secured: Secured, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.delenv("SVC_STORE_PASSWORD_FILE")
    passfile, services = tmp_path / "passfile", tmp_path / "services"
    escaped = PASSWORD.replace("\\", "\\\\")
    secured.cluster.execute("create database services owner node")
    passfile.write_text(f"*:*:services:node:{escaped}\n")
    passfile.chmod(0o600)
    services.write_text(
        f"[visits]\nhost={HOST}\nhostaddr=127.0.0.1\nport={secured.cluster.port}\nuser=node\ndbname=services\n"
        f"sslmode=verify-full\nsslrootcert={secured.ca}\n"
    )
    monkeypatch.setenv("PGPASSFILE", str(passfile))
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    run("org", "create", "Shop", "--store", "postgresql:///?service=visits", "--json").json  # noqa: B018  it succeeded
    assert run("check", "--store", secured.url(database="services")).status == 0
    begin(run, "postgresql:///?service=other").assert_refused('definition of service "other"', "PGSERVICEFILE")
