"""Risk weights of an organization and of its SDK keys, previews of them, and the signals (interface 2.11, decisions 6).

The routes of an organization and those of a key differ by `{key_id}` in the path, and share their endpoints. Every
response shows all three platforms as they stand after the change, read in the transaction that made it.

A preview reads thousands of events with documents in slices of time; of all organizations one preview runs at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Annotated, NamedTuple
from uuid import UUID

import structlog
from msgspec import UNSET, UnsetType

from svc.features.events.routes import newest_positions
from svc.features.organizations.bodies import (
    RiskWeightsBody,
    SaveWeightsBody,
    SignalBody,
    SignalsBody,
    WeightsFields,
    risk_weights,
)
from svc.features.weights.jobs import changed_weights, restore_weights, save_weights
from svc.features.weights.preview import MAX_EVENTS, Preview, WeightsPreview
from svc.http.callers.limits import EVENT_WORK
from svc.http.change import caller_of, change
from svc.http.route import ORGANIZATION, Call, Route, Services, console_route
from svc.identify.queries import events
from svc.identify.queries import weights as weights_queries
from svc.identify.queries.weights import ScopeWeights
from svc.identify.records import Document, Event
from svc.identify.scoring.score import StoredWeights, Weights, WeightsChange, resolve
from svc.identify.scoring.signals import CATALOG, MAX_WEIGHT
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.fields import PLATFORMS, Environment, KeyId, Platform, about
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.struct_fields import body_of, sent
from svc.kernel.work.slices import in_slices, in_turns

_SIGNALS = SignalsBody(
    signals=tuple(
        body_of(
            SignalBody,
            signal,
            platforms=tuple(platform for platform in PLATFORMS if platform in signal.weights),
            default_weights=dict(signal.weights),
        )
        for signal in CATALOG.values()
    ),
    max_weight=MAX_WEIGHT,
)


async def list_signals(_: Services, __: Call) -> SignalsBody:
    """`GET .../risk-signals`: the catalog of signals, whole (decisions 6.3)."""
    return _SIGNALS


async def read_weights(services: Services, call: Call) -> RiskWeightsBody | Refusal:
    """`GET .../risk-weights`: the weights in force for an organization or one of its keys, and what this scope has
    stored itself (interface 2.11). `404` for an unknown key.
    """
    caller = caller_of(call)
    number, key_id = caller.organization.number, call.path.get("key_id")

    def read(snapshot: Snapshot) -> tuple[weights_queries.ScopeWeights, ...] | None:
        is_known = key_id is None or lookups.find_sdk_key(snapshot, number, key_id) is not None
        return weights_queries.scope_weights(snapshot, number, key_id) if is_known else None

    seen = await services.store.query(read)
    return Refusal("not_found") if seen is None else risk_weights(caller.organization.id, key_id, seen)


async def save(services: Services, call: Call) -> RiskWeightsBody | Refusal:
    """`PUT .../risk-weights/{platform}`: what is not named keeps its value in force (decisions 6.3). `404`, `409
    revision_conflict` or `sdk_key_revoked`, `422` with every fault.
    """
    body: SaveWeightsBody = call.body
    named = weights_change(body, sent(body.revision), by=caller_of(call).member_id)
    return await _change(services, call, partial(save_weights, change=named, now_ms=call.at_ms))


def weights_change(body: WeightsFields, revision: int | None = None, by: str | None = None) -> WeightsChange:
    """Return the change that a body names, upon the stored `revision` or, with `None`, any. `by`: the member's id."""
    return WeightsChange(
        threshold=sent(body.suspect_threshold),
        weights=body.weights,
        vpn_mode=sent(body.vpn_weights_mode),
        residential_proxy_mode=sent(body.residential_proxy_weights_mode),
        revision=revision,
        by=by,
    )


async def restore(services: Services, call: Call) -> RiskWeightsBody | Refusal:
    """`DELETE .../risk-weights/{platform}`: back to the weights of the parent scope (decisions 6.3). `404` for an
    unknown key or platform, `409 sdk_key_revoked`.
    """
    return await _change(services, call, restore_weights)


