"""URLs of stores: what is read, what is refused, and that nothing secret is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg import pq

from svc.kernel.store.postgresql.connection.url import StoreUrlError, is_store_url, store_url


def parsed(conninfo: bytes) -> dict[str, str]:
    return {option.keyword.decode(): option.val.decode() for option in pq.Conninfo.parse(conninfo) if option.val}


def test_a_url_is_read_as_libpq_reads_it():
    url = store_url("postgresql://svc@db.example:5433/visits?sslmode=verify-full&sslrootcert=/etc/ca.pem")
    given = parsed(url.conninfo())
    assert (given["host"], given["port"], given["user"], given["dbname"]) == ("db.example", "5433", "svc", "visits")
    assert (given["sslmode"], given["sslrootcert"], given["fallback_application_name"]) == (
        "verify-full",
        "/etc/ca.pem",
        "svc",
    )


def test_several_hosts_and_services_are_accepted():
    given = parsed(store_url("postgres://a,b:5433/x?target_session_attrs=read-write&keepalives_idle=1").conninfo())
    assert (given["host"], given["target_session_attrs"], given["keepalives_idle"]) == ("a,b", "read-write", "1")
    assert parsed(store_url("postgresql:///?service=visits").conninfo())["service"] == "visits"


def test_the_password_comes_from_a_file_and_is_not_shown(tmp_path: Path):
    path = tmp_path / "password"
    path.write_text("it's a \\ secret\n")
    url = store_url("postgresql://svc@db/visits", path)
    assert parsed(url.conninfo())["password"] == "it's a \\ secret"
    for shown in (str(url), repr(url), f"{url}"):
        assert "secret" not in shown
        assert "db/visits" in shown


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://svc:hunter2@db/visits",
        "postgresql://svc@db/visits?password=hunter2",
        "postgresql://svc@db/visits?sslpassword=hunter2",
        "postgresql://svc:hunter2@db:port/visits?x=%zz",
        "postgresql://svc:hunter2@db/visits?no_such_parameter=1",
        "mysql://svc:hunter2@db/visits",
    ],
)
def test_a_password_in_the_url_is_rejected_and_never_shown(text: str):
    with pytest.raises(StoreUrlError) as raised:
        store_url(text)
    assert "hunter2" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_a_byte_order_mark_is_no_part_of_the_password(tmp_path: Path):
    path = tmp_path / "password"
    path.write_bytes(b"\xef\xbb\xbfsecret\r\n")
    assert parsed(store_url("postgresql://svc@db/visits", path).conninfo())["password"] == "secret"
    path.write_text("secret", encoding="utf-16")
    with pytest.raises(StoreUrlError, match="UTF-16"):
        store_url("postgresql://svc@db/visits", path)


def test_a_missing_or_empty_password_file_is_rejected(tmp_path: Path):
    with pytest.raises(StoreUrlError, match="cannot be read"):
        store_url("postgresql://db/visits", tmp_path / "missing")
    (tmp_path / "empty").touch()
    with pytest.raises(StoreUrlError, match="is empty"):
        store_url("postgresql://db/visits", tmp_path / "empty")


def test_a_directory_is_not_a_url():
    assert is_store_url("postgresql://db/visits")
    assert not is_store_url("/var/lib/svc")
    assert not is_store_url("data")
