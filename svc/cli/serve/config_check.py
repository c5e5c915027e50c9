"""`svc config`: every mistake in the settings at once, before a service is started with them.

What may live here: which value is wrong, where it was written and what to write instead. What a setting may be is
declared in `svc.kernel.config`.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, cast

import click
import msgspec
from msgspec import inspect as types

from svc.command.help import CommandGroup, examples
from svc.command.output import CommandError, json_option, show, terminal_safe
from svc.kernel.config import Config, ConfigError
from svc.kernel.config_loading import CONFLICTS, LISTS, NOT_SETTINGS, PREFIX, checked, read_variables
from svc.kernel.values.errors import OperatorError, cause
from svc.kernel.values.fields import fields_of
from svc.kernel.values.text_files import NotTextError, decode_text

_WHERE_IN_TOML = re.compile(r" \(at line (\d+), column \d+\)$")


class Mistake(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that keeps the service from starting with these settings."""

    where: str
    """The variable, or the file with the number of the line."""
    problem: str
    write: str = ""
    """What to write instead; empty where no example helps."""


@click.group(cls=CommandGroup)
def config() -> None:
    """Check the settings before the service starts."""


@config.command(epilog=examples("svc config check /etc/svc.toml", "SVC_CONFIG=/etc/svc.toml svc config check --json"))
@click.argument(
    "file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path), envvar="SVC_CONFIG"
)
@json_option
def check(file: Path | None, as_json: bool) -> None:
    """Check a settings FILE and the SVC_* variables; FILE is the one in SVC_CONFIG when not given.

    Every mistake is listed with its line or variable and what to write instead; the exit status is 1 then. Files that
    settings name (certificates, authorities, root certificates) are read as well. Nothing is changed.
    """
    found = list(mistakes(file, os.environ))
    if as_json:
        show({"file": None if file is None else str(file), "valid": not found, "mistakes": found}, as_json=True)
    else:
        for mistake in found:
            write = f"\n    write: {mistake.write}" if mistake.write else ""
            click.echo(terminal_safe(f"{mistake.where}: {mistake.problem}{write}"))
    if found:
        raise CommandError("1 mistake in the settings" if len(found) == 1 else f"{len(found)} mistakes in the settings")
    if not as_json:
        variables = len(read_variables(os.environ))
        sources = [] if file is None else [str(file)]
        sources += [f"{variables} variables" if variables != 1 else "1 variable"] if variables else []
        click.echo(f"the settings are valid ({', '.join(sources) or 'all of them defaults'})")


def mistakes(file: Path | None, environment: Mapping[str, str]) -> Iterator[Mistake]:
    """Yield every mistake in the settings: those in the file in the order of its settings, then those in variables, and
    those in what settings name. What settings need of each other is asked where each is right by itself.
    """
    text, in_file = "", dict[str, Any]()
    wrong: list[Mistake] = []
    if file is not None:
        try:
            text = decode_text(file.read_bytes())
            in_file = tomllib.loads(text)
        except OSError as error:
            yield Mistake(str(file), f"cannot be read: {cause(error)}")
            return
        except NotTextError as error:
            yield Mistake(str(file), str(error))
            return
        except tomllib.TOMLDecodeError as error:
            yield _not_toml(file, str(error))
            return
        wrong = [mistake for name in in_file for mistake in _of_line(file, text, name, in_file[name])]
    variables = read_variables(environment)
    wrong += [mistake for name in variables for mistake in _of_variable(name, variables[name])]
    yield from wrong
    for line in _together({**in_file, **variables}, is_whole=not wrong):
        name = re.split(r"\W", line, maxsplit=1)[0]
        problem = line.removeprefix(f"{name}: ")
        if name in variables:
            yield Mistake(PREFIX + name.upper(), problem)
        elif name in in_file:
            yield Mistake(f"{file}:{_line_of(text, name)}", line)
        else:
            yield Mistake(name, problem) if name in Config.__struct_fields__ else Mistake("the settings", line)


def usable(file: Path | None, environment: Mapping[str, str]) -> Config:
    """Return the settings that can be used, each judged by itself, with the defaults of all others."""
    in_file: dict[str, Any] = {}
    if file is not None:
        with suppress(OSError, NotTextError, tomllib.TOMLDecodeError):
            in_file = tomllib.loads(decode_text(file.read_bytes()))
    return checked(_sound({**in_file, **read_variables(environment)}), str)


