"""Decisions 10: what help and completion show. Every example under a command is one that the command accepts."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import click
import pytest

from svc.cli import COMMANDS, SECTIONS, program
from svc.command.help import SHELLS
from tests.spec.commands import Run
from tests.support.process import finish

pytestmark = pytest.mark.only_on("lmdb", "it opens no store")

SHELL_ENDS = (">>", "|", ">")
SAME_COMMAND = {f"{subject} export": ["export", subject] for subject in ("visitor", "account")}
VERBS = {
    *("Add", "Check", "Compact", "Confirm", "Copy", "Count", "Create", "Delete", "Do", "Drop", "Erase", "Explain"),
    *("Export", "Fetch", "Follow", "Give", "Go", "Import", "Include", "Invite", "Issue", "Keep", "Label", "Let"),
    *("List", "Look", "Make", "Manage", "Print", "Put", "Queue", "Rebuild", "Receive", "Remove", "Replace"),
    *("Revoke", "Rewrite", "Run", "Say", "Serve", "Set", "Show", "Sign", "Start", "Stop", "Suggest", "Take"),
    *("Upgrade", "Verify", "Wait", "Write"),
}
FILE = re.compile(r"[A-Za-z/.-]+[.](json|jsonl|jsonl[.]gz|toml|pem|csv)")


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


LEAVES = dict(leaves(program))


def shown(command: click.Command) -> list[str]:
    """The examples, without the comments behind them."""
    lines = (command.epilog or "").splitlines()
    return [line.strip() for line in lines if line.startswith("  ")]


def test_every_command_is_in_one_section_of_the_help(run: Run):
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(COMMANDS)
    text = run("--help").out
    for section in SECTIONS:
        assert f"\n{section}:\n" in text
    assert "Examples:\n" in text
    assert not [line for line in text.splitlines() if len(line) > 100]


def described(group: click.Group, path: str = "svc") -> Iterator[tuple[str, str]]:
    """(command, or command and flag; its help)."""
    for name, command in group.commands.items():
        here = f"{path} {name}"
        yield here, command.help or ""
        yield from (
            (f"{here} {param.opts[0]}", param.help or "")
            for param in command.params
            if isinstance(param, click.Option) and param.is_flag
        )
        if isinstance(command, click.Group):
            yield from described(command, here)


def test_the_help_of_a_command_or_a_flag_begins_with_what_it_does():
    helps = dict(described(program))
    assert {"svc list", "svc org list", "svc serve --init"} <= set(helps)
    summaries = {f"svc {name} in svc --help": location.summary for name, location in COMMANDS.items()}
    begins = {name: re.match(r"\w*", text.strip())[0] for name, text in (helps | summaries).items()}
    assert {name: word for name, word in begins.items() if word not in VERBS} == {}


@pytest.mark.parametrize(
    "group", [name for name, command in program.commands.items() if isinstance(command, click.Group)]
)
def test_the_help_of_a_group_cuts_no_summary(run: Run, group: str):
    _, heading, commands = run(group, "--help").out.partition("\nCommands:\n")
    assert heading
    assert not [line for line in commands.splitlines() if line.endswith("...") or len(line) > 100]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("org list", "set SVC_DATA once for all commands"),
        ("--data D org list", "Options go behind the command: `svc COMMAND ... --data`."),
        ("org --json list", "Options go behind the command: `svc org COMMAND ... --json`."),
        ("org --hel", "Did you mean '--help'?"),
        ("serve --port 8080", "No such option '--port'. Use --bind."),
        ("serve --nothing", "No such option '--nothing'."),
        ("org list --port 8080", "No such option '--port'."),
        ("start", "No such command 'start'. Use `svc serve`."),
        ("serv", "Did you mean 'serve'?"),
        ("serve --workers many", "'many' is neither a number of processes nor `auto`."),
        ("serve --workers 0", "0 is not in the range"),
    ],
)
def test_wrong_usage_says_what_to_do_next(run: Run, monkeypatch: pytest.MonkeyPatch, line: str, says: str):
    monkeypatch.delenv("SVC_DATA", raising=False)
    ran = run(*line.split())
    ran.assert_usage()
    assert says in ran.err.splitlines()[-1]


@pytest.mark.parametrize("path", LEAVES)
def test_every_command_has_valid_examples(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Parsed to the end, without the command being run. Names of files exist here; ORG and the like are any text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SVC_DATA", str(tmp_path))
    command, examples = LEAVES[path], shown(LEAVES[path])
    assert examples
    for example in examples:
        words = shlex.split(example.partition("svc ")[2], comments=True)
        arguments = list(takewhile(lambda word: word not in SHELL_ENDS, (word.rstrip(")") for word in words)))
        assert arguments[: len(path.split())] in (path.split(), SAME_COMMAND.get(path)), example
        placed = [place(word, tmp_path) for word in arguments[len(path.split()) :]]
        with command.make_context(path, placed):  # closes the files that it has opened
            pass


@pytest.mark.parametrize("path", LEAVES)
def test_no_example_has_a_secret_among_its_arguments(path: str):
    """Every user of the machine can read arguments, and shells and schedulers log them."""
    for example in shown(LEAVES[path]):
        before, _, arguments = example.partition("svc ")
        assert "svc_" not in arguments, example
        assert before in ("", "source <(", *(f"{name}={value} " for name, value in SET_BEFORE.items())), example


SET_BEFORE = {"SVC_CONFIG": "/etc/svc.toml", "WEBHOOK_SECRET": "svc_whsec_..."}
"""Variables of examples."""
PRINT_ONE_FORM = {
    *("svc dev", "svc docs", "svc completion", "svc openapi", "svc collection", "svc rule export"),
    *(f"svc {words}" for words in ("export events", "export visitor", "export account")),
    *("svc visitor export", "svc account export"),
}
"""Commands whose output has the form of a document or a file, and the two that serve until Ctrl-C."""


def test_a_command_prints_json_if_asked_for_unless_its_output_has_a_form_of_its_own():
    """Decisions 10: a script reads no table."""
    without = {
        f"svc {path}" for path, command in LEAVES.items() if not any("--json" in each.opts for each in command.params)
    }
    assert without == PRINT_ONE_FORM


def place(word: str, folder: Path) -> str:
    """The word; the name of a file as one that is there."""
    if not FILE.fullmatch(word):
        return word
    file = folder / Path(word).name
    file.touch()
    return str(file)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_completion_script_is_valid_for_the_shell(run: Run, shell: str):
    script = run("completion", shell).out
    assert "_SVC_COMPLETE" in script
    found = shutil.which(shell)
    if found is not None:
        subprocess.run([found, "-n"], input=script, text=True, check=True, timeout=30)


def test_a_completion_script_requires_a_known_shell(run: Run):
    run("completion", "tcsh").assert_usage()
    run("completion").assert_usage()


def completed(*words: str) -> list[str]:
    environment = {
        **os.environ,
        "_SVC_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("svc", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = finish(env=environment)
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_tab_completes_commands_options_and_choices():
    assert completed("do") == ["docs", "doctor"]
    assert completed("--ver") == ["--version"]
    assert completed("events", "") == ["count", "get", "list", "tail"]
    assert completed("completion", "") == list(SHELLS)
    assert "--since" in completed("events", "list", "--s")
    assert completed("webhook", "trigger", "visitor") == ["visitor.suspect"]
