"""Pages of the documentation that are generated from the program: `python -m tools.reference PAGE` prints one.

What may live here: the form of the pages. Their texts stand on the settings, on the commands and on the rows of the
routes. `make reference` writes them all into the files that `PLACES` names.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import Any, cast

import click
import msgspec
from msgspec import inspect as types

from svc.cli import program
from svc.cli.serve.reload import WHILE_RUNNING
from svc.features.refusals import CATALOG
from svc.features.routes import API, ROUTES
from svc.http.openapi.document import TAGS
from svc.http.pages.app import create_app, documentation, paths, site
from svc.http.route import EVERY_ROUTE, Route
from svc.identify.scoring.score import DEFAULT_THRESHOLD
from svc.identify.scoring.signals import CATALOG as SIGNALS
from svc.identify.scoring.signals import EVIDENCE, MAX_WEIGHT, Signal
from svc.kernel.access.roles import named_roles
from svc.kernel.config import Config
from svc.kernel.config_loading import PREFIX
from svc.kernel.values.fields import NO_NEWLINE, PLATFORMS, bare, fields_of
from svc.serve.metrics.registry import METRICS
from tools import report_fields

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
            _cell(schema_of(field)["description"]),
        ]
        for name, field in ((field.name, field) for field in fields_of(Config))
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
    plain += [f"- `GET {path}`" for path in paths(create_app(site, documentation, api=API))]
    parts += ["## Documents", "No key.", "\n".join(plain)]
    errors = [[f"`{code}`", str(status), _cell(says)] for code, (status, says) in CATALOG.items()]
    parts += ["## Errors", _EVERY_ROUTE, _table(["code", "status", "what to do"], errors).rstrip("\n")]
    return "\n\n".join(parts) + "\n"


def signals() -> str:
    """The page of signals, from their catalog."""
    parts = [_SIGNALS]
    for group, members in groupby(SIGNALS.values(), key=lambda signal: signal.group):
        parts.append("\n".join([f"### {group}", "", *_signal_table(list(members))]))
    return "\n\n".join([*parts, _RULES, _evidence()]) + "\n"


def metrics() -> str:
    """The page of metrics, from the constants that a scrape writes."""
    suffixes = {"counter": "_total"}
    rows = [
        [
            f"`{metric.name}{suffixes.get(metric.kind, '')}`",
            metric.kind,
            ", ".join(f"`{label}`" for label in metric.labels),
            _cell(metric.help),
        ]
        for metric in METRICS
    ]
    return _METRICS + _table(["metric", "kind", "labels", "meaning"], rows)


def settings_file() -> str:
    """The example of a settings file: every setting with its default, commented out."""
    parts = [_SETTINGS_FILE]
    for field in fields_of(Config):
        said = schema_of(field)
        words = textwrap.fill(said["description"], 116, break_on_hyphens=False)
        value = msgspec.json.encode(said["examples"][0] if field.default is None else field.default).decode()
        unset = "Not set by default.\n" if field.default is None else ""
        parts.append(textwrap.indent(f"{words}\n{unset}", "# ") + f"#{field.name} = {value}\n")
    return "\n".join(parts)


PAGES: dict[str, Callable[[], str]] = {
    "configuration": configuration,
    "commands": commands,
    "api": api,
    "metrics": metrics,
    "report-fields": report_fields.page,
    "signals": signals,
    "settings": settings_file,
}
PLACES = {**{name: f"docs/{name}.md" for name in PAGES}, "settings": "ops/svc.toml.example"}
"""Where each page stands in the repository."""


@click.command()
@click.argument("page", type=click.Choice(tuple(PAGES)))
def reference(page: str) -> None:
    """Print a page of the documentation: every setting, command, route, metric, signal or field of a report; or
    `settings`, the example of a settings file.
    """
    click.echo(PAGES[page](), nl=False)


def _table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def schema_of(field: types.Field) -> dict[str, Any]:
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
        case types.IntType(ge=least, le=most):
            words = f"whole number{_bound(' from', least)}{_bound(' to', most)}"
        case types.FloatType(gt=above, ge=least, le=most):
            words = f"number{_bound(' above', above)}{_bound(' from', least)}{_bound(' to', most)}"
        case types.StrType(pattern=pattern):
            words = "text" if pattern is None else f"text like `{_cell(pattern.removesuffix(NO_NEWLINE))}`"
        case _:
            raise TypeError(f"a setting of a kind that has no words yet: {of}")
    return words


def _signal_table(members: list[Signal]) -> list[str]:
    return [
        f"| signal | {' | '.join(PLATFORMS)} | means | fires on |",
        f"| --- |{' ---: |' * len(PLATFORMS)} --- | --- |",
        *[f"| `{signal.name}` | {_weights(signal)} | {_meaning(signal)} | {signal.fires_on} |" for signal in members],
    ]


def _meaning(signal: Signal) -> str:
    return signal.description if signal.mode is None else f"{signal.description} Mode `{signal.mode}`."


def _weights(signal: Signal) -> str:
    """A cell for the default weight on each platform; empty where the platform does not know the signal."""
    return " | ".join(str(signal.weights.get(platform, "")) for platform in PLATFORMS)


def _evidence() -> str:
    rows = [f"| `{name}` | {sentence} |" for name, sentence in sorted(EVIDENCE.items())]
    return "\n".join([_EVIDENCE, "", "| name | means |", "| --- | --- |", *rows])


_fill = partial(textwrap.fill, width=120, break_on_hyphens=False)


def _bound(word: str, value: float | None) -> str:
    return "" if value is None else f"{word} {value:.12g}"


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
    roles = named_roles(route.permission)
    role = f", role {roles}" if roles else ""
    statuses = ", ".join(
        dict.fromkeys(str(status) for status in (route.status, *(s for s, _ in route.other_responses)))
    )
    own = [code for code in route.codes if code not in EVERY_ROUTE]
    refused = f" Errors: {', '.join(f'`{code}`' for code in own)}." if own else ""
    heads = [f"### {' · '.join(f'`{route.method} {path}`' for path in _paths(route))}", ""]
    told = _fill(f"**{route.summary}** (`{route.operation_id}`). {route.description}".rstrip())
    facts = _fill(f"{kinds}{role}. Statuses: {statuses}.{refused}")
    return "\n".join([*heads, told, "", facts])


_RELOADED = _fill(
    f"SIGHUP (`systemctl reload svc`) reloads {', '.join(f'`{name}`' for name in WHILE_RUNNING)}, the certificate "
    "files and changed network files. Every other setting needs a restart; the service logs which have changed. A "
    "reload with a mistake changes nothing."
)
_CONFIGURATION = f"""\
# Configuration

