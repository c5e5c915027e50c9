"""What `svc doctor` says of the credit of organizations."""

from __future__ import annotations

from svc.cli.data_directory import Readable, reading_directory
from svc.cli.serve.health_checks import Examined, Finding
from svc.domain.errors import OperatorError
from svc.store.directory import has_store
from svc.store.engine import EngineError
from svc.store.schema.codec import CorruptionError
from svc.store.views.credit import Outlook, outlook
from svc.store.views.lookups import organizations

NAMED = 3
"""Organizations that are named; the others are counted."""


def credit(examined: Examined) -> Finding:
    """Whether the credit of each organization lasts for another week; a warning where it does not (decisions 16.4)."""
    if examined.config.store is None and not has_store(examined.directory):
        return Finding("ok", "there are no organizations yet")
    try:
        with reading_directory(examined.directory, examined.config) as opened:
            return finding_of(opened, examined.world.now_ms())
    except (OperatorError, EngineError, CorruptionError, OSError) as error:
        return Finding("warning", f"cannot be read: {error}", "see the line `store`")


def finding_of(store: Readable, now_ms: int) -> Finding:
    """As `credit`, of the organizations of a store."""
    short: list[str] = []
    with store.read() as snapshot:
        numbers = organizations(snapshot)
    for number in numbers:
        with store.read() as snapshot:
            says = _short_of_credit(outlook(snapshot, number, now_ms))
        short += [] if says is None else [says]
    if not short:
        return Finding("ok", f"{len(numbers)} organizations, of which none runs out of credit")
    more = f" and {len(short) - NAMED} more" if len(short) > NAMED else ""
    do = "`svc org credit ORG --usd N` adds credit, `svc org credit-limit ORG --usd none` makes it postpaid"
    return Finding("warning", "; ".join(short[:NAMED]) + more, do)


def _short_of_credit(found: Outlook) -> str | None:
    known = found.credit
    if known is None or known.state == "enough":
        return None
    if known.state == "used_up" or known.days is None:
        return f"{found.organization_id} has used up its credit: its production traffic is refused (402)"
    return f"the credit of {found.organization_id} covers {known.days:.1f} days"
