"""The man page svc(1), from the help of each command and from the settings, and the short one of the Debian package's
own command: `python -m tools.man_page NAME` prints `svc.1` or `svc-admin.8`.

What may live here: the form of the page, in the macros of man(7), and what is said of the program as a whole. Every
other word is that of `--help` and of the settings.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise

import click

from svc.cli import COMMANDS, SECTIONS, program
from svc.kernel.config import Config
from svc.kernel.config_loading import PREFIX
from svc.kernel.values.fields import fields_of
from tools import reference
from tools.archives import built_at_s
from tools.versions import version

WIDTH = 66
"""Of a line before marks and escapes are put in. The program that shows the page breaks lines anew."""
STATUS = {
    "0": "Done. `svc serve` ends so after SIGTERM, when what it had begun is done.",
    "1": "Refused, or failed: one line on standard error says why. `svc check`, `svc doctor` and `svc config check` "
    "end so when they found a problem.",
    "2": "The command line is wrong, or `svc serve` found an empty data directory.",
    "3": "The change is made, but its output could not be written. Do not repeat the command: `svc audit` shows it.",
    "130": "Interrupted by Ctrl-C.",
}
VARIABLES = {
    "SVC_DATA": "The data directory, in place of `--data`.",
    "SVC_CONFIG": "The TOML file of settings, for the service and for every command.",
    "SVC_INIT_ORGANIZATION": "Name of the organization that `svc serve --init` creates; `default` when not set.",
    "SVC_INIT_ORIGINS": "Origins of its public key, with commas between them; without any, no public key is issued.",
    "SVC_INIT_CREDIT_USD": "Its prepaid credit in dollars; it is postpaid when not set.",
    "SVC_INIT_KEYS_FILE": "File for its keys, in place of standard output.",
    "SVC_UNPACK_DIR": "Folder into which the executable of one file unpacks itself; a cache folder when not set.",
    "NO_COLOR": "When set, nothing is printed in color.",
}
"""Those that are no settings; `tests/test_man_page.py` holds them against the program."""
FILES = {
    "/etc/svc.toml": "Settings of the service that the Debian package runs.",
    "/etc/svc/environment": "Its SVC_* variables, one on a line; may be missing.",
    "/var/lib/svc": "Its data directory: store, pepper and network data. Belongs to the user `svc`.",
    "DIRECTORY/pepper": "32 random bytes without which no API key verifies. Keep a copy where the backups are not.",
    "DIRECTORY/before-upgrade": "The store as it was before a new release upgraded it.",
    "DIRECTORY/serve.lock": "Held by the one service of the data directory.",
}


def page(at_s: int) -> str:
    """The page in roff, with the date of a moment in Unix seconds."""
    date = datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d")
    lines = [
        f'.TH SVC 1 "{date}" "svc {version()}" "User Commands"',
        *_section("NAME", r"svc \- visitor identification that you host yourself"),
        *_section("SYNOPSIS", r".B svc", r".I COMMAND", r"[\fIOPTION\fR]..."),
        *_section("DESCRIPTION", *_paragraphs(_DESCRIPTION), *_summaries()),
        *_section("COMMANDS"),
        *_commands(program, click.Context(program, info_name="svc")),
        *_section("EXIT STATUS", *_entries((status, words) for status, words in STATUS.items())),
        *_section("ENVIRONMENT", *_paragraphs(_ENVIRONMENT), *_entries([*VARIABLES.items(), *_settings()])),
        *_section("FILES", *_entries(FILES.items())),
        *_section("EXAMPLES", *_shown(program)),
        *_section("SEE ALSO", *_paragraphs(_SEE_ALSO)),
    ]
    return "\n".join(_without_empty_paragraphs(lines)) + "\n"


def admin_page(at_s: int) -> str:
    """The page svc-admin(8), of the command that the Debian package adds."""
    date = datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d")
    lines = [
        f'.TH SVC\\-ADMIN 8 "{date}" "svc {version()}" "System Administration"',
        *_section("NAME", r"svc\-admin \- run a command of svc for the service of this machine"),
        *_section("SYNOPSIS", r".B svc\-admin", r".I COMMAND", r"[\fIOPTION\fR]..."),
        *_section("DESCRIPTION", *_paragraphs(_ADMIN)),
        *_section("EXAMPLES", ".EX", *map(_text, _ADMIN_EXAMPLES), ".EE"),
        *_section("SEE ALSO", ".BR svc (1)"),
    ]
    return "\n".join(_without_empty_paragraphs(lines)) + "\n"


def _without_empty_paragraphs(lines: list[str]) -> Iterator[str]:
    """The lines without the paragraphs that a heading begins itself."""
    for before, line in pairwise(["", *lines]):
        if line != ".PP" or not before.startswith((".SH ", ".SS ")):
            yield line


def _section(title: str, *lines: str) -> list[str]:
    return [f".SH {title}", *lines]


def _summaries() -> Iterator[str]:
    """The commands as `svc --help` lists them."""
    width = max(map(len, COMMANDS))
    yield from (".nf",)
    for title, commands in SECTIONS.items():
        yield from ("", f"{_text(title)}:")
        yield from (
            f"  \\fB{_text(name)}\\fR{' ' * (width - len(name))}  {_text(one.summary)}"
            for name, one in commands.items()
        )
    yield ".fi"


def _commands(command: click.Command, context: click.Context) -> Iterator[str]:
    """The command and all below it, in the order of their names."""
    if context.parent is not None:
        yield f".SS {_text(context.command_path)}"
        yield from _help(command)
    if isinstance(command, click.Group):
        for name, below in sorted(command.commands.items()):
            yield from _commands(below, click.Context(below, info_name=name, parent=context))
        return
    operands = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    yield ".PP"
    yield f"\\fB{_text(context.command_path)}\\fR \\fI{_text(' '.join(['[OPTION]...', *operands]))}\\fR"
    records = [param.get_help_record(context) for param in command.params if isinstance(param, click.Option)]
    yield from _entries(record for record in records if record is not None)
    yield from _shown(command)


def _help(command: click.Command) -> Iterator[str]:
    r"""What it does. After the mark `\b`, lines stay as they are, as in `--help`."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield from (".PP", ".nf", *map(marked, paragraph.removeprefix("\b\n").splitlines()), ".fi")
        else:
            yield from _paragraphs(paragraph)


