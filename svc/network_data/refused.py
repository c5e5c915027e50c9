"""Why a file of the folder is not used, in words for the operator."""

from __future__ import annotations


class NetworkFileError(Exception):
    """The file cannot be used. `str()` is what is wrong with it and what to do."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        """Counted from 1; `None` where the whole file is at fault."""