async def _change(
    services: Services, call: Call, job: Callable[..., StoredWeights | Refusal | None]
) -> RiskWeightsBody | Refusal:
    platform = call.path["platform"]
    if platform not in PLATFORMS:
        return Refusal("not_found")
    organization, key_id = caller_of(call).organization, call.path.get("key_id")
    scoped = partial(job, number=organization.number, key_id=key_id, platform=platform)
    seen = await change(services, call, partial(_seen_after, scoped, organization.number, key_id))
    return seen if isinstance(seen, Refusal) else risk_weights(organization.id, key_id, seen)


def _seen_after(
    job: Callable[[Transaction], StoredWeights | Refusal | None],
    number: int,
    key_id: str | None,
    transaction: Transaction,
) -> tuple[ScopeWeights, ...] | Refusal:
    outcome = job(transaction)
    return outcome if isinstance(outcome, Refusal) else weights_queries.scope_weights(transaction, number, key_id)


_SAVED = (
    "What is not named keeps its value in force. Send the `revision` that you read to make sure that nobody has saved "
    "since: another one is `409 revision_conflict`."
)

_route = partial(Route, tag="Management: weights", kinds=("management",))
_read = partial(_route, handler=read_weights)
_save = partial(
    _route,
    method="PUT",
    description=_SAVED,
    handler=save,
    needs="administer",
    body=SaveWeightsBody,
    example='{"suspect_threshold": 30, "weights": {"automation": 40, "tor": 30}}',
)
_restore = partial(_route, method="DELETE", handler=restore, needs="administer")


log = structlog.get_logger()

MAX_LOOKED_AT = 50_000
"""Events among which those of the scope and platform are looked for."""


