"""Risk weights of an organization and of its SDK keys, and the signals there are (interface 2.11, decisions 6).

The routes of an organization and those of a key differ by `{key_id}` in the path, and share their endpoints. Every
response shows all three platforms as they stand after the change, read in the transaction that made it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from svc.features.organizations.bodies import (
    RiskWeightsBody,
    SaveWeightsBody,
    SignalBody,
    SignalsBody,
    WeightsFields,
    risk_weights,
)
from svc.features.weights.jobs import restore_weights, save_weights
from svc.http.change import caller_of, change
from svc.http.route import ORGANIZATION, Call, Route, Services
from svc.identify.queries import weights as weights_queries
from svc.identify.queries.weights import ScopeWeights
from svc.identify.scoring.signals import CATALOGUE, MAX_WEIGHT
from svc.identify.scoring.weights import StoredWeights, WeightsChange
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.fields import PLATFORMS
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.struct_fields import body_of, sent

_SIGNALS = SignalsBody(
    signals=tuple(
        body_of(
            SignalBody,
            signal,
            platforms=tuple(platform for platform in PLATFORMS if platform in signal.weights),
            default_weights=dict(signal.weights),
        )
        for signal in CATALOGUE.values()
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
    """Return the change that a body names, upon the stored `revision`; `None` = whatever it is. `by`: the
    member's id.
    """
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
_read = partial(_route, handler=read_weights, response=RiskWeightsBody)
_save = partial(
    _route,
    method="PUT",
    description=_SAVED,
    handler=save,
    needs="administer",
    body=SaveWeightsBody,
    example='{"suspect_threshold": 30, "weights": {"automation": 40, "tor": 30}}',
    response=RiskWeightsBody,
)
_restore = partial(_route, method="DELETE", handler=restore, needs="administer", response=RiskWeightsBody)
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
        response=SignalsBody,
    ),
)
