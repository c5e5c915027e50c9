"""Network databases: what comes with the program, and what the operator puts into the folder of the data directory.

What may live here: reading such files, and the look-up compiled from them. What a look-up means is said in
`svc.identify.network`. Nothing here makes an outbound call but `update`, for `svc data update`, which an operator runs.
"""

from __future__ import annotations


class NetworkFileError(Exception):
    """A file of the folder is not used; `str()` says what is wrong with it and what to do."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        """Counted from 1; `None` where the whole file is at fault."""
