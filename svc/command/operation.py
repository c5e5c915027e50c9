"""Commands on an organization: what they all have, and what one of them works with while it runs.

    @lists.command("list", epilog=...)
    def list_(operation: Operation) -> None:
        operation.show_rows(operation.call("lists.routes.listLists")["lists"], "lists", COLUMNS)

ORG, `--data`, `--store` and `--json` are declared here, for all commands of an `OrganizationGroup`. What the management
API does too is done by its handler, in this process (docs/adr/0195): a command checks and changes nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import click

from svc.command.changes import Change, commit
from svc.command.data_directory import Readable, known_organization, opened, reading
from svc.command.help import CommandGroup
from svc.command.output import ShownTable, data_option, json_option, show, show_table
from svc.kernel.store.directory import Opened
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.organization import Organization
from svc.kernel.values.fields import Environment
from svc.world import World

T = TypeVar("T")

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_MAX_PAGE = 200
"""Of the lists of the API."""


class Rows(NamedTuple):
    """Rows of a list of the API."""

    rows: list[dict[str, Any]]
    more: bool
    """Whether there are more."""
    others: dict[str, Any]
    """The last response, for its other fields."""


class Operation:
    """One run of a command on an organization. The store is opened when it is needed, and closed with the command."""

    def __init__(
        self, context: click.Context, organization_id: str, directory: Path, *, reads: bool, as_json: bool
    ) -> None:
        self.organization_id, self.directory, self.as_json = organization_id, directory, as_json
        self.world = World.real()
        self.now_ms = self.world.now_ms()
        """When the command began."""
        self.reads = reads
        """Whether the store is open for reading alone."""
        self.corrupt: set[str] = set()
        """What is wrong with each row that could not be read."""
        self._context = context

    @cached_property
    def found(self) -> Opened:
        """Return the data directory, for changes. Raises `DirectoryError`."""
        return self._context.with_resource(opened(self.directory))

    @cached_property
    def store(self) -> Readable:
        """Return the store; for a command that only reads, it is open for that alone. Raises `DirectoryError`."""
        return self._context.with_resource(reading(self.directory)) if self.reads else self.found.store

    @cached_property
    def organization(self) -> Organization:
        """Return the organization. Raises `CommandError` if there is none, or if it was removed."""
        return known_organization(self.store, self.organization_id)

    @property
    def number(self) -> int:
        """Return the number of the organization."""
        return self.organization.number

    def call(
        self,
        operation_id: str,
        *,
        body: Mapping[str, Any] = _NOTHING,
        query: Mapping[str, Any] = _NOTHING,
        recorded: Mapping[str, Any] = _NOTHING,
        environment: Environment | None = None,
        public_url: str | None = None,
        about: str = "",
        missing: str = "",
        **path: str,
    ) -> Any:
        """Run the handler of a route as the operator, and return the response as JSON is read; `None` without a body.

        `operation_id` names the route with its module below `svc.features`: `lists.routes.createList`. `path`: its
        variables; the rest as of `handlers.Asked`. Raises `CommandError` with the text of a refusal, behind `about`;
        `missing` takes the place of "not found".
        """
        from svc.command.handlers import Asked, run  # noqa: PLC0415  loads what requests need, as `--help` does not

        return run(self, operation_id, Asked(body, query, path, recorded, environment, public_url), about, missing)

    def rows(self, operation_id: str, name: str, limit: int, query: Mapping[str, Any], **parts: Any) -> Rows:
        """Return at most `limit` rows of the list `name` of the API, read page by page."""
        found: list[dict[str, Any]] = []
        page: dict[str, Any] = {}
        cursor = None
        while len(found) <= limit:
            wanted = min(limit + 1 - len(found), _MAX_PAGE)
            page = self.call(operation_id, query={**query, "limit": wanted, "cursor": cursor}, **parts)
            found += page[name]
            cursor = page.get("next_cursor")
            if cursor is None:
                break
        return Rows(found[:limit], len(found) > limit, page)

    def change(
        self,
        job: Callable[[Transaction], T],
        asked: Mapping[str, Any],
        subject: str | None = None,
        *,
        is_pure: bool = False,
    ) -> T:
        """Make a change that the API does not have, and record it as `commit` does. `subject`: an id; `None` = that of
        the organization.
        """
        made = Change(self.number, subject or self.organization_id, asked)
        return commit(self.found, self.world, job, lambda _: made, is_pure=is_pure)

    def show(self, values: Mapping[str, Any], *tables: ShownTable) -> None:
        """Print one record as `output.show` does."""
        show(values, *tables, as_json=self.as_json)

    def show_rows(self, rows: list[dict[str, Any]], name: str, columns: tuple[str, ...]) -> None:
        """Print records as `output.show_table` does."""
        show_table(rows, columns, name, as_json=self.as_json)


class OrganizationCommand(click.Command):
    """A command whose first argument is ORG; its function gets an `Operation` before its own options. `reads`: nothing
    is changed; `has_json`: it has `--json`.
    """

    def __init__(self, *arguments: Any, reads: bool = False, has_json: bool = True, **attributes: Any) -> None:
        function, own = attributes.pop("callback"), attributes.pop("params")

        def run(organization_id: str, directory: Path, *, as_json: bool = False, **options: Any) -> None:
            context = click.get_current_context()
            operation = Operation(context, organization_id, directory, reads=reads, as_json=as_json)
            function(operation, **options)

        organization = click.Argument(["organization_id"], metavar="ORG")
        super().__init__(
            *arguments, callback=run, params=[organization, *own, *_common(has_json=has_json)], **attributes
        )


def _common(*, has_json: bool) -> list[click.Parameter]:
    """Return the options `--data`, `--store` and `--json`, in this order."""

    @data_option
    @(json_option if has_json else _unchanged)
    @click.command
    def every() -> None:
        """Have the options."""

    return every.params[::-1]


def _unchanged(command: T) -> T:
    return command


class OrganizationGroup(CommandGroup):
    """A group of commands on an organization."""

    command_class = OrganizationCommand