def _together(settings: Mapping[str, Any], *, is_whole: bool) -> Iterator[str]:
    """Yield a line for each mistake in settings that are valid one by one: `is_whole`, if none is left out, also those
    in their combination.
    """
    config = checked(_sound(settings), str)
    conflicts = [partial(refuse, config, settings, str) for refuse in CONFLICTS] if is_whole else []
    for look in (*conflicts, *(partial(read, config) for read in _readers(config))):
        try:
            look()
        except OperatorError as error:
            yield error.line


def _sound(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are valid by themselves."""
    known = {name: value for name, value in given.items() if name in Config.__struct_fields__}
    return {name: value for name, value in known.items() if _problem(name, value) is None}


def _not_toml(file: Path, message: str) -> Mistake:
    at = _WHERE_IN_TOML.search(message)
    where = str(file) if at is None else f"{file}:{at[1]}"
    return Mistake(where, f"is not TOML: {_WHERE_IN_TOML.sub('', message)}", 'name = value, with text in "quotes"')


def _of_line(file: Path, text: str, name: str, value: Any) -> Iterator[Mistake]:
    line = _line_of(text, name)
    where = str(file) if line is None else f"{file}:{line}"
    if isinstance(value, dict):
        yield Mistake(where, f"[{name}] is a section, and settings have none", "every setting without a [section]")
    elif name not in Config.__struct_fields__:
        near = _nearest(name, Config.__struct_fields__)
        yield Mistake(where, f"{name} is not a setting", near and f"{near} = {_example(near)}")
    elif problem := _problem(name, value):
        yield Mistake(where, f"{name}: {problem}", f"{name} = {_example(name)}")


def _line_of(text: str, name: str) -> int | None:
    """Return the number of the line that begins with this name, as a key or as a section."""
    form = re.compile(rf"""\s*\[*\s*(["']?){re.escape(name)}\1\s*[=.\]]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if form.match(line)), None)


def _of_variable(name: str, value: Any) -> Iterator[Mistake]:
    variable = PREFIX + name.upper()
    if name not in Config.__struct_fields__:
        known = [PREFIX + setting.upper() for setting in Config.__struct_fields__]
        near = _nearest(variable, (*known, *sorted(NOT_SETTINGS)))
        yield Mistake(variable, "is not a setting", near and f"{near}={_variable_example(near)}")
    elif problem := _problem(name, value):
        yield Mistake(variable, problem, f"{variable}={_variable_example(variable)}")


def _problem(name: str, value: Any) -> str | None:
    """Return what is wrong with the value of a known setting."""
    try:
        checked({name: value}, str)
    except ConfigError as error:
        return error.line.removeprefix(name).removeprefix(":").strip()
    return None


def _nearest(name: str, known: tuple[str, ...]) -> str:
    return next(iter(get_close_matches(name, known, n=1, cutoff=0.7)), "")


def _example(name: str) -> str:
    """Return a value of the setting as TOML: its default, or the example of one that has none."""
    field = next(field for field in fields_of(Config) if field.name == name)
    value: Any = field.default
    if value in (None, ()) and isinstance(field.type, types.Metadata):
        said = cast("dict[str, Any]", field.type.extra_json_schema)  # pyright: ignore[reportUnknownMemberType]  a bare dict
        value = said["examples"][0]
    return msgspec.json.encode(value).decode()


def _variable_example(variable: str) -> str:
    name = variable.removeprefix(PREFIX).lower()
    if name not in Config.__struct_fields__:
        return "..."
    value = msgspec.json.decode(_example(name))
    if name in LISTS:
        return ",".join(map(str, value))
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _readers(config: Config) -> Iterator[Callable[[Config], object]]:
    """Yield the readers of files that settings name. Import one only if it is needed: it loads the whole service."""
    if config.store is not None:
        from svc.command.data_directory import database_of  # noqa: PLC0415

        yield database_of
    if config.tls_certfile is not None or config.tls_keyfile is not None or config.hsts_max_age_s:
        from svc.serve.serving import read_tls  # noqa: PLC0415

        yield read_tls
    named = (config.attestation_roots_file, config.attestation_status_file, config.attestation_apple_roots_file)
    if any(file is not None for file in named):
        from svc.serve.service_parts import read_trust  # noqa: PLC0415

        yield read_trust
