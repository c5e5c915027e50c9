"""Decisions 10: whatever is wrong with the input of a command on an organization, it says so and changes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from svc.cli import program
from svc.command.data_directory import opened
from svc.command.handlers import find_route
from svc.command.operation import OrganizationCommand
from tests.spec.commands import Run
from tests.support.backup import Rows, rows_of

NOBODY = "org_" + 20 * "0"
BAD_TEXT = " " + 300 * "?"
"""No id, name, address, account or visitor."""
BAD_VALUE = "?"
"""Of a number, an amount, a time and a choice."""


def organization_commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, OrganizationCommand]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from organization_commands(command, (*words, name))
        elif isinstance(command, OrganizationCommand):
            yield " ".join((*words, name)), command


COMMANDS = dict(organization_commands(program))


def own(command: click.Command) -> list[click.Parameter]:
    """Its parameters without those that every command has, and without flags."""
    common = ("organization_id", "directory", "store", "as_json")
    return [
        each
        for each in command.params
        if each.name not in common and not (isinstance(each, click.Option) and each.is_flag)
    ]


def takes_any_text(parameter: click.Parameter) -> bool:
    return isinstance(parameter.type, click.types.StringParamType | click.Path)


def good_value(parameter: click.Parameter, file: Path) -> str:
    """A value that its type takes."""
    match parameter.type:
        case click.Choice(choices=choices):
            return str(next(iter(choices)))
        case click.types.IntRange(min=least):
            return str(least)
        case click.DateTime():
            return "2026-01"
        case click.File():
            return str(file)
        case kind:
            return {"usd": "1", "time": "1d"}.get(kind.name, BAD_TEXT)


def words_of(command: click.Command, file: Path, bad: click.Parameter | None = None) -> list[str]:
    """Arguments and required options, each with a value of its type, and `bad` with one that is not of its type."""
    words = ["--yes"] if any(each.name == "sure" for each in command.params) else []
    for each in own(command):
        if each.required or each is bad:
            value = BAD_VALUE if each is bad else good_value(each, file)
            words += [value] if isinstance(each, click.Argument) else [each.opts[0], value]
    return words


def names_by_text(command: click.Command) -> bool:
    """Whether an argument is a text or a file, of which those of this test are bad ones."""
    texts = click.types.StringParamType | click.File
    return any(isinstance(each, click.Argument) and isinstance(each.type, texts) for each in own(command))


def bad_inputs(command: click.Command, org: str, file: Path) -> Iterator[list[str]]:
    yield [NOBODY, *words_of(command, file)]
    if names_by_text(command):
        yield [org, *words_of(command, file)]
    for each in own(command):
        if not takes_any_text(each):
            yield [org, *words_of(command, file, each)]


def everything(directory: Path) -> Rows:
    with opened(directory) as found:
        return rows_of(found.store)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_bad_input_is_refused_in_words_and_changes_nothing(run: Run, tmp_path: Path, name: str):
    org = run("org", "create", "Shop", "--json").json["organization_id"]
    file = tmp_path / "file"
    file.write_text('"neither rules nor a table')
    before = everything(tmp_path / "data")
    for words in bad_inputs(COMMANDS[name], org, file):
        ran = run(*name.split(), *words)
        assert (ran.status in (1, 2), ran.out) == (True, ""), words
        assert ran.err.strip(), words
        if ran.status == 1:
            ran.assert_refused("svc: ")
            assert names_by_text(COMMANDS[name]) or words[0] != NOBODY or "there is no organization" in ran.err
    assert everything(tmp_path / "data") == before


def test_the_commands_on_an_organization_are_found():
    assert {"list create", "member invite", "account erase", "rule set", "org credit"} <= set(COMMANDS)


def test_every_route_that_a_command_names_is_there():
    """They are named by text, so that `--help` loads none."""
    files = (Path(__file__).parents[2] / "svc/features").rglob("*command.py")
    named = {
        name for file in files for name in re.findall(r'"([a-z_]+(?:\.[a-z_]+)+\.[a-z]+[A-Z]\w+)"', file.read_text())
    }
    assert {find_route(name).operation_id for name in named} >= {"createList", "eraseVisitor", "getWeightsSuggestion"}
