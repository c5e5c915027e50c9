"""Whether a node still has the pepper of its database: looked at with every beat, since another node may be where
`svc pepper replace` was run, and a node that stood still meanwhile would go on with the old one.
"""

from __future__ import annotations

from svc.store.directory import DirectoryError, pepper_mark
from svc.store.postgresql import statements
from svc.store.postgresql.connection.values import byteas, int4
from svc.store.postgresql.connection.wire import Result, Statement
from svc.store.schema.tables import META

_KEY = META.key.pack("pepper_mark")


class PepperReplacedError(DirectoryError):
    """The pepper of a node is not that of its database any more."""


class PepperMark:
    """The mark that the pepper of a node has left in the database."""

    def __init__(self, pepper: bytes) -> None:
        self._mark = pepper_mark(pepper)

    def ask(self) -> Statement:
        """The statement that reads the mark that is there now."""
        return Statement(statements.fetch(META.name), (int4(0), byteas([_KEY])))

    def learn(self, answer: Result) -> None:
        """Compare the result of `ask` with this node's mark. Raises `PepperReplacedError` where it is another; a store
        without a mark passes.
        """
        for key, value in answer.rows:
            if META.decode(key, value) != self._mark:
                raise PepperReplacedError(
                    "the pepper of the database was replaced while this node ran: copy the new one here, and start it"
                )
