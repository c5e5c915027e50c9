"""What `svc doctor` says of the credit of organizations."""

from __future__ import annotations

from svc.cli.data_directory import Readable, reading_directory
from svc.cli.health_checks import Examined, Finding
from svc.domain.errors import OperatorError
from svc.store.codec import CorruptionError
from svc.store.credit_views import ORGANIZATIONS_A_STEP, Outlook, outlooks
from svc.store.directory import has_store
from svc.store.engine import EngineError

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
    many = after = 0
    while True:
        with store.read() as snapshot:
            found = outlooks(snapshot, after, now_ms)
        many += len(found)
        short += [says for each in found if (says := _short_of_credit(each)) is not None]
        if len(found) < ORGANIZATIONS_A_STEP:
            break
        after = found[-1].number
    if not short:
        return Finding("ok", f"{many} organizations, of which none runs out of credit")
    more = f" and {len(short) - NAMED} more" if len(short) > NAMED else ""
    do = "`svc org credit ORG --usd N` adds credit, `svc org credit-limit ORG --usd none` makes it postpaid"
    return Finding("warning", "; ".join(short[:NAMED]) + more, do)


def _short_of_credit(outlook: Outlook) -> str | None:
    known = outlook.credit
    if known is None or known.state == "enough":
        return None
    if known.state == "used_up" or known.days is None:
        return f"{outlook.organization_id} has used up its credit: its production traffic is refused (402)"
    return f"the credit of {outlook.organization_id} covers {known.days:.1f} days"
