"""Where a store on PostgreSQL is: a URL as libpq reads it, without its password, and the password from elsewhere.

    postgresql://USER@HOST:PORT/DATABASE?sslmode=verify-full&sslrootcert=FILE
    postgresql://USER@HOST1,HOST2/DATABASE?target_session_attrs=read-write
    postgresql:///?service=NAME

Every parameter of libpq may follow the question mark. The password comes from `SVC_STORE_PASSWORD_FILE`, or from a
passfile or service file of libpq's; a URL is shown in messages, and in the list of processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from svc.kernel.values.errors import OperatorError
from svc.kernel.values.fields import url_problem
from svc.kernel.values.text_files import NotTextError, decode_text

SCHEMES = ("postgresql://", "postgres://")
_SECRET = ("password", "sslpassword", "scram_client_key", "oauth_client_secret")
_OWN = {
    "fallback_application_name": "svc",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
}
"""Parameters of libpq that hold unless the URL has others: a dead server is noticed within half a minute."""


class StoreUrlError(OperatorError):
    """The URL of a store cannot be used; the message says why, and shows nothing that may be secret."""


@dataclass(frozen=True)
class StoreUrl:
    """The location of a store on PostgreSQL. `str` shows it without its password."""

    text: str
    """As it was given; it holds no password."""
    parameters: Mapping[str, str] = field(repr=False)
    """For libpq, the password among them."""

    def __str__(self) -> str:
        return self.text

    def conninfo(self) -> bytes:
        """Return the connection string for libpq. It contains the password: never log it."""
        return " ".join(f"{name}={_quoted(value)}" for name, value in self.parameters.items()).encode()


def is_store_url(text: str) -> bool:
    """Return whether the location of a store is a URL rather than a directory."""
    return "://" in text


def store_url(text: str, password_file: Path | None = None) -> StoreUrl:
    """Return the location that a URL names; the password is the first line of `password_file`. Raises `StoreUrlError`
    for another scheme, a URL that libpq cannot read, a password in it, a file that cannot be read.
    """
    try:
        import psycopg  # noqa: PLC0415  only for a store that is in a database: commands start faster without
        from psycopg import pq  # noqa: PLC0415  as above
    except ImportError as error:
        raise StoreUrlError("a store in PostgreSQL needs a driver: pip install 'psycopg[binary]'") from error

    if (problem := url_problem(text)) is not None:
        raise StoreUrlError(problem)
    if not text.startswith(SCHEMES):
        raise StoreUrlError(f"the store is a directory or postgresql://USER@HOST:PORT/DATABASE, not {_scheme(text)}")
    try:
        given = {
            option.keyword.decode(): option.val.decode() for option in pq.Conninfo.parse(text.encode()) if option.val
        }
    except (psycopg.Error, UnicodeError):  # its message may quote the password
        raise StoreUrlError(
            "the store's URL cannot be read: write postgresql://USER@HOST:PORT/DATABASE?PARAMETER=VALUE, with special "
            "characters as %XX"
        ) from None
    if any(name in given for name in _SECRET):
        raise StoreUrlError("the store's URL holds a secret: use a passfile or a service file of libpq for it")
    if password_file is not None:
        given["password"] = _password(password_file)
    return StoreUrl(text, {**_OWN, **given})


def _password(path: Path) -> str:
    try:
        password = decode_text(path.read_bytes()).partition("\n")[0]
    except (OSError, NotTextError) as error:
        raise StoreUrlError(f"the password file {path} cannot be read: {error}") from None
    if not password:
        raise StoreUrlError(f"the password file {path} is empty")
    return password


def _scheme(text: str) -> str:
    scheme, separator, _ = text.partition("://")
    return f"{scheme}://…" if separator else "a path"


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
