"""The program `svc`. Output for people by default, one JSON object with `--json`.

Exit status: 0 done, 1 refused with one clear line, 2 usage (decisions 10), 3 done and its output lost.

A command is imported when it is asked for: `svc --help` and `svc --version` load nothing of the service.
"""

from __future__ import annotations

import atexit
import errno
import gc
import io
import os
import resource
import sys
from collections.abc import Callable, Generator, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, NoReturn, TextIO, cast

import click
from click.shell_completion import CompletionItem

import svc
from svc.command.help import CHANGED, clearer, examples
from svc.features.registry import FEATURES
from svc.kernel.values.errors import NO_SPACE, OperatorError, explained

GEN0_THRESHOLD = 50_000
"""Net allocations that start the garbage collector; Python's default is 700. What imports allocate is kept, and
collecting again and again takes a tenth of the CPU of a short command.
"""
_STANDARD_INPUT, _STANDARD_OUTPUT, _STANDARD_ERROR = range(3)


class CommandLocation(NamedTuple):
    """Where a command is defined, so that it can be listed without importing it."""

    module: str
    """Below the package; the command has its own name there."""
    summary: str
    """Its line in `svc --help`."""
    attribute: str = ""
    """The name that it has in its module, where that is another one."""
    package: str = "svc"
    """Another one is shipped with `svc`, imports it, and may be missing (docs/adr/0198)."""

    @property
    def full_name(self) -> str:
        """Return the module with its package."""
        return f"{self.package}.{self.module}"


_OWN: dict[str, dict[str, CommandLocation]] = {
    "Get started": {
        "dev": CommandLocation("cli.develop.dev", "Start a development service from nothing."),
        "doctor": CommandLocation("cli.serve.doctor", "Check that a service can run, or runs, here."),
        "completion": CommandLocation("command.help", "Print the completion script of a shell."),
    },
    "Run the service": {
        "serve": CommandLocation("cli.serve.serve", "Run the service."),
        "config": CommandLocation("cli.serve.config_check", "Check the settings."),
        "data": CommandLocation("cli.store.data", "Show and update network databases and lists."),
    },
    "Read and export": {
        "signals": CommandLocation("cli.develop.signals", "List every signal with its weights."),
        "replay": CommandLocation("command", "Run a file of reports through the pipeline.", package="svc_replay"),
    },
    "Manage access": {},
    "Maintain the store": {
        "backup": CommandLocation("cli.store.backup", "Take a verified snapshot of a data directory."),
        "restore": CommandLocation("cli.store.backup", "Make a data directory from a backup."),
        "check": CommandLocation("cli.store.check", "Check every invariant of a store or a snapshot."),
        "upgrade": CommandLocation("cli.store.upgrade_command", "Upgrade a store, or try a release on a copy."),
        "inspect": CommandLocation("cli.store.inspect", "Look into a store or a snapshot, read-only."),
        "store": CommandLocation("cli.store.store", "Compact a store, or move it to another engine."),
        "pepper": CommandLocation("cli.store.store", "Replace the pepper, which ends every key."),
    },
    "Documentation": {
        "docs": CommandLocation("cli.develop.docs", "Serve the documentation on this machine."),
        "openapi": CommandLocation("cli.develop.documents", "Print the OpenAPI document."),
        "collection": CommandLocation("cli.develop.documents", "Print the request collection for API tools."),
    },
}
"""The commands that are of no feature, in the sections of `svc --help`."""


def _of_features(section: str) -> Iterator[tuple[str, CommandLocation]]:
    for feature in FEATURES:
        for name, command in feature.commands.items():
            if command.section == section:
                module = f"{feature.package}.{command.module}".removeprefix("svc.")
                yield name, CommandLocation(module, command.summary, command.attribute)


SECTIONS = {section: dict(_of_features(section)) | own for section, own in _OWN.items()}
"""The commands in the sections of `svc --help`, in this order."""
COMMANDS = dict(sorted(pair for commands in SECTIONS.values() for pair in commands.items()))