class PreviewWeightsBody(WeightsFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What would be saved, and for which scope and platform."""

    platform: Annotated[Platform, about("Platform whose weights would be saved.", "web")]
    key_id: (
        Annotated[KeyId, about("The SDK key whose weights would be saved; those of the organization when left out.")]
        | UnsetType
    ) = UNSET
    environment: (
        Annotated[
            Environment,
            about("Of the events to compare: when left out, that of the key, or `production`.", "production"),
        ]
        | UnsetType
    ) = UNSET


class _Scope(NamedTuple):
    """The events that other weights would apply to, and the weights that apply to them now."""

    organization: int
    environment: Environment
    platform: Platform
    key_id: str | None
    own: frozenset[str]
    """Ids of keys that the organization's weights do not apply to."""
    before: Weights
    after: Weights

    def has(self, event: Event) -> bool:
        """Return whether the event would be scored by the weights of this scope."""
        if event.platform != self.platform:
            return False
        return event.key_id not in self.own if self.key_id is None else event.key_id == self.key_id


async def preview_weights(services: Services, call: Call) -> WeightsPreview | Refusal:
    """`POST /console/api/weights/preview`: the results that the newest events would have. Nothing is saved. Refused as
    a save of the same body is, and `429 rate_limited` while another one of the organization runs.
    """
    body: PreviewWeightsBody = call.body
    number = call.organization.number
    scope = await services.store.query(partial(_scope, number=number, body=body, now_ms=call.at_ms))
    if isinstance(scope, Refusal):
        return scope
    refusal = services.limits.work_refusal(number, 1, call.at_ms) or call.turn.refusal()
    if refusal is not None:
        return refusal
    with call.turn.exclusive():
        return await _compared(services, call, scope)


async def _compared(services: Services, call: Call, scope: _Scope) -> WeightsPreview:
    preview = Preview(scope.platform, scope.before, scope.after)
    number, now_ms = scope.organization, call.at_ms
    newest = await newest_positions(services, call.turn, number, [scope.environment], now_ms, most=MAX_LOOKED_AT)
    services.limits.work_refusal(number, EVENT_WORK * min(len(newest), MAX_EVENTS), now_ms)
    compared = 0
    slices = in_slices(services.world, services.store, newest, partial(_matching, scope))
    async with aclosing(in_turns(slices, call.turn.held)) as parts:
        async for found in parts:
            for each in found:
                if each is not None:
                    preview.note(*each)
                    compared += 1
                if compared == MAX_EVENTS:
                    return preview.summary()
    return preview.summary()


def _matching(
    scope: _Scope, snapshot: Snapshot, places: Sequence[events.EventPosition]
) -> Iterator[tuple[UUID, Event, Document | None] | None]:
    """Yield id, event and document of each of these events; `None` for one that is gone or outside the scope."""
    for each in events.read_each(snapshot, places):
        if each is None or not scope.has(each.event):
            yield None
        else:
            yield each.request_id, each.event, _document(snapshot, scope.organization, *each)


def _scope(snapshot: Snapshot, number: int, body: PreviewWeightsBody, now_ms: int) -> _Scope | Refusal:
    """Return the scope of a preview, checked by the same function as a save."""
    key_id = sent(body.key_id)
    saved = changed_weights(snapshot, number, key_id, body.platform, weights_change(body), now_ms)
    if isinstance(saved, Refusal):
        return saved
    environment: Environment = "production"
    if body.environment is not UNSET:
        environment = body.environment
    elif key_id is not None:
        key = lookups.find_sdk_key(snapshot, number, key_id)
        assert key is not None, "a save for an unknown key is refused"
        environment = key.environment or environment
    return _Scope(
        organization=number,
        environment=environment,
        platform=body.platform,
        key_id=key_id,
        own=weights_queries.keys_with_weights(snapshot, number, body.platform) if key_id is None else frozenset(),
        before=weights_queries.weights_in_force(snapshot, number, key_id, body.platform),
        after=resolve(None, saved, body.platform) if key_id is None else resolve(saved, None, body.platform),
    )


def _document(snapshot: Snapshot, number: int, request_id: UUID, event: Event) -> Document | None:
    """Return the document. A corrupt one is logged for the operator, and its event compared without it."""
    if not event.has_document:
        return None
    try:
        return events.document(snapshot, number, request_id)
    except CorruptionError as error:
        log.exception("an archive cannot be read", request_id=str(request_id), reason=str(error))
        return None


ROUTES: tuple[Route, ...] = (
    _read(
        operation_id="getOrganizationRiskWeights",
        path=ORGANIZATION + "/risk-weights",
        summary="Read the organization's risk weights",
    ),
    _save(
        operation_id="saveOrganizationRiskWeights",
        path=ORGANIZATION + "/risk-weights/{platform}",
        summary="Save the organization's risk weights for a platform",
        errors=("revision_conflict",),
    ),
    _restore(
        operation_id="restoreOrganizationRiskWeights",
        path=ORGANIZATION + "/risk-weights/{platform}",
        summary="Restore the organization's risk weights for a platform",
        description="Back to the defaults.",
    ),
    _read(
        operation_id="getSdkKeyRiskWeights",
        path=ORGANIZATION + "/sdk-keys/{key_id}/risk-weights",
        summary="Read the risk weights of an SDK key",
    ),
    _save(
        operation_id="saveSdkKeyRiskWeights",
        path=ORGANIZATION + "/sdk-keys/{key_id}/risk-weights/{platform}",
        summary="Save the risk weights of an SDK key for a platform",
        errors=("revision_conflict", "sdk_key_revoked"),
    ),
    _restore(
        operation_id="restoreSdkKeyRiskWeights",
        path=ORGANIZATION + "/sdk-keys/{key_id}/risk-weights/{platform}",
        summary="Restore the risk weights of an SDK key for a platform",
        description="Back to those of the organization.",
        errors=("sdk_key_revoked",),
    ),
    _route(
        operation_id="listRiskSignals",
        path=ORGANIZATION + "/risk-signals",
        summary="List the signals that can fire",
        handler=list_signals,
    ),
    console_route(
        operation_id="previewWeights",
        method="POST",
        needs="read",
        path="/weights/preview",
        summary="Preview weights before they are saved",
        description=(
            "Results that the newest 10,000 events of that scope and platform would have with these weights, "
            "against what the weights in force now make of them. At most the newest 50,000 of the environment are "
            "looked at. What was noticed then is weighed again, and nothing is detected again. Events of keys with "
            "weights of their own are left out of the organization's preview. Refused as saving them would be; nothing "
            "is saved."
        ),
        handler=preview_weights,
        body=PreviewWeightsBody,
        example='{"suspect_threshold": 30, "weights": {"tor": 30}, "platform": "web", "environment": "development"}',
        errors=("not_found", "sdk_key_revoked"),
    ),
)
