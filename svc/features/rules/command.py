"""`svc rule`: the rules of an organization, with those that were in force before, and files of them."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import click
import msgspec

from svc.command.changes import Change, commit, operator
from svc.command.data_directory import account, opened, reading_directory
from svc.command.help import CommandGroup, examples
from svc.command.output import CommandError, data_option, json_option, settings, show_json, show_table
from svc.features.lists.standing import ruleset_warnings
from svc.features.rules.checking import condition_warnings
from svc.features.rules.files import read_ruleset, refused
from svc.features.rules.jobs import checked_rules, revisions, ruleset_in_force, save_rules
from svc.features.rules.ruleset import Ruleset
from svc.identify.velocity.counts import EnvironmentKind
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.timestamps import timestamp
from svc.world import World, twenty_characters

_environment = click.option(
    "--environment",
    "kind",
    type=click.Choice(("live", "test")),
    default="live",
    show_default=True,
    help="live is production, test staging and development.",
)


@click.group(cls=CommandGroup)
def rule() -> None:
    """Show, export and set the rules that decide."""


@rule.command("show", epilog=examples("svc rule show ORG", "svc rule show ORG --environment test --json"))
@click.argument("organization_id", metavar="ORG")
@_environment
@data_option
@json_option
def show_rules(organization_id: str, kind: EnvironmentKind, directory: Path, as_json: bool) -> None:
    """Show the rules in their order: the first active one that matches decides."""
    ruleset = _in_force(organization_id, kind, directory)
    rows = [msgspec.structs.asdict(one) for one in ruleset.rules]
    show_table(rows, ("name", "action", "mode", "condition"), "rules", as_json=as_json)


@rule.command("history", epilog=examples("svc rule history ORG", "svc rule history ORG --environment test --json"))
@click.argument("organization_id", metavar="ORG")
@_environment
@data_option
@json_option
def list_revisions(organization_id: str, kind: EnvironmentKind, directory: Path, as_json: bool) -> None:
    """List the revisions of the ruleset, newest first, with who saved each and when."""
    rows = [
        {
            "revision": found.revision,
            "saved_at": timestamp(found.saved_at_ms) if found.revision else None,
            "saved_by": found.saved_by or None,
            "rules": len(found.rules),
        }
        for found in _all(organization_id, kind, directory)
    ]
    show_table(rows, ("revision", "saved_at", "saved_by", "rules"), "revisions", as_json=as_json)


@rule.command("export", epilog=examples("svc rule export ORG > rules.json", "svc rule export ORG --revision 3"))
@click.argument("organization_id", metavar="ORG")
@click.option("--revision", type=click.IntRange(0), help="Rules of an earlier revision; those in force when not given.")
@_environment
@data_option
def export_rules(organization_id: str, revision: int | None, kind: EnvironmentKind, directory: Path) -> None:
    """Write the ruleset as JSON, as the API and `svc rule set` take it.

    Rules of an earlier revision are written with the revision that is in force: importing them restores them.
    """
    in_force, *earlier = _all(organization_id, kind, directory)
    wanted = in_force if revision is None else next((one for one in earlier if one.revision == revision), None)
    if revision == in_force.revision:
        wanted = in_force
    if wanted is None:
        raise CommandError(f"there is no revision {revision}, or it is kept no longer; `svc rule history` lists them")
    rules = [msgspec.structs.asdict(one) for one in wanted.rules]
    if wanted is not in_force:
        known = {one.id for one in in_force.rules}
        rules = [one if one["id"] in known else {**one, "id": None} for one in rules]
    show_json({"revision": in_force.revision, "rules": rules})


@rule.command("set", epilog=examples("svc rule set ORG rules.json", "svc rule set ORG rules.json --environment test"))
@click.argument("organization_id", metavar="ORG")
@click.argument("file", type=click.File("rb"))
@_environment
@data_option
def import_rules(organization_id: str, file: IO[bytes], kind: EnvironmentKind, directory: Path) -> None:
    """Put the ruleset of a file in force, as a whole. Its revision must be the one in force."""
    sent = read_ruleset(file.name, file.read())
    world = World.real()
    given = [(one.id, sent.rule(at, "rul_" + twenty_characters(world.entropy))) for at, one in enumerate(sent.rules)]

    with opened(directory) as found:
        number = account(found.store, organization_id).organization.number

        def job(transaction: Transaction) -> Ruleset:
            kept = [one for _, one in given]
            refusal = checked_rules(transaction, number, kind, given)
            saved = refusal or save_rules(transaction, number, kind, sent.revision, kept, operator().id, world.now_ms())
            if isinstance(saved, Refusal):
                raise refused(file.name, saved)
            return saved

        asked = {"environment": kind, "rules": len(given)}
        saved = commit(found, world, job, lambda _: Change(number, organization_id, asked))
    click.echo(f"Revision {saved.revision} is in force, with {len(saved.rules)} rules.")
    for warning in (*ruleset_warnings(saved), *condition_warnings(saved.rules, kind)):
        click.echo(f"Warning: {warning}.", err=True)


def _in_force(organization_id: str, kind: EnvironmentKind, directory: Path) -> Ruleset:
    return _all(organization_id, kind, directory)[0]


def _all(organization_id: str, kind: EnvironmentKind, directory: Path) -> list[Ruleset]:
    """The ruleset in force, and those before it, newest first."""
    with reading_directory(directory, settings()) as store, store.read() as snapshot:
        number = account(store, organization_id).organization.number
        return [ruleset_in_force(snapshot, number, kind), *revisions(snapshot, number, kind)]