class LazyCommands(MutableMapping[str, click.Command]):
    """The commands by name, each imported when it is looked up."""

    def __init__(self) -> None:
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            location = COMMANDS[name]
            try:
                module = import_module(location.full_name)
            except ModuleNotFoundError as error:
                if error.name not in (location.package, location.full_name):
                    raise
                raise click.ClickException(
                    f"`svc {name}` is in the package {location.package}, which is not installed beside svc: "
                    f"install {svc.DISTRIBUTION} again, which has both"
                ) from None
            self._loaded[name] = getattr(module, location.attribute or name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        raise TypeError(f"{name} is a command only where COMMANDS names it")

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{name} is a command as long as COMMANDS names it")

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class OutputLostError(OperatorError):
    """What a command should change is changed, and what it should print is lost: who takes that for a refusal and
    tries again gives credit twice, or issues a second key.
    """

    exit_status = 3

    @property
    def line(self) -> str:
        """See `OperatorError`."""
        return (
            f"the change is made, but not all of its output could be written ({self}): do not repeat it; "
            "`svc audit` shows it"
        )


_OUTPUT_LOST = (*NO_SPACE, errno.EPIPE, errno.EIO)


class Program(click.Group):
    """The group `svc`. Its help comes from `COMMANDS`, so that none of the commands is imported for it."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click's form
        """Write one line for each command, section by section."""
        width = max(map(len, COMMANDS))
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), command.summary) for name, command in commands.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command to the last byte of its output. Raises `OutputLostError`."""
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except OSError as error:
            if ctx.meta.get(CHANGED) and error.filename is None and error.errno in _OUTPUT_LOST:
                raise OutputLostError(error.strerror) from error
            raise

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that begin so, without importing a command."""
        commands = [
            CompletionItem(name, help=location.summary)
            for name, location in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return commands + click.Command.shell_complete(self, ctx, incomplete)


@click.group(
    cls=Program,
    commands=LazyCommands(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "svc dev                                      # a development service, from nothing",
        "svc org create Shop --data /var/lib/svc      # then for production: an organization,",
        "svc key issue ORG --kind secret --environment production --data /var/lib/svc",
        "svc serve --data /var/lib/svc                # and the service",
        "svc events tail ORG --since 1h --data /var/lib/svc",
        "svc doctor --data /var/lib/svc               # what is wrong, and what to do",
        after="`svc COMMAND --help` describes a command, with examples. SVC_DATA replaces --data.",
    ),
)
@click.version_option(svc.__version__, prog_name="svc", message=f"%(prog)s, version %(version)s ({svc.DISTRIBUTION})")
@click.pass_obj
def program(begin: Callable[[], None] | None) -> None:
    """Visitor identification that you host yourself."""
    if begin is not None:
        begin()


def main() -> None:
    """Run the program. Logs go to standard error; an `OperatorError` becomes one line and its exit status, a file or
    folder that cannot be used one line and status 1, wrong usage status 2, Ctrl-C 130 (decisions 10), a change whose
    output is lost 3. If the reader of the output has left, the program ends quietly with status 1.
    """
    gc.set_threshold(GEN0_THRESHOLD)
    atexit.register(gc.freeze)  # the interpreter searches all that is left before it ends, another fifth
    fill_standard_streams()
    _leave_no_core()
    _speak_utf8()
    # structlog and ua_parser would import these where they are installed, a fifth of a start, and never use them here.
    for unused in ("rich", "yaml"):
        sys.modules.setdefault(unused, cast("ModuleType", None))
    try:
        _refuse_what_is_no_text()
        with _without_groups():
            program(prog_name="svc", standalone_mode=False, obj=_log_to_standard_error)
            sys.stdout.flush()
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.UsageError as error:
        _say(clearer(error).show)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except click.ClickException as error:
        _fail(error.message, error.exit_code)
    except OperatorError as error:
        if isinstance(error, OutputLostError):
            _discard(sys.stdout)
        _fail(error.line, error.exit_status)
    except BrokenPipeError:  # the reader of the output has left, as `| head` does
        _discard(sys.stdout)
        sys.exit(1)  # as click does when a command writes to it
    except OSError as error:
        _fail(_unusable(error), 1)


@contextmanager
def _without_groups() -> Generator[None]:
    """Raise an exception that comes alone out of the groups in which nurseries raise it."""
    try:
        yield
    except BaseExceptionGroup as group:
        raise _alone(group) from None


def _alone(error: BaseException) -> BaseException:
    inside: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return _alone(inside[0]) if len(inside) == 1 else error


def fill_standard_streams() -> None:
    """Connect each of descriptors 0 to 2 that is closed with /dev/null, and give the interpreter its stream.

    To be called before anything is opened: a store or a socket that got one of these numbers would receive what is
    meant for a person.
    """
    for descriptor in (_STANDARD_INPUT, _STANDARD_OUTPUT, _STANDARD_ERROR):
        try:
            os.fstat(descriptor)
        except OSError:
            _open_null(descriptor)
    # A stream is `None` where its descriptor was closed when the interpreter started.
    if sys.stdin is None:
        sys.stdin = sys.__stdin__ = _stream(_STANDARD_INPUT, "r")
    if sys.stdout is None:
        sys.stdout = sys.__stdout__ = _stream(_STANDARD_OUTPUT, "w")
    if sys.stderr is None:
        sys.stderr = sys.__stderr__ = _stream(_STANDARD_ERROR, "w")


def _leave_no_core() -> None:
    """Have no core stored if this process or a child of it crashes: it would have the pepper and what visitors sent.
    `faulthandler` says where it happened. Only the soft limit changes: `prlimit` raises it for a process that runs.
    """
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    with suppress(OSError):  # a sandbox may not permit it: the units have LimitCORE=0
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))


def _open_null(descriptor: int) -> None:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened == descriptor:  # the lowest that is free
        os.set_inheritable(opened, True)  # as the standard ones are
    else:
        os.dup2(opened, descriptor)
        os.close(opened)


def _stream(descriptor: int, mode: str) -> TextIO:
    return cast("TextIO", os.fdopen(descriptor, mode, encoding="utf-8", errors="backslashreplace", closefd=False))


def _speak_utf8() -> None:
    """Print in UTF-8 whatever the locale says: JSON has no other encoding, and a name of a customer that a locale has
    no characters for would end a command behind its change.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _refuse_what_is_no_text() -> None:
    """Raise a usage error for an argument or a variable with bytes that are no characters in the locale."""
    for argument in sys.argv[1:]:
        if not _is_text(argument):
            shown = os.fsencode(argument).decode(errors="backslashreplace")
            raise click.UsageError(f"{shown} is not UTF-8 text: check the encoding of the terminal or script")
    for name, value in os.environ.items():
        if name.startswith(("SVC_", "WEBHOOK_SECRET")) and not _is_text(value):
            raise click.UsageError(f"the variable {name} is not UTF-8 text")


def _is_text(given: str) -> bool:
    """Return whether it is without the surrogates in whose form Python gives bytes that are no characters."""
    return not any("\udc80" <= character <= "\udcff" for character in given)


def _unusable(error: OSError) -> str:
    """Return the line for a file that cannot be used, or for an output without space. Raise any other error."""
    if error.filename is None:
        if error.errno not in NO_SPACE:
            raise error
        _discard(sys.stdout)
        return f"cannot write: {error.strerror}; free some space, or write the output elsewhere"
    return explained("cannot use", os.fsdecode(error.filename), error)


def _discard(stream: TextIO) -> None:
    """Discard what is buffered: the interpreter would fail to write it once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _say(say: Callable[[], object]) -> None:
    """Say on standard error why the program ends. The exit status is the same where that is a log on a full disk."""
    try:
        say()
    except OSError:
        _discard(sys.stderr)


def _fail(line: str, status: int) -> NoReturn:
    from svc.command.output import terminal_safe  # noqa: PLC0415  only where a command fails

    _say(partial(click.echo, f"svc: {terminal_safe(line)}", err=True))
    sys.exit(status)


def _log_to_standard_error() -> None:
    """Set up logging before a command. Callers within the process have a logging of their own."""
    from svc.command.logs import set_up_logging  # noqa: PLC0415  only for a command that runs

    set_up_logging()
