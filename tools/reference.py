"""Pages of the documentation that are generated from the program: `python -m tools.reference PAGE` prints one.

What may live here: the form of the pages. Their texts stand on the settings, on the commands and on the rows of the
routes. `make reference` writes them all into the files that `PLACES` names.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import click
import msgspec
from msgspec import inspect as types

from svc.cli import program
from svc.config import PREFIX, Config
from svc.domain.fields import bare
from svc.domain.refusals import CATALOGUE
from svc.http.openapi import TAGS
from svc.http.route import EVERY_ROUTE, Route
from svc.http.routes import API, ROUTES
from tools import signals

UNITS = {"s": "seconds", "days": "days", "gib": "GiB"}
"""Last word of a setting's name -> the unit of its value."""


def configuration() -> str:
    """The page of settings, from `Config`."""
    rows = [
        [
            f"`{name}`",
            _kind(bare(field.type)),
            UNITS.get(name.rpartition("_")[2], ""),
            "not set" if field.default is None else f"`{msgspec.json.encode(field.default).decode()}`",
            _cell(_said(field)["description"]),
        ]
        for name, field in ((field.name, field) for field in _fields(Config))
    ]
    return _CONFIGURATION + _table(["setting", "value", "unit", "default", "what it does"], rows)


def commands() -> str:
    """The page of commands, from what `--help` shows."""
    return "\n".join([_COMMANDS, *_sections(program, click.Context(program, info_name="svc"))]).rstrip("\n") + "\n"


def api() -> str:
    """The page of routes, from the table that serves them."""
    parts = [_API]
    for tag, words in TAGS.items():
        parts += [f"## {tag}", words]
        parts += [_operation(route) for route in API if route.tag == tag]
    plain = [f"- `{route.method} {path}`" for route in ROUTES if route not in API for path in _paths(route)]
    parts += ["## Documents", "Open to all.", "\n".join(plain)]
    errors = [[f"`{code}`", str(status), _cell(says)] for code, (status, says) in CATALOGUE.items()]
    parts += ["## Errors", _EVERY_ROUTE, _table(["code", "status", "what to do"], errors).rstrip("\n")]
    return "\n\n".join(parts) + "\n"


def settings_file() -> str:
    """The example of a settings file: every setting with its default, commented out."""
    parts = [_SETTINGS_FILE]
    for field in _fields(Config):
        said = _said(field)
        words = textwrap.fill(said["description"], 116, break_on_hyphens=False)
        value = msgspec.json.encode(said["examples"][0] if field.default is None else field.default).decode()
        unset = "Not set by default.\n" if field.default is None else ""
        parts.append(textwrap.indent(f"{words}\n{unset}", "# ") + f"#{field.name} = {value}\n")
    return "\n".join(parts)


PAGES: dict[str, Callable[[], str]] = {
    "configuration": configuration,
    "commands": commands,
    "api": api,
    "signals": signals.page,
    "settings": settings_file,
}
PLACES = {**{name: f"docs/{name}.md" for name in PAGES}, "settings": "ops/svc.toml.example"}
"""Where each page stands in the repository."""


@click.command()
@click.argument("page", type=click.Choice(tuple(PAGES)))
def reference(page: str) -> None:
    """Print a page of the documentation: every setting, command, route or signal; or `settings`, the example of a
    settings file.
    """
    click.echo(PAGES[page](), nl=False)


def _table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _fields(struct: type[msgspec.Struct]) -> tuple[types.Field, ...]:
    described = types.type_info(struct)
    assert isinstance(described, types.StructType)
    return described.fields


def _said(field: types.Field) -> dict[str, Any]:
    """What is said of a setting: `description`, and `examples` where it has no default."""
    assert isinstance(field.type, types.Metadata), f"{field.name} has no description"
    return cast("dict[str, Any]", field.type.extra_json_schema)  # pyright: ignore[reportUnknownMemberType]  a bare dict


def _kind(of: types.Type) -> str:
    """What may be written there."""
    match of:
        case types.UnionType(types=members):
            words = " or ".join(_kind(member) for member in members if not isinstance(member, types.NoneType))
        case types.LiteralType(values=values):
            words = ", ".join(f"`{value}`" for value in values)
        case types.VarTupleType(item_type=item):
            words = f"list of {_kind(item)}"
        case types.BoolType():
            words = "`true`, `false`"
        case types.IntType(ge=least):
            words = "whole number" if least is None else f"whole number from {least}"
        case types.FloatType(gt=above):
            words = "number" if above is None else f"number above {above:g}"
        case types.StrType(pattern=pattern):
            words = "text" if pattern is None else f"text like `{_cell(pattern)}`"
        case _:
            raise TypeError(f"a setting of a kind that has no words yet: {of}")
    return words


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    """The command and all below it, in the order in which help lists them."""
    if context.parent is not None:
        yield f"## {context.command_path}\n"
        yield inspect.cleandoc(command.help or "").replace("\b\n", "") + "\n"
    if isinstance(command, click.Group):
        for name, below in sorted(command.commands.items()):
            yield from _sections(below, click.Context(below, info_name=name, parent=context))
        return
    pieces = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    yield f"    {' '.join([context.command_path, *pieces])}\n"
    records = [param.get_help_record(context) for param in command.params if isinstance(param, click.Option)]
    rows = [[f"`{record[0]}`", _cell(record[1])] for record in records if record is not None]
    if rows:
        yield _table(["option", ""], rows)
    if command.epilog:
        shown = [line.strip() for line in command.epilog.splitlines() if line.startswith("  ")]
        yield "\n".join(["```sh", *shown, "```\n"])