This page is generated from the settings (`make reference`).

Write settings into a TOML file, named by `svc serve --config FILE` or `SVC_CONFIG`, or into environment variables:
`region` is `{PREFIX}REGION`. Environment variables override the file. Lists are `["a", "b"]` in the file and `a,b` in a
variable. [ops/svc.toml.example](../ops/svc.toml.example) contains every setting with its default.

Unknown settings and invalid values are rejected at startup, with one line that names the variable, or the setting and
its file. `svc config check FILE` lists every mistake with its line. `svc serve --print-config` shows the effective
settings.

{_RELOADED}

These variables are not settings: `SVC_DATA` (data directory), `SVC_CONFIG` (settings file) and `SVC_INIT_*` ([first
start](containers.md#first-start---init)). Variables that Kubernetes sets for a Service named `svc` are ignored:
`SVC_PORT`, `SVC_PORT_8080_TCP` and longer names, `SVC_SERVICE_HOST`, `SVC_SERVICE_PORT` and `SVC_SERVICE_PORT_NAME`.

Commands other than `svc serve` read the file that `SVC_CONFIG` names. Give them the settings of the service: with
another region they issue no keys, with another pepper they do not start, and with a larger `map_gib` they can let the
store grow beyond what the running service can read.

"""

_SETTINGS_FILE = """\
# Settings of svc, each with its default and commented out. This file is generated (`make reference`).
#
# Name it with SVC_CONFIG, for the service and for everybody who runs its commands, or with `svc serve --config FILE`.
# Environment variables such as SVC_REGION override it. SIGHUP reloads some settings; the log names those that need a
# restart. `svc config check FILE` finds mistakes; `svc serve --print-config` shows the effective settings.
"""

_COMMANDS = """\
# Commands

This page is generated from the help of each command (`make reference`).

Commands print text, or one JSON object with `--json`, in UTF-8. The exit status is 0 for success, 1 for a refusal with
one line that gives the reason, 2 for a mistake in the command line, and 3 if a change is made but its output could not
be written: do not repeat the command then, `svc audit` shows the change. Commands that take `--data` also work while
the service runs, which applies changes from its next request. Commands that destroy something ask for confirmation, and
need `--yes` if standard input is not a terminal.

`--help` after any command shows its entry here, `svc --version` the version, and `svc completion bash` (or `zsh`,
`fish`) a completion script. Colors appear on terminals only, unless `NO_COLOR` is set.
"""

_API = """\
# API

This page is generated from the routes (`make reference`). The OpenAPI document ([openapi.json](openapi.json),
`GET /api/v1/openapi.json`) describes the fields of requests and responses. Try routes on the page `/docs` of a running
service.

Send the key in the header `x-api-key`. Webhooks are described in [Webhooks](webhooks.md), and `/metrics`, at another
address, in [Monitoring](monitoring.md)."""

_METRICS = """\
# Metrics

This page is generated from the metrics (`make reference`). [Monitoring](monitoring.md) shows how to collect them.

- Counters start at 0 with the process. Values are read at each scrape.
- `route` is the operation id of the OpenAPI document, `unknown` for other paths and methods, or `preflight`. `code` is
  the code of the error body. The status `gone` means that the client disconnected before the response was ready.
- Requests that are malformed or exceed the connection limit are not in `svc_http_requests_total`, but in
  `svc_http_requests_malformed_total`, `svc_connections_rejected_total` and `svc_connections_closed_total`.
- Labels are bounded. They never contain a visitor, key, address or path; organizations are limited to the ten largest,
  network files to 256.
- `process_*` metrics report CPU, memory, file descriptors and start time of the process.

"""

_SIGNALS = f"""\
# Signals

This page is generated from the catalog of signals (`make reference`).

A signal is one observed risk indicator. It belongs to a group and has a weight from 0 to {MAX_WEIGHT} on each platform
that knows it. The identify response lists each signal that fired under `triggers`. Events and webhooks list signals
under `signals`, and their groups under `triggers`, with the weights of a group added and its highest confidence.

The suspect score is the sum of the weights. The level is `low` below the threshold T, `medium` from T and `high` from
2T; T is {DEFAULT_THRESHOLD} by default. One piece of hard evidence reaches it alone. Ordinary privacy measures stay
below, even a VPN, a private window and a hardened browser together. A signal with weight 0 does not fire.

The platform is `ios` or `android` if `sdk.platform` is or ends with that name, otherwise `web`. Names are permanent. A
stored configuration counts signals that are newer than itself as 0.

## Catalog"""

_RULES = """\
## Confidence of a trigger

Confidence tells how well a trigger is supported. It does not change its weight.

- `high`: conclusive evidence, such as a driver's flag, or two proofs from different sources.
- `medium`: one proof without an ordinary explanation.
- `low`: heuristics only.

Two findings from one source, such as the user agent in the header and in the page, are one proof.

## Suppressed signals

- `tor` suppresses the group `vpn`; `vpn_relay` suppresses `vpn_public`, even if their own weight is 0.
- Tor, VPN and relay suppress `hosting`, and so does a crawler at its own operator's address.
- `anonymity_network` on an event is the strongest of tor, vpn (including relays), proxy and hosting.

## Weighing VPNs and residential proxies

The groups `vpn` and `residential_proxy` have two sets of weights and a switch:

- `method` (default): by detection method. Several methods can fire, and their weights add up.
- `confidence`: by certainty. One of `low` (one indication), `medium` (one proof) and `high` (two proofs) fires.

The weights of the inactive set are stored but not used.

## Precedence of weights

For each platform as a whole: the configuration of the SDK key, then that of the organization, then the defaults on this
page.

## Observations that are not signals

Software rendering, a missing plugin, the time zone UTC and a Linux without fonts are too common to count. Automation
shows several of them. Values that a browser randomizes on purpose are not compared and count only as
`privacy_settings`."""

_EVIDENCE = """\
## Evidence

The single read of an event lists under `document.evidence` what each signal observed. The signal's confidence tells how
much follows from it. Names may be added and removed in any version."""

_EVERY_ROUTE = f"""\
Every error response has the body `{{"error": {{"code", "message", "status", "details"?}}, "request_id"}}`. Any route
can return {", ".join(f"`{code}`" for code in EVERY_ROUTE)}. Each route lists its other codes. Unknown paths and methods
return `not_found` and `method_not_allowed`."""


if __name__ == "__main__":
    reference()
