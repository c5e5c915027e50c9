"""What a database refuses, with what to do about it: SQLSTATE to words.

What may live here: exceptions and the table of hints. No connection.
"""

from __future__ import annotations

from svc.kernel.store.engine import EngineError
from svc.kernel.values.errors import OperatorError

DISK_FULL = "53100"
READ_ONLY = "25006"
SERIALIZATION_FAILURE = "40001"
DEADLOCK = "40P01"

_HINTS = {
    "0A000": "the database lacks something that this program needs: docs/postgresql.md lists what it was tested with",
    "25006": "the database is a read-only standby: name the primary, or several hosts with "
    "target_session_attrs=read-write",
    "26000": "a pooler gives this connection other sessions: docs/postgresql.md says which may stand between",
    "28000": "the database refuses this user: see its pg_hba.conf",
    "28P01": "the database refuses this user's password: see SVC_STORE_PASSWORD_FILE and the passfile",
    "3D000": "create the database first: docs/postgresql.md",
    "3F000": "the database holds no store: `svc org create` or `svc store move` makes one",
    "42501": "the user lacks a right: it must own the schema svc, or may create it (docs/postgresql.md)",
    "42P01": "the database holds no store, or only a part of one: `svc check` says more",
    "53100": "the disk of the database is full: free some space or enlarge it",
    "53200": "the database is out of memory: see its log",
    "53300": "the database has no connection left: raise its max_connections, or lower store_connections here",
    "55P03": "another session holds a row for longer than the lock timeout",
    "57014": "a statement took longer than the statement timeout",
}
_LOST = ("08", "57P", "25P03")
"""How the SQLSTATE begins after which the server closes the connection: 57P01 to 57P05 end a session or refuse one,
25P03 ends one that stood still in a transaction."""


class SqlError(OperatorError, EngineError):
    """The database rejected a statement. Statements that were sent after it were not executed."""

    def __init__(self, state: str, message: str) -> None:
        """Take the SQLSTATE of five characters, empty if the library failed, and the database's own message."""
        hint = _HINTS.get(state)
        super().__init__(message if hint is None else f"{message}; {hint}")
        self.state = state

    @property
    def is_repeatable(self) -> bool:
        """Whether the same transaction may succeed if it is begun again."""
        return self.state in (SERIALIZATION_FAILURE, DEADLOCK)


class ConnectionLostError(OperatorError, EngineError):
    """The connection ended. Nobody knows whether a commit that was under way has happened; all else has not."""


class DatabaseError(OperatorError, EngineError):
    """The database cannot be used as a store; the message says what to do."""


def error_of(state: str, message: str) -> SqlError | ConnectionLostError:
    """Return the exception for an SQLSTATE and message of the database."""
    message = " ".join(message.split())
    return ConnectionLostError(message) if state.startswith(_LOST) else SqlError(state, message)


def connecting_failed(message: str) -> DatabaseError | ConnectionLostError:
    """Return the exception for a connection that failed, by its message: libpq exposes no SQLSTATE."""
    message = " ".join(message.split())
    known = next((known for words, known in _WORDS.items() if words in message), "")
    hint = _HINTS.get(known, known)
    if hint:
        message = f"{message}; {hint}"
    is_lasting = known in _LASTING or len(known) > len("28P01")
    return DatabaseError(message) if is_lasting else ConnectionLostError(message)


_WORDS = {
    "password authentication failed": "28P01",
    "no password supplied": "28P01",
    "no pg_hba.conf entry": "28000",
    "too many clients": "53300",
    "too many connections": "53300",
    "connection slots are reserved": "53300",
    "session is read-only": "25006",
    "hot standby mode": "25006",
    'role "': "28000",
    'database "': "3D000",
    "certificate verify failed": "sslrootcert in the store's URL has to name the authority that has signed the "
    "database's certificate",
    "does not match host name": "name the host as the database's certificate does, with hostaddr=ADDRESS where that "
    "name is not looked up",
    "root certificate file": "sslmode=verify-full needs sslrootcert=FILE, the certificate of the authority that has "
    "signed the database's, or sslrootcert=system",
    "server does not support SSL": "set ssl = on in the database, with ssl_cert_file and ssl_key_file",
    "definition of service": "see PGSERVICEFILE and ~/.pg_service.conf",
}
"""What PostgreSQL and libpq say in English, the first that fits, and its SQLSTATE or what to do about it."""
_LASTING = ("28000", "28P01", "3D000")
"""What the next attempt will not find otherwise, beside what has no SQLSTATE in `_WORDS`: certificates and settings."""
