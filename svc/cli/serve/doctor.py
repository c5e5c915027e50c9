"""`svc doctor`: whether a service can run, or runs, on this machine; and what to do where it cannot."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import click
import msgspec
from click.core import ParameterSource

from svc.cli.serve.config_check import usable
from svc.cli.serve.health_checks import CHECKS, UNREADABLE, Examined, Finding, Status, settings_file, size_of
from svc.command.data_directory import Readable, read_through, reading_directory
from svc.command.help import examples
from svc.command.output import (
    CommandError,
    config_option,
    directory_option,
    has_colors,
    json_option,
    readable,
    settings,
    show,
)
from svc.features.accounts.jobs import pending
from svc.features.accounts.queries import alike_accounts
from svc.features.backup import copied_up_to
from svc.features.billing.credit_queries import Outlook, outlook
from svc.features.rules.jobs import idle_lists, unsavable_conditions
from svc.features.webhooks.tables import ENDPOINTS
from svc.identify.scoring.signals import CATALOG_ORDER, default_weights
from svc.identify.tables import WEIGHTS
from svc.identify.velocity.counts import KINDS
from svc.kernel.store import operations
from svc.kernel.store.directory import has_store
from svc.kernel.store.installation import served_limits
from svc.kernel.store.reading import ReadOnlyStore
from svc.kernel.store.schema.operation_log import Following
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants.jobs import holdings
from svc.kernel.tenants.queries import is_removed, organization, organizations, share_in_force
from svc.kernel.values.fields import PLATFORMS
from svc.kernel.values.ids import made_at_ms
from svc.kernel.values.timestamps import timestamp
from svc.world import World

LATE_S = 60
"""A follower that runs records every ten seconds how far it has copied."""
RESTORE = "stop the service, keep the directory, and restore the backup (docs/backup.md)"
NEXT_STEP = "start `svc backup --follow`, and read its log"


def backup(examined: Examined) -> Finding:
    """Check up to which moment `svc backup --follow` has copied the store: a problem if its log was dropped, a warning
    if that was more than `LATE_S` ago or cannot be read.
    """
    if examined.config.store is not None:
        return Finding("ok", "made with the database's own tools (docs/postgresql.md)")
    if not has_store(examined.directory):
        return Finding("ok", "there is nothing to back up yet")
    try:
        with reading_directory(examined.directory, examined.config) as opened:
            with opened.read() as snapshot:
                following = operations.follower(snapshot)
            return _of_follower(following, opened, examined.world.now_ms())
    except UNREADABLE as error:
        return Finding("warning", str(error), "run this command where the store and its backup can be read")


def _of_follower(following: Following | None, store: ReadOnlyStore, now_ms: int) -> Finding:
    if following is None:
        return Finding("ok", "not continuous: `svc backup --follow` was not started on this store")
    if following.lost_at_ms is not None:
        says = f"nothing is copied since {timestamp(following.lost_at_ms)}: {following.lost_because}"
        return Finding("problem", says, NEXT_STEP)
    if (problem := copied_up_to.beyond(following, store.read)) is not None:
        return Finding("problem", problem, RESTORE)
    copied = copied_up_to.of_timeline(Path(following.destination), following.timeline.hex())
    if copied is None:
        return Finding("warning", f"{following.destination} does not say how far it was copied", NEXT_STEP)
    late_s = (now_ms - copied.at_ms) / 1000
    says = f"copied up to {timestamp(copied.at_ms)}, {late_s:.0f} s ago, to {following.destination}"
    return Finding("warning", says, NEXT_STEP) if late_s > LATE_S else Finding("ok", says)


COLORS: dict[Status, str] = {"ok": "green", "warning": "yellow", "problem": "red"}
WIDTH = max(map(len, COLORS))


@click.command(
    epilog=examples("svc doctor", "svc doctor --data /var/lib/svc --config /etc/svc.toml", "svc doctor --json")
)
@directory_option("The data directory.", default=Path("data"), show_default=True)
@config_option("TOML file of settings.")
@click.option("--url", metavar="URL", help="Where the running service is, if not at its setting `bind`.")
@json_option
def doctor(directory: Path, file: Path | None, url: str | None, as_json: bool) -> None:
    """Check the settings, permissions, lock and service, store, network data, clock, disk, TLS, continuous
    backup, credit, shares of the store, counts, spellings of accounts, rules, lists, saved weights and links of chat
    webhooks; identify a sample report.

    Each line says ok, warning or problem, and what to do next. The exit status is 1 if there is a problem. Nothing
    in the data directory is changed: the sample goes to a temporary store. It may run while the service runs.
    """
    found: dict[str, Finding] = {}
    is_named = click.get_current_context().get_parameter_source("directory") is not ParameterSource.DEFAULT
    for check, finding in findings(directory, file, url, is_named=is_named):
        found[check] = finding
        if not as_json:
            click.echo(_line(check, finding))
    counts = {status: sum(finding.status == status for finding in found.values()) for status in COLORS}
    worst = next((status for status in reversed(COLORS) if counts[status]), "ok")
    if as_json:
        checks = [{"check": check, **msgspec.to_builtins(finding)} for check, finding in found.items()]
        show({"status": worst, "checks": checks}, as_json=True)
    if counts["problem"]:
        raise CommandError("1 problem" if counts["problem"] == 1 else f"{counts['problem']} problems")
    if not as_json:
        warnings = counts["warning"]
        click.echo(f"\nno problems, {warnings} warning{'s' * (warnings != 1)}")


def findings(
    directory: Path, file: Path | None, url: str | None, *, is_named: bool = False
) -> Iterator[tuple[str, Finding]]:
    """Yield the name and the finding of each check, whatever the others find. If the settings have mistakes, the other
    checks go by those that can be used.
    """
    first = settings_file(file)
    yield "settings", first
    config = settings(file) if first.status == "ok" else usable(file, os.environ)
    examined = Examined(directory, file, config, url, World.real(), is_named)
    for name, check in (*CHECKS.items(), ("backup", backup), *OF_ORGANIZATIONS.items()):
        try:
            yield name, check(examined)
        except UNREADABLE as error:
            yield name, Finding("problem", f"the check itself failed: {error}", "see the other lines")


def _line(check: str, finding: Finding) -> str:
    status = finding.status.ljust(WIDTH)
    if has_colors(sys.stdout):
        status = click.style(status, fg=COLORS[finding.status])
    do = f"\n{' ' * WIDTH}                  -> {readable(finding.do)}" if finding.do else ""
    return f"{status}  {check:<14}  {readable(finding.says)}{do}"


NAMED = 3
"""Organizations or accounts that are named; the others are counted."""
MAX_ORGANIZATIONS = 50
"""Organizations whose newest accounts are looked at."""


def chat_links(examined: Examined) -> Finding:
    """Check whether messages of chat webhooks can link to the console; a warning where there are such endpoints and no
    `public_url` (decisions 16.2).
    """
    if examined.config.public_url is not None:
        return Finding("ok", f"messages of chat webhooks link to {examined.config.console_at()}/console")
    return _of_store(links_of, examined)


def links_of(store: Readable) -> Finding:
    """Check the chat links of the endpoints of a store, as `chat_links` does without `public_url`."""
    with store.read() as snapshot:
        chats = sum(endpoint.is_chat for _, endpoint in snapshot.scan(ENDPOINTS))
    if not chats:
        return Finding("ok", "no webhook goes to a chat; messages would have no link without the setting public_url")
    says = f"the messages of {chats} chat webhook{'s' * (chats != 1)} have no link to the console"
    return Finding("warning", says, "set public_url to the address at which people reach this service")


def _of_store(find: Callable[[Readable], Finding], examined: Examined) -> Finding:
    if examined.config.store is None and not has_store(examined.directory):
        return Finding("ok", "there are no organizations yet")
    try:
        with reading_directory(examined.directory, examined.config) as opened:
            return find(opened)
    except UNREADABLE as error:
        return Finding("warning", f"cannot be read: {error}", "see the line `store`")


def finding_of(store: Readable, now_ms: int) -> Finding:
    """Check whether the credit of each organization lasts for another week; a warning where it does not (decisions
    16.4). `now_ms`: Unix milliseconds.
    """
    short: list[str] = []
    numbers = _organizations_of(store)
    for number in numbers:
        with store.read() as snapshot:
            says = _short_of_credit(outlook(snapshot, number, now_ms))
        short += [] if says is None else [says]
    if not short:
        return Finding("ok", f"no organization runs out of credit ({len(numbers)} in all)")
    do = "`svc org credit ORG --usd N` adds credit, `svc org credit-limit ORG --usd none` makes it postpaid"
    return Finding("warning", _named(short), do)


def _organizations_of(store: Readable) -> list[int]:
    with store.read() as snapshot:
        return organizations(snapshot)


def _of_each(store: Readable, find: Callable[[Snapshot, int], Iterable[str]], most: int | None = None) -> list[str]:
    """Return what is found of each organization, with its id; of at most `most` organizations, `None` = of all."""
    found: list[str] = []
    for number in _organizations_of(store)[:most]:
        with store.read() as snapshot:
            found += [f"{name} of {organization(snapshot, number).id}" for name in find(snapshot, number)]
    return found


def _named(found: list[str], of: str = "") -> str:
    more = f" and {of}{len(found) - NAMED} more" if len(found) > NAMED else ""
    return "; ".join(found[:NAMED]) + more


def spellings_of(store: Readable) -> Finding:
    """Check whether ids of accounts differ only in case, blanks or invisible characters, which rules count apart; a
    warning where the newest events name such. Of many organizations the first `MAX_ORGANIZATIONS` are looked at.
    """

    def alike(snapshot: Snapshot, number: int) -> Iterator[str]:
        for kind in KINDS:
            yield from (" and ".join(map(ascii, ids[:NAMED])) for ids in alike_accounts(snapshot, number, kind))

    found = _of_each(store, alike, MAX_ORGANIZATIONS)
    if not found:
        return Finding("ok", "no two accounts of the newest events differ only in case, blanks or invisible characters")
    do = "each counts as an account of its own: send one spelling, best an opaque id (docs/accounts.md)"
    return Finding("warning", f"accounts that look alike: {_named(found)}", do)


def rules_of(store: Readable) -> Finding:
    """Check whether rules and filters that earlier versions saved could be saved by this one; a warning where they
    could not: they stay in force, and fail where they cannot be evaluated or cost too much (decisions 13.4).
    """
    found = _of_each(store, unsavable_conditions)
    if not found:
        return Finding("ok", "every rule and filter could be saved as it is")
    do = "they fail where they cost too much or cannot be evaluated: preview them in the console, and save them again"
    return Finding("warning", f"could not be saved again, for what they cost or ask: {_named(found)}", do)


def idle_lists_of(store: Readable) -> Finding:
    """Check whether an active rule asks each list of blocked and trusted that has entries; a warning where none does
    (decisions 13.3).
    """
    found = _of_each(
        store, lambda snapshot, number: [] if is_removed(snapshot, number) else idle_lists(snapshot, number)
    )
    if not found:
        return Finding("ok", "every list of blocked and trusted that has entries is asked by a rule")
    do = 'add a rule such as in_list("blocked_addresses"), or make it active'
    return Finding("warning", f"no active rule of production asks: {_named(found)}", do)


NEAR_SHARE = 0.8
"""Of what it may hold, at which an organization is near its share, as in ops/alerts.yml."""


def shares_of(store: Readable) -> Finding:
    """Check whether each organization has room in its share of the store, by the limits of the last start; a warning
    from `NEAR_SHARE` on, a problem where one is refused (decisions 4).
    """
    with store.read() as snapshot:
        served = served_limits(snapshot)
        if served is None:
            return Finding("ok", "no service has been started, so there is no limit yet")
        may_hold_bytes = share_in_force(snapshot, served.store_share) * served.capacity_bytes
    parts = ((held.held_bytes / may_hold_bytes, number) for number, held in read_through(store, holdings, 0))
    over = [(part, number) for part, number in parts if part >= NEAR_SHARE]
    with store.read() as snapshot:
        near = [(part, organization(snapshot, number).id) for part, number in over]
    if not near:
        return Finding("ok", f"no organization holds {NEAR_SHARE:.0%} of the {size_of(may_hold_bytes)} that it may")
    near.sort(reverse=True)
    status: Status = "problem" if near[0][0] >= 1 else "warning"
    of_each = _named([f"{name} holds {part:.0%}" for part, name in near])
    do = "at 100% identifications get 503: svc org drop-documents, a larger store_share or map_gib, or a larger disk"
    return Finding(status, f"of the {size_of(may_hold_bytes)} that one may hold, {of_each}", do)


def weights_of(store: Readable) -> Finding:
    """Check whether weights that were saved know every signal; a warning where they were saved before one was
    introduced: it counts 0 in them (decisions 6.2, 18.6).
    """
    found: dict[str, set[str]] = {}
    with store.read() as snapshot:
        for key, stored in snapshot.scan(WEIGHTS):
            number, platform = int(key[0]), int(key[1])
            defaults = default_weights(PLATFORMS[platform])
            missing = {name for name, weight in defaults.items() if weight and name not in stored.weights}
            if missing:
                found.setdefault(organization(snapshot, number).id, set()).update(missing)
    if not found:
        return Finding("ok", "all saved weights know every signal")
    ordered = {name: sorted(missing, key=CATALOG_ORDER.__getitem__) for name, missing in found.items()}
    parts = [f"{', '.join(missing)} in those of {name}" for name, missing in ordered.items()]
    do = "preview these signals with their default weights in the console, and save them there"
    return Finding("warning", f"count 0, since weights were saved before: {_named(parts, 'of ')}", do)


def recounts_of(store: Readable) -> Finding:
    """Check whether counts of visitors, accounts and addresses are of all events; a warning while those of an upgraded
    store are being rebuilt (decisions 11.3).
    """
    with store.read() as snapshot:
        left = pending(snapshot)
        oldest = [
            f"{organization(snapshot, number).id} since {timestamp(made_at_ms(recount.counted_from))}"
            for number, recount in left[:NAMED]
        ]
    if not left:
        return Finding("ok", "visitors, accounts and addresses count all their events of 30 days")
    more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
    do = "start the service, or let it run: it rebuilds them from the events, and its log says when they are complete"
    return Finding("warning", f"counts are not rebuilt yet after the upgrade: {'; '.join(oldest)}{more}", do)


OF_ORGANIZATIONS: dict[str, Callable[[Examined], Finding]] = {
    "credit": lambda examined: _of_store(partial(finding_of, now_ms=examined.world.now_ms()), examined),
    "shares": partial(_of_store, shares_of),
    "counts": partial(_of_store, recounts_of),
    "accounts": partial(_of_store, spellings_of),
    "rules": partial(_of_store, rules_of),
    "lists": partial(_of_store, idle_lists_of),
    "weights": partial(_of_store, weights_of),
    "chat links": chat_links,
}
"""The last checks: what organizations have, and what is missing for it."""


def _short_of_credit(found: Outlook) -> str | None:
    known = found.credit
    if known is None or known.state == "enough":
        return None
    if known.state == "used_up" or known.days is None:
        return f"{found.organization_id} has used up its credit: its production traffic is refused (402)"
    return f"the credit of {found.organization_id} covers {known.days:.1f} days"
