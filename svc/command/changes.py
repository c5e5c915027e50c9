"""How commands change a store: one transaction, with its record in the audit log (docs/audit.md)."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import click

from svc.command.help import CHANGED, OPENED
from svc.kernel.access.audit import Actor, Audited, AuditRecord, asked
from svc.kernel.access.jobs import audited
from svc.kernel.store.directory import Opened
from svc.kernel.store.snapshot import Transaction
from svc.world import World

T = TypeVar("T")
_BY_OPERATORS = Audited(records=frozenset({"note"}))
"""Notes of operators are about an organization; those of its members, which are withheld, about visitors."""


class Change(NamedTuple):
    """What a command has changed, for the audit log (docs/audit.md)."""

    organization: int
    """Its number."""
    subject: str
    """The id of the key, endpoint, visitor or organization."""
    asked: Mapping[str, Any] = {}
    """As of `access.audit.asked`; `None` is what was not asked for."""


def commit(
    found: Opened,
    world: World,
    job: Callable[[Transaction], T],
    change: Callable[[T], Change | None],
    *,
    is_pure: bool = False,
) -> T:
    """Run one administrative change and write its audit record in the same transaction; return the job's outcome once
    it is durable. If the job raises `CommandError`, nothing is changed or recorded. If `change` returns `None`, there
    was nothing to do and nothing is recorded. `is_pure`: as of `Store.write_one_now`.
    """
    return apply(found, recorded(world, job, change), is_pure=is_pure)


def recorded(
    world: World, job: Callable[[Transaction], T], change: Callable[[T], Change | None]
) -> Callable[[Transaction], T]:
    """Return the job together with its audit record, as in `commit`: for a transaction that makes several changes."""
    at_ms = world.now_ms()

    def record(outcome: T) -> AuditRecord | None:
        made = change(outcome)
        if made is None:
            return None
        return AuditRecord(
            at_ms=at_ms,
            actor=operator(),
            action=_command(),
            organization=made.organization,
            subject=made.subject,
            change=asked({name: value for name, value in made.asked.items() if value is not None}, _BY_OPERATORS),
        )

    return audited(job, world.request_id(at_ms), record)


def apply(found: Opened, job: Callable[[Transaction], T], *, is_pure: bool = False) -> T:
    """Make a further step of a change that was recorded already; returns its outcome when that is durable. Raises what
    the job raises. The service, where one runs on the directory, and nodes that serve the database act on it at once.
    `is_pure`: as of `Store.write_one_now`.
    """
    outcome = found.store.write_one_now(job, may_use_reserve=True, is_pure=is_pure)
    context = click.get_current_context(silent=True)
    if context is not None and context.meta.get(OPENED) is found:
        context.meta[CHANGED] = True
    if found.database is not None:
        from svc.workers.nodes import announce_to_nodes  # noqa: PLC0415  commands on a directory start faster without

        announce_to_nodes(found.store.engine)
    elif found.directory is not None:
        from svc.workers.bus import announce  # noqa: PLC0415  commands that only read need none of it

        announce(found.directory)
    return outcome


def operator() -> Actor:
    """Return the user who runs this program, from the system and not from the environment, which anybody may set.

    Only `SUDO_USER` is taken from there, beside the user that the program runs as.
    """
    return Actor(
        kind="command_line",
        id=_user(os.getuid()),
        name=os.environ.get("SUDO_USER", "").encode("utf-8", "replace").decode() or None,
        role=None,
        place=f"{socket.gethostname()} {_terminal()}",
    )


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # containers run as users that have no name
        return f"uid {uid}"


def _terminal() -> str:
    try:
        return os.ttyname(0)
    except OSError:
        return f"process {os.getpid()}"


def _command() -> str:
    """Return the command without its arguments, or the program if none runs."""
    context = click.get_current_context(silent=True)
    return "svc" if context is None else context.command_path
