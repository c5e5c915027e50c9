"""The version of the store, as a transaction looks at it after it has its fences.

Nodes of an older version may still run when the first of a newer one upgrades the store. An upgrade takes every fence.
So who looks at the version after taking a fence, in a statement of its own, sees what the upgrade has left: an older
node neither writes rows of its version into a newer store, nor reads newer rows as if they were of its own.
"""

from __future__ import annotations

from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.installation import NewerStoreError, refuse_newer
from svc.kernel.store.postgresql import statements
from svc.kernel.store.postgresql.connection.values import TRUE
from svc.kernel.store.postgresql.connection.wire import Result, Statement
from svc.kernel.store.schema.table import installed
from svc.kernel.store.tables import META

_KEY = META.key.pack("version")
READ_VERSION = Statement(statements.VERSION, (_KEY,))


class OtherVersionError(UnavailableError):
    """The store was upgraded, or an older one put back: this program has to end. Nothing was written or may be used."""


def refuse_other(found: Result) -> bool:
    """Raise `OtherVersionError` if the result of `READ_VERSION` is another version than this program's; no row is
    accepted, for a store that is being created. Return whether events are also written as rows for SQL (`sql_events`).
    """
    if not found.rows:
        return False
    raw, has_sql_events = found.rows[0]
    version, known = META.decode(_KEY, raw), installed().version
    if version == known:
        return has_sql_events == TRUE
    try:
        refuse_newer(version, known)
    except NewerStoreError as error:
        raise OtherVersionError(str(error)) from None
    raise OtherVersionError(
        f"the store is of version {version} again, and this program uses {known}: restart the service"
    )
