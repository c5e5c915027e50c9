"""How commands speak: options that many share, times as people type them, and one way to print for people and for
programs.
"""

from __future__ import annotations

import errno
import os
import re
import select
import sys
import unicodedata
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeVar

import click
import msgspec

from svc.kernel.config import Config
from svc.kernel.config_loading import load
from svc.kernel.store.steps import QUIET, Steps
from svc.kernel.values.errors import OperatorError
from svc.kernel.values.timestamps import read_timestamp
from svc.world import World


def has_colors(stream: TextIO) -> bool:
    """Return whether a terminal reads the stream, one that knows colors, and NO_COLOR (no-color.org) is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class _Bars(Steps):
    def __init__(self) -> None:
        self._bar: Any = None
        self._left = 0

    def stage(self, label: str, length: int) -> None:
        self.end()
        self._left = max(length, 1)
        self._bar = click.progressbar(length=self._left, label=f"{label:<24}", file=sys.stderr)
        self._bar.__enter__()

    def step(self, count: int) -> None:
        self._left -= count
        self._bar.update(count)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.update(self._left)
            self.leave()

    def leave(self) -> None:
        """End the line of a bar as it is, and show the cursor again, which bars hide."""
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None


@contextmanager
def progress() -> Generator[Steps]:
    """Show progress bars on standard error in a `with` block, however it ends; give `QUIET` if that is not a terminal,
    or one that cannot move its cursor.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield QUIET
        return
    bars = _Bars()
    try:
        yield bars
        bars.end()
    finally:
        bars.leave()


F = TypeVar("F", bound=Callable[..., Any])

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What moves a terminal's cursor or turns its text around: a customer chooses the names of its keys."""


_UNSEEN_IN_LINES = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""The same but for the line break, which ends a line of JSON or CSV."""


class CommandError(OperatorError):
    """An expected "no": one clear line, exit status 1."""


def directory_option(about: str, *, envvar: str | None = "SVC_DATA", **attributes: Any) -> Callable[[F], F]:
    """Add `--data DIR`, passed on as `directory`. `about` is its help; `attributes` are others of `click.option`."""
    return click.option(
        "--data",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        envvar=envvar,
        show_envvar=envvar is not None,
        help=about,
        **attributes,
    )


def no_directory(or_else: str = "") -> click.UsageError:
    """Return the error to raise if a command was given no data directory. `or_else`: another option that would do."""
    return click.UsageError(f"name the data directory with --data or SVC_DATA{or_else}")


def config_option(about: str) -> Callable[[F], F]:
    """Add `--config FILE`, else the variable SVC_CONFIG, passed on as `file`, or `None`. `about` is its help."""
    return click.option(
        "--config",
        "file",
        type=click.Path(dir_okay=False, path_type=Path),
        envvar="SVC_CONFIG",
        show_envvar=True,
        help=about,
    )


def _keep_store(context: click.Context, _: click.Parameter, url: str | None) -> None:
    context.meta[_STORE] = url


_STORE = "svc.kernel.store"
store_option = click.option(
    "--store",
    metavar="URL",
    expose_value=False,
    is_eager=True,
    callback=_keep_store,
    help="The database with the store, postgresql://USER@HOST/DATABASE, instead of SVC_STORE.",
)
"""`--store URL`: from then on, that of `settings()`."""


def data_option(command: F) -> F:
    """Add `--data DIR`, else the variable SVC_DATA, passed on as `directory`: a usage error without either. Also add
    `--store URL`, which takes the place of the setting `store`.
    """
    return directory_option("The data directory.", required=True)(store_option(command))


def file_option(instead: str) -> Callable[[F], F]:
    """Add `--data DIR` to a command that works on LMDB's file: if the store is in a database, it refuses and says what
    to use `instead`.
    """

    def refuse(context: click.Context, _: click.Parameter, directory: Path) -> Path:
        if not context.resilient_parsing and settings().store is not None:
            raise CommandError(f"the setting `store` names a database, and this is for a store in a file: {instead}")
        return directory

    return directory_option("The data directory.", required=True, callback=refuse)


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
"""`--json`, passed on as `as_json`."""
json_lines_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object a line instead of text."
)
"""The same for a command that prints one after another."""


def settings(file: Path | None = None) -> Config:
    """Return the settings in force for a command: from `file`, else from the file that SVC_CONFIG names, SVC_*
    variables, as for the service, and `store_option`. Raises `ConfigError` as `load` does.
    """
    named = os.environ.get("SVC_CONFIG")
    config = load(file or (Path(named) if named else None), os.environ)
    context = click.get_current_context(silent=True)
    url = None if context is None else context.meta.get(_STORE)
    return config if url is None else msgspec.structs.replace(config, store=url)


kind_option = click.option(
    "--environment",
    "kind",
    type=click.Choice(("live", "test")),
    default="live",
    show_default=True,
    help="live is production, test staging and development.",
)
"""`--environment` of what live and test have each, passed on as `kind`."""
yes_option = click.option("--yes", "sure", is_flag=True, help="Do not ask for confirmation.")
"""`--yes`, passed on as `sure`: skips the question of `confirmed`."""


def confirmed(consequence: str, *, sure: bool) -> None:
    """Return if the operator agrees to `consequence`, or `sure` is set. Raises `CommandError` on a no, and where
    standard input is not a terminal to ask on.
    """
    if sure:
        return
    if not sys.stdin.isatty():
        raise CommandError(f"{consequence} Nothing was changed; add --yes to do it")
    if not click.confirm(f"{consequence} Go on?", err=True):
        raise CommandError("nothing was changed")


class ShownTable(NamedTuple):
    """Records that belong to another one: their name, the records, and the columns that people read of them."""

    name: str
    rows: list[dict[str, Any]]
    columns: tuple[str, ...]


def show(values: Mapping[str, Any], *tables: ShownTable, as_json: bool) -> None:
    """Print one record: for people, aligned `name value` lines followed by the tables of records that belong to it;
    with `as_json`, one JSON object that has the tables as further fields.
    """
    if as_json:
        show_json({**values, **{table.name: table.rows for table in tables}})
        return
    width = max(len(name) for name in values)
    for name, value in values.items():
        click.echo(f"{name:<{width}}  {readable(value)}")
    for name, rows, columns in tables:
        if rows:
            click.echo()
            show_table(rows, columns, name, as_json=False)


def show_table(rows: list[dict[str, Any]], columns: tuple[str, ...], name: str, *, as_json: bool) -> None:
    """Print records: a table of `columns` for people; `{name: [...]}` with every field as JSON. Without rows people
    read `no {name}`.
    """
    if as_json:
        show_json({name: rows})
        return
    if not rows:
        click.echo(f"no {name}")
        return
    cells = [columns, *[tuple(readable(row.get(column)) for column in columns) for row in rows]]
    widths = [max(terminal_width(line[index]) for line in cells) for index in range(len(columns))]
    for line in cells:
        click.echo("  ".join(padded(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip())


def terminal_width(text: str) -> int:
    """Return how many columns a text takes on a terminal: two for a wide character, none for a mark on another."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def padded(text: str, width: int) -> str:
    """Return the text padded with spaces on the right to a width in columns."""
    return text + " " * (width - terminal_width(text))