def _paths(route: Route) -> list[str]:
    return [under + route.path for under in route.under]


def _operation(route: Route) -> str:
    kinds = f"Key: {' or '.join(route.kinds)}" if route.kinds else "No key"
    role = f", in the role `{route.role}`" if route.role else ""
    statuses = ", ".join(dict.fromkeys(str(status) for status in (route.status, *(s for s, _ in route.other_answers))))
    own = [code for code in route.errors if code not in EVERY_ROUTE]
    refused = f" Refused with {', '.join(f'`{code}`' for code in own)}." if own else ""
    fill = partial(textwrap.fill, width=120, break_on_hyphens=False)
    heads = [f"### {' · '.join(f'`{route.method} {path}`' for path in _paths(route))}", ""]
    told = fill(f"**{route.summary}** (`{route.operation_id}`). {route.description}".rstrip())
    facts = fill(f"{kinds}{role}. Answers {statuses}.{refused}")
    return "\n".join([*heads, told, "", facts])


_CONFIGURATION = f"""\
# Configuration

This page is generated from the settings themselves (`make reference`).

A setting stands in a TOML file, which `svc serve --config FILE` or `SVC_CONFIG` names, or in a variable of the
environment: `region` is `{PREFIX}REGION`. Variables go before the file. Lists are `["a", "b"]` in the file and `a,b` in
a variable. An unknown name, and a value that cannot be, is refused at the start with one line that names it as it was
given: the variable, or the setting and its file.
`svc serve --print-config` shows what is in force.

SIGHUP (`systemctl reload svc`) reads the settings again. A running service takes over `log_format`, `log_requests`,
`client_rate`, `read_rate`, `management_rate`, `network_stale_days`, `tls_certfile` and `tls_keyfile`, reads the files
of the certificate, and looks for changed network files. Every other setting needs a restart; the service logs which
ones have changed. Settings with a mistake change nothing. `svc config check FILE` lists every mistake with its line.

These variables are no settings: `SVC_DATA` names the data directory, `SVC_CONFIG` the file, and `SVC_INIT_*` say what
`svc serve --init` creates ([the first start](install.md#the-first-start---init)). Those that Kubernetes sets beside a
Service named `svc` are ignored: `SVC_PORT`, `SVC_PORT_8080_TCP` and what begins with it, `SVC_SERVICE_HOST`,
`SVC_SERVICE_PORT` and `SVC_SERVICE_PORT_NAME`. [ops/svc.toml.example](../ops/svc.toml.example) is a file to begin with.

Administrative commands have
no `--config`, and read the file that `SVC_CONFIG` names. Give them the settings that the service has: with another
region they issue no keys, with another pepper they do not start, and with a larger `map_gib` they may
let the store grow beyond what the running service can read.

"""

_SETTINGS_FILE = """\
# Settings of svc, each with its default and commented out. This file is generated (`make reference`).
#
# Name it with SVC_CONFIG, for the service and for everybody who runs its commands, or with `svc serve --config FILE`.
# A variable such as SVC_REGION goes before the file. SIGHUP takes over some settings, and the log names those that
# need a restart. `svc config check FILE` finds mistakes; `svc serve --print-config` shows what is in force.
"""

_COMMANDS = """\
# Commands

This page is generated from the help of each command (`make reference`).

Output is for people, and with `--json` one object for programs. The exit status is 0 when it is done, 1 when it is
refused with one line that says why, 2 for a mistake in the command itself. Commands that take `--data` work on the data
directory also while the service runs, which sees the change at its next request. `svc --version` says which version
this is, `--help` behind any command what stands here. Commands that destroy something ask first, and need `--yes` where
standard input is no terminal. `svc completion bash` (or `zsh`, `fish`) prints a completion script. Colours are for
terminals, unless `NO_COLOR` is set.
"""

_API = """\
# Routes

This page is generated from the table that serves them (`make reference`). Fields of requests and answers stand in the
OpenAPI document ([openapi.json](openapi.json), `GET /api/v1/openapi.json`), and on the page `/docs` of a running
service, where they can be tried.

Keys go into `x-api-key`. Webhooks, which the service sends, have [a page of their own](webhooks.md); so has `/metrics`,
which stands at [another address](metrics.md)."""

_EVERY_ROUTE = f"""\
Every answer that is an error has the body `{{"error": {{"code", "message", "status", "details"?}}, "request_id"}}`. Any
route may answer {", ".join(f"`{code}`" for code in EVERY_ROUTE)}; the others stand with their routes, but for
`not_found` and `method_not_allowed` where there is no route."""


if __name__ == "__main__":
    reference()
