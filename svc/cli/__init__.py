"""The program `svc`. Output for people by default, one JSON object with `--json`.

Exit status: 0 done, 1 refused with one clear line, 2 usage (decisions 10).

A command is imported when it is asked for: `svc --help` and `svc --version` load nothing of the service.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, MutableMapping
from importlib import import_module
from typing import NamedTuple, NoReturn

import click

import svc
from svc.domain.errors import OperatorError


class CommandLocation(NamedTuple):
    """Where a command is defined, so that it can be listed without importing it."""

    module: str
    """Below `svc.cli`; the command has its own name there."""
    summary: str
    """Its line in `svc --help`."""


COMMANDS: dict[str, CommandLocation] = {
    "audit": CommandLocation("audit", "Show who changed what, when and from where."),
    "backup": CommandLocation("backup", "Take a verified snapshot of a data directory."),
    "check": CommandLocation("data", "Check every invariant of a store or a snapshot."),
    "collection": CommandLocation("documents", "Print the request collection for API tools."),
    "console": CommandLocation("console", "Sign in to the console."),
    "data": CommandLocation("data", "Show, install and update network databases and lists."),
    "dev": CommandLocation("dev", "Start a development service from nothing."),
    "events": CommandLocation("events", "List, explain and follow identifications."),
    "export": CommandLocation("export", "Write events or a visitor to a file."),
    "inspect": CommandLocation("inspect", "Look into a store or a snapshot, read-only."),
    "key": CommandLocation("keys", "Issue, list and revoke API keys."),
    "openapi": CommandLocation("documents", "Print the OpenAPI document."),
    "org": CommandLocation("organizations", "Manage organizations, credit, billing and limits."),
    "pepper": CommandLocation("pepper", "Replace the pepper, which ends every key."),
    "replay": CommandLocation("replay", "Run a file of reports through the pipeline."),
    "restore": CommandLocation("backup", "Make a data directory from a backup."),
    "serve": CommandLocation("serve", "Run the service."),
    "signals": CommandLocation("signals", "List every signal with its weights."),
    "store": CommandLocation("store", "Compact the file of a store."),
    "visitor": CommandLocation("visitors", "Show, list, export and erase visitors."),
    "webhook": CommandLocation("webhooks", "Receive, verify and recover webhook deliveries."),
}


class LazyCommands(MutableMapping[str, click.Command]):
    """The commands by name, each imported when it is looked up."""

    def __init__(self) -> None:
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            self._loaded[name] = getattr(import_module(f"svc.cli.{COMMANDS[name].module}"), name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        raise TypeError(f"{name} is a command only where COMMANDS names it")

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{name} is a command as long as COMMANDS names it")

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Program(click.Group):
    """The group `svc`. Its help comes from `COMMANDS`, so that none of the commands is imported for it."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line for each command, from `COMMANDS`."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].summary) for name in self.list_commands(ctx)])


@click.group(
    cls=Program,
    commands=LazyCommands(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(svc.__version__, prog_name="svc", message=f"%(prog)s, version %(version)s ({svc.DISTRIBUTION})")
@click.pass_obj
def program(begin: Callable[[], None] | None) -> None:
    """Visitor identification that you host yourself.

    \b
    Start here:    svc dev
    Production:    svc org create NAME --data DIR, svc key issue ..., svc serve --data DIR
    Back-testing:  svc replay FILE
    """  # noqa: D301  click reads \b as "leave these lines as they are"
    if begin is not None:
        begin()


def main() -> None:
    """Entry point. Logs go to standard error; an `OperatorError` becomes one line and its exit status, wrong usage
    status 2, Ctrl-C 130 (decisions 10). Where the reader of the output has gone, the end is quiet, with status 1.
    """
    try:
        program(prog_name="svc", standalone_mode=False, obj=_log_to_standard_error)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.UsageError as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except click.ClickException as error:
        _fail(error.message, error.exit_code)
    except OperatorError as error:
        _fail(error.line, error.exit_status)
    except BrokenPipeError:
        _end_quietly()


def _end_quietly() -> NoReturn:
    """Whoever read the output has seen enough, as `| head` has: what is still buffered goes nowhere. The status is that
    of click, which ends like this where it is the command that writes.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)


def _fail(line: str, status: int) -> NoReturn:
    click.echo(f"svc: {line}", err=True)
    sys.exit(status)


def _log_to_standard_error() -> None:
    """Before any command, and not for callers within the process, who have their own logging."""
    from svc.cli.logs import set_up_logging  # noqa: PLC0415  only for a command that runs

    set_up_logging()
