"""`svc rule`: the rules of an organization, their revisions, and files of them, read with the position of a fault."""

from __future__ import annotations

import json
from typing import IO

import click
import msgspec

from svc.command.help import examples
from svc.command.operation import Operation, OrganizationGroup
from svc.command.output import CommandError, kind_option, readable, show_json
from svc.features.rules.jobs import author_name, revisions, ruleset_in_force
from svc.features.rules.proposal_routes import proposed_rules
from svc.features.rules.ruleset import Rule, RuleMode, Ruleset
from svc.features.rules.tables import RULE_PROPOSALS
from svc.identify.model import RuleAction
from svc.identify.velocity.counts import KINDS, EnvironmentKind
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.struct_fields import record_of
from svc.kernel.values.text_files import NotTextError, decode_text
from svc.kernel.values.timestamps import timestamp


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A rule in a file, as the API takes it."""

    name: str
    condition: str
    action: RuleAction
    mode: RuleMode = "active"
    note: str = ""
    id: str | None = None


class RulesetFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `svc rule export` writes and `svc rule set` reads."""

    revision: int
    rules: tuple[_Line, ...]

    def rule(self, at: int, new_id: str) -> Rule:
        """Return the rule at this place, from 0; with `new_id` where it has none."""
        one = self.rules[at]
        return record_of(Rule, one, id=one.id or new_id)


def read_ruleset(name: str, content: bytes) -> RulesetFile:
    """Return the ruleset of a file. Raises `CommandError` with line and column of invalid JSON, or with the path of a
    value of another form.
    """
    try:
        text = decode_text(content)
    except NotTextError as error:
        raise CommandError(f"{name} {error}") from None
    try:
        return msgspec.json.decode(text, type=RulesetFile)
    except msgspec.ValidationError as error:
        raise CommandError(f"{name}: {error}; write a file as `svc rule export` does") from None
    except msgspec.DecodeError as error:
        raise CommandError(f"{name}: {_position(text, str(error))}") from None


def _position(text: str, message: str) -> str:
    """Return why text is not JSON, with line and column from 1."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    return message


def refused(name: str, refusal: Refusal) -> CommandError:
    """Return the error for rules that cannot be in force. It lists each fault with the position of its rule, and for a
    condition line and column.
    """
    faults = [f"{detail.field}: {detail.issue}" for detail in refusal.details if detail.issue != "invalid_condition"]
    return CommandError("; ".join([f"{name}: {refusal.message}", *faults]))


@click.group(cls=OrganizationGroup)
def rule() -> None:
    """Show, export and set the rules that decide."""


@rule.command("show", reads=True, epilog=examples("svc rule show ORG", "svc rule show ORG --environment test --json"))
@kind_option
def show_rules(operation: Operation, kind: EnvironmentKind) -> None:
    """Show the rules in their order: the first active one that matches decides."""
    rows = [msgspec.structs.asdict(one) for one in _all(operation, kind)[0].rules]
    operation.show_rows(rows, "rules", ("name", "action", "mode", "condition"))


@rule.command(
    "history", reads=True, epilog=examples("svc rule history ORG", "svc rule history ORG --environment test --json")
)
@kind_option
def list_revisions(operation: Operation, kind: EnvironmentKind) -> None:
    """List the revisions of the ruleset, newest first, with who saved each and when."""
    found = _all(operation, kind)
    with operation.store.read() as snapshot:
        names = {who: author_name(snapshot, operation.number, who) for who in {each.saved_by for each in found}}
    rows = [
        {
            "revision": each.revision,
            "saved_at": timestamp(each.saved_at_ms) if each.revision else None,
            "saved_by": each.saved_by or None,
            "name": names[each.saved_by],
            "rules": len(each.rules),
        }
        for each in found
    ]
    operation.show_rows(rows, "revisions", ("revision", "saved_at", "saved_by", "name", "rules"))


@rule.command("proposals", reads=True, epilog=examples("svc rule proposals ORG", "svc rule proposals ORG --json"))
@kind_option
def list_proposals(operation: Operation, kind: EnvironmentKind) -> None:
    """List the rules that members propose to an admin, oldest first."""
    number = operation.number
    with operation.store.read() as snapshot:
        found = [row for _, row in snapshot.scan(RULE_PROPOSALS, number, KINDS.index(kind))]
        rules = [msgspec.to_builtins(proposed_rules(snapshot, number, kind, each)) for each in found]
    rows = [
        {
            "id": each.id,
            "created_at": timestamp(each.created_at_ms),
            "author": each.author,
            "note": each.note,
            "revision": each.revision,
            "rules": proposed,
        }
        for each, proposed in zip(found, rules, strict=True)
    ]
    operation.show_rows(rows, "proposals", ("created_at", "author", "note", "id"))


@rule.command(
    "export",
    reads=True,
    has_json=False,
    epilog=examples("svc rule export ORG > rules.json", "svc rule export ORG --revision 3"),
)
@click.option("--revision", type=click.IntRange(0), help="Rules of an earlier revision; those in force when not given.")
@kind_option
def export_rules(operation: Operation, revision: int | None, kind: EnvironmentKind) -> None:
    """Write the ruleset as JSON, as the API and `svc rule set` take it.

    Rules of an earlier revision are written with the revision that is in force: importing them restores them.
    """
    in_force, *earlier = _all(operation, kind)
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


@rule.command(
    "set",
    epilog=examples("svc rule set ORG rules.json", "svc rule set ORG rules.json --environment test --json"),
)
@click.argument("file", type=click.File("rb"))
@kind_option
def import_rules(operation: Operation, file: IO[bytes], kind: EnvironmentKind) -> None:
    """Put the ruleset of a file in force, as a whole. Its revision must be the one in force."""
    body = msgspec.to_builtins(read_ruleset(file.name, file.read()))
    of = {"environment": kind}
    saved = operation.call("rules.routes.saveRules", query=of, body=body, about=file.name, recorded=of)
    if operation.as_json:
        show_json(saved)
    else:
        click.echo(f"Revision {saved['revision']} is in force, with {len(saved['rules'])} rules.")
    for warning in saved.get("warnings", ()):
        click.echo(f"Warning: {readable(warning)}.", err=True)


def _all(operation: Operation, kind: EnvironmentKind) -> list[Ruleset]:
    """Return the ruleset in force and the earlier ones, newest first."""
    number = operation.number
    with operation.store.read() as snapshot:
        return [ruleset_in_force(snapshot, number, kind), *revisions(snapshot, number, kind)]
