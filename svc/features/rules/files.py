"""Files of rules: what `svc rule export` writes, read with the position of what is wrong."""

from __future__ import annotations

import json

import msgspec

from svc.command.output import CommandError
from svc.features.rules.ruleset import Rule, RuleMode
from svc.identify.model import RuleAction
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.text_files import NotTextError, decode_text


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
        return Rule(
            id=one.id or new_id,
            name=one.name,
            condition=one.condition,
            action=one.action,
            mode=one.mode,
            note=one.note,
        )


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
    """What is wrong with text that is not JSON, with line and column from 1."""
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
