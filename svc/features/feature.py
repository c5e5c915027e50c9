"""What the service knows of a feature: which of its modules have tables, routes, invariants, what erasure and retention
do with its rows, its codes of errors and its commands.

Modules are named and not imported: a command that needs the tables alone loads no route (ADR 83). What each of them
has, by kind, is `HAS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Literal, NamedTuple

from svc.kernel.values.errors import ErrorCode

Kind = Literal["tables", "routes", "invariants", "erasure", "retention"]
HAS: dict[Kind, str] = {
    "tables": "",
    "routes": "ROUTES",
    "invariants": "RULES",
    "erasure": "ERASED",
    "retention": "PASSES",
}
"""Kind of module -> what it must have; of tables, each is a constant of its own."""


class Command(NamedTuple):
    """A command of the program: where it is defined, so that it can be listed without importing it."""

    section: str
    """Of `svc --help`."""
    summary: str
    """Its line there."""
    module: str = "command"
    """Below the feature; the command has its own name there."""
    attribute: str = ""
    """The name that it has in its module, where that is another one."""


class Feature(NamedTuple):
    """A feature: a package, and what it has beside its pure rules. Nothing else of the service lists these."""

    package: str
    tables: tuple[str, ...] = ()
    """Names of modules below the package, as of every kind."""
    routes: tuple[str, ...] = ()
    invariants: tuple[str, ...] = ()
    erasure: tuple[str, ...] = ()
    retention: tuple[str, ...] = ()
    refusals: Mapping[str, ErrorCode] = MappingProxyType({})
    """The codes of errors that it alone has."""
    commands: Mapping[str, Command] = MappingProxyType({})

    def modules(self, kind: Kind) -> Iterator[ModuleType]:
        """Import and yield its modules of a kind."""
        return (import_module(f"{self.package}.{name}") for name in getattr(self, kind))
