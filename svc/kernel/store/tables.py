"""The tables of the store itself: what it says of itself, and the operation log."""

from __future__ import annotations

from svc.kernel.store.schema.codec import Key, Opaque, Record, Signed
from svc.kernel.store.schema.key_parts import TEXT, U32, U64
from svc.kernel.store.schema.operation_log import Following
from svc.kernel.store.schema.table import FOR_EVER, NOT_PERSONAL, NotPersonal, Table, Until

META = Table("meta", Key(name=TEXT), Signed("value"), FOR_EVER, NOT_PERSONAL)
"""`version`, `next_organization`, `pepper_mark`, `former_pepper_mark/...`, `region/NAME`, `served_...`
(`kernel/store/installation.py`); in the target of a move `moving_...` (`features/backup/move.py`), and no `version`
before its end."""
# The operation log (`operations`): kept only while somebody follows it, and never in itself.
FOLLOWING = Table("following", Key(name=TEXT), Record(Following, remembered=8), Until("nobody follows"), NOT_PERSONAL)
"""`log` -> who follows; no row = nobody"""
OPERATIONS = Table(
    "operations",
    Key(sequence=U64, part=U32),
    Opaque("batch"),
    Until("it is copied"),
    NotPersonal("what commits changed, until it is copied; copies age as backups do (docs/backup.md)"),
    invariants=("operations",),
)
"""Part 0, 1, ... of a batch. Sequences are without a gap; the first of a timeline is 0, which is empty. What has been
copied is deleted but for the last batch, so that the next number is always known."""
