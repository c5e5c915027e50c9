"""A handler of the API, run by a command in its own process: as the operator, who may do everything.

What may live here: the caller, the store and the services that a handler gets from a command. Body and query are
decoded by the route's own schema, and a refusal becomes the one line of a `CommandError`; everything before a handler
(keys, roles, rates) is of requests alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from urllib.parse import urlencode

import click
import msgspec
import trio

from svc.command.changes import apply, operator
from svc.command.output import CommandError, settings
from svc.http.body import BodyBudget, decode
from svc.http.callers.caller import AuthPolicy, Caller, Operator
from svc.http.callers.limits import RequestLimits
from svc.http.query import read_query
from svc.http.route import Call, Outcome, Route, Services, Webhooks
from svc.identify.model import RequestFacts
from svc.kernel.access.credentials import ApiKey
from svc.kernel.limits.ratelimit import Allowances, LimitShares
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.store import StoreFullError
from svc.kernel.values.encodings import cursors_key
from svc.kernel.values.fields import Environment
from svc.kernel.values.refusals import Refusal
from svc.kernel.work.store_watch import CorruptRows

if TYPE_CHECKING:
    from svc.command.operation import Operation

T = TypeVar("T")

_NOT_HERE: Any = None
"""What no handler of a command uses: one that did would fail, and not sign with another key than the service."""
_UNLIMITED = Allowances(client=0, read=0, management=0, work=0)


COMMITS_TOLD = 50
"""Between two lines which say that what is done in steps, such as an erasure, goes on."""


class Asked(NamedTuple):
    """What a command asks a handler for."""

    body: Mapping[str, Any]
    query: Mapping[str, Any]
    """`None` is left out of both."""
    path: Mapping[str, str]
    """Its variables, beside the organization."""
    recorded: Mapping[str, Any]
    """What the audit record says beside body and path."""
    environment: Environment | None
    """That of the secret key for which the operator stands, on a route of the server API."""
    public_url: str | None
    """Where people reach the service."""


def run(operation: Operation, operation_id: str, asked: Asked, about: str, missing: str) -> Any:
    """Run a handler as `Operation.call` does."""
    route = find_route(operation_id)
    assert asked.environment is None or route.method == "GET", "no change by a secret key is in the audit log"
    store = _OperatorStore(operation)
    services = _services(operation, store, asked.public_url)
    call = Call(
        request_id=operation.world.request_id(operation.now_ms),
        route=route,
        at_ms=operation.now_ms,
        headers={},
        caller=_caller(operation, asked),
        platform=None,
        path={"organization_id": operation.organization_id, **asked.path},
        query=_accepted(read_query(urlencode(_given(asked.query)).encode(), route.query), about),
        body=route.body and _accepted(decode(msgspec.json.encode(_given(asked.body)), route.body), about),
        long_reads=services.limits.long_reads.turn(operation.number),
    )
    answer = trio.run(route.handler, services, call)
    answer = answer.body if isinstance(answer, Outcome) else answer
    if isinstance(answer, Refusal):
        if store.full is not None:
            raise store.full
        if missing and answer.code == "not_found":
            raise CommandError(missing)
    accepted = _accepted(answer, about)
    return None if accepted is None else msgspec.json.decode(msgspec.json.encode(accepted))


def find_route(operation_id: str) -> Route:
    """Return a route by its module below `svc.features` and its operation id. Raises `StopIteration` if it has none."""
    module, _, name = operation_id.rpartition(".")
    routes: tuple[Route, ...] = import_module(f"svc.features.{module}").ROUTES
    return next(route for route in routes if route.operation_id == name)


def refused(refusal: Refusal, about: str) -> CommandError:
    """Return the error whose line says what was refused, with each field that is wrong. It begins with `about`."""
    faults = "; ".join(f"{detail.field}: {detail.issue.replace('_', ' ')}" for detail in refusal.details)
    said = f"{refusal.message} ({faults})" if faults else refusal.message
    if faults and refusal.code == "validation_error" and not refusal.explanation:
        said = faults  # the catalog's message sends the caller to `details`, which are all here
    return CommandError(f"{about}: {said}" if about else said)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _accepted(value: T | Refusal, about: str) -> T:
    if isinstance(value, Refusal):
        raise refused(value, about)
    return value


class _OperatorStore:
    """A store for handlers that reads and writes at once, in this process, where nobody else waits for it."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self.full: StoreFullError | None = None
        """Why the last write was refused, if that was for want of space."""
        self._commits = 0

    async def query(self, read: Callable[[Snapshot], T], *, recent: bool = False) -> T:  # noqa: ARG002  as of `Store`
        with self._operation.store.read() as snapshot:
            return snapshot.evaluate(read)

    async def write_one(self, job: Callable[[Transaction], T], _: int, *, may_use_reserve: bool = False) -> T:
        """Commit with the reserve, as all changes of an operator. `change` has added the audit record to the job. It is
        pure, as every job of a handler: a service runs it again where it has to.
        """
        del may_use_reserve
        self._commits += 1
        if self._commits % COMMITS_TOLD == 0:
            click.echo(f"still at work: {self._commits} steps so far", err=True)
        try:
            return apply(self._operation.found, job, is_pure=True)
        except StoreFullError as error:
            self.full = error
            raise


class _Watch:
    """A watch that finds nothing: the person who runs a command sees that it waits."""

    def state(self) -> str:
        return "ok"


def _services(operation: Operation, store: _OperatorStore, public_url: str | None) -> Services:
    """Return what a handler gets. A commit announces its change to the service, which then does what is due."""
    config = settings()
    # Without a pepper, cursors are of this run alone, and there are no digests.
    pepper = b"" if operation.reads else operation.found.pepper
    return Services(
        world=operation.world,
        watch=cast("Any", _Watch()),
        corrupt=CorruptRows(operation.corrupt),
        store=cast("Any", store),
        policy=AuthPolicy(pepper, config.region, ()),
        deferred_key=_NOT_HERE,
        verdict_key=_NOT_HERE,
        network_data=lambda: "ok",
        note_refusal=_ignore,
        webhooks=Webhooks(_ignore, _ignore, lambda: False, _NOT_HERE, cursors_key(pepper), _NOT_HERE),
        request_timeout_s=config.request_timeout_s,
        limits=RequestLimits(_UNLIMITED, LimitShares()),
        quotas=config.quotas(),
        bodies=BodyBudget(0),
        end_viewers=_ignore,
        public_url=public_url,
        event_retention_ms=config.event_retention_ms(),
    )


def _ignore(_: object) -> None: ...


def _caller(operation: Operation, asked: Asked) -> Caller:
    """Return the operator as a handler sees it: with a management key that is stored nowhere, or a secret one."""
    actor, environment = operator(), asked.environment
    key = ApiKey(
        id=actor.id,
        organization=operation.number,
        kind="management" if environment is None else "secret",
        name=actor.id,
        environment=environment,
        region="",
        role="admin" if environment is None else None,
        platforms=(),
        allowed_origins=(),
        prefix="",
        last4="",
        created_at_ms=operation.now_ms,
    )
    return Caller(
        key=key,
        digest=b"",
        applied=key,
        applied_digest=b"",
        organization=operation.organization,
        origin=None,
        facts=RequestFacts(ip=""),
        operator=Operator(actor, click.get_current_context().command_path, asked.recorded),
    )