def _shown(command: click.Command) -> Iterator[str]:
    """The examples of its help."""
    shown = [line.strip() for line in (command.epilog or "").splitlines() if line.startswith("  ")]
    if shown:
        yield from (".PP", ".RS 4", ".EX", *map(_text, shown), ".EE", ".RE")


def _entries(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, words in entries:
        yield from (".TP", rf"\fB{_text(name)}\fR", *_wrapped(words))


def _settings() -> Iterator[tuple[str, str]]:
    for field in fields_of(Config):
        yield PREFIX + field.name.upper(), reference.schema_of(field)["description"]


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        yield from (".PP", *_wrapped(paragraph))


def _wrapped(words: str) -> list[str]:
    lines = textwrap.wrap(words, WIDTH, break_on_hyphens=False, break_long_words=False)
    return marked("\n".join(lines)).splitlines()


def marked(text: str) -> str:
    """With what stands between backticks in bold."""
    return re.sub(r"`([^`]+)`", lambda found: f"\\fB{found[1]}\\fR".replace("\n", "\\fR\n\\fB"), _text(text))


def _text(text: str) -> str:
    """With nothing that roff would take for its own: hyphens stay those that somebody types."""
    escaped = (
        text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("^", "\\(ha").replace("~", "\\(ti")
    )
    return re.sub(r"^(?=\.)", r"\\&", escaped, flags=re.MULTILINE)


_DESCRIPTION = """\
    `svc` runs the service, prepares what it needs, and reads and maintains its data. `svc dev` starts a development
    service from nothing. For production, create an organization and its keys, then run `svc serve`.

    Commands print text, or one JSON object with `--json`. Commands that take `--data` also work while the service
    runs, which applies changes from its next request. Run them as the user of the service. Commands that destroy
    something ask for confirmation, and need `--yes` if standard input is not a terminal.

    `svc --help` lists the commands, `svc COMMAND --help` describes one, `svc --version` prints the version, and
    `svc completion bash` (or `zsh`, `fish`) a completion script:
"""
_ENVIRONMENT = """\
    Every setting is a variable, too, which overrides the file. Lists have commas between their values.
"""
_SEE_ALSO = """\
    svc-admin(8).

    `svc docs` serves the documentation on this machine; a running service has it at /docs/.
"""
_ADMIN = """\
    `svc-admin` runs `svc COMMAND` as the service that the Debian package installs runs: as the user `svc`, with the
    settings in `/etc/svc.toml`, the variables in `/etc/svc/environment`, and the data directory `/var/lib/svc`. So no
    key is issued for another region, no other pepper is looked for, and no file belongs to a user whose files the
    service cannot open.

    Run it as root, or as the user `svc`. Files that a command reads or writes are read and written as the user `svc`.
    The exit status is that of `svc`.
"""
_ADMIN_EXAMPLES = (
    'svc-admin org create "My shop"',
    "svc-admin key issue ORG --kind secret --environment production",
    "svc-admin doctor",
)


PAGES: dict[str, Callable[[int], str]] = {"svc.1": page, "svc-admin.8": admin_page}
"""File name, whose ending is the section -> what makes the page of a moment in Unix seconds."""


if __name__ == "__main__":
    sys.stdout.write(PAGES[sys.argv[1]](built_at_s()))