def cut(text: str, width: int) -> str:
    """Return the text, or what of it leaves a column for an ellipsis."""
    if terminal_width(text) <= width:
        return text
    ends = accumulate(map(_width, text))
    return text[: sum(1 for end in ends if end < width)] + "…"


def show_json(value: Any) -> None:
    """Print a value, or JSON that is encoded already, as one line of JSON that moves no cursor."""
    encoded = value if isinstance(value, bytes) else msgspec.json.encode(value)
    click.echo(terminal_safe_json(encoded.decode()))


def terminal_safe_json(text: str) -> str:
    """Return the same JSON with every character escaped that could move the cursor of a terminal, or turn its text
    around. In CSV, whose cells may have such characters, escapes take their place.
    """
    return _UNSEEN_IN_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def standard_output() -> Callable[[bytes], Any]:
    """Return a function that writes lines of JSON or CSV to standard output: unchanged, but on a terminal as
    `terminal_safe_json`.
    """
    out = sys.stdout.buffer
    if not sys.stdout.isatty():
        return out.write
    return lambda content: out.write(terminal_safe_json(content.decode()).encode())


def refuse_without_reader() -> None:
    """Raise `BrokenPipeError` if the reader of standard output has left, as `| head -1` does: a command that waits for
    something to print would else go on until there is something.
    """
    output = select.poll()
    output.register(1, 0)  # what is said of a descriptor without being asked for: errors
    if output.poll(0):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def readable(value: Any) -> str:
    """Return one line of text for any value: `-` for nothing, lists joined by commas, control characters escaped so
    that no text can move the cursor.
    """
    if value is None or value in ((), []):
        return "-"
    if isinstance(value, list | tuple):
        value = ", ".join(str(part) for part in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  shown as text whatever it is
    return _UNSEEN.sub(lambda found: repr(found[0])[1:-1], str(value))


def terminal_safe(text: str) -> str:
    """Return lines of text with control characters escaped, as of `readable`."""
    return _UNSEEN_IN_LINES.sub(lambda found: repr(found[0])[1:-1], text)


_AGO = re.compile(r"(\d{1,6})([smhdw])", re.ASCII)
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}


class TimestampType(click.ParamType[int]):
    """RFC 3339 with any offset, or `30m`, `24h`, `7d`, `2w` for so long before now -> Unix milliseconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return Unix milliseconds; an integer is returned unchanged. Fails with a usage error."""
        at_ms = value if isinstance(value, int) else read_time(value, World.real().now_ms())
        if at_ms is None:
            self.fail(f"{value!r} is neither a time such as 2026-01-05T10:00:00Z nor an age such as 7d", param, ctx)
        return at_ms


def read_time(text: str, now_ms: int) -> int | None:
    """Return the Unix milliseconds of an RFC 3339 text, or of an age such as `7d` (units s, m, h, d, w); `None` for
    other text and for times before 1970.
    """
    ago = _AGO.fullmatch(text)
    if ago is None:
        return read_timestamp(text)
    at_ms = now_ms - int(ago[1]) * _UNITS_MS[ago[2]]
    return at_ms if at_ms >= 0 else None
