"""ROUTES: every route as one row. Registration, authentication, CORS, documents and tests all read this table."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from svc.http import attestation, client_api, documents, events, health
from svc.http.management import keys, visitors, weights
from svc.http.management.schema import (
    IssuedProxyKeyBody,
    IssuedSdkKeyBody,
    IssueProxyKeyBody,
    IssueSdkKeyBody,
    ManagementKeyBody,
    ProxyKeyBody,
    ProxyKeysBody,
    ReplaceOriginsBody,
    RiskWeightsBody,
    SaveWeightsBody,
    SdkKeyBody,
    SdkKeysBody,
    SignalsBody,
)
from svc.http.route import BASE, Route
from svc.http.schema import (
    ChallengeAnswer,
    DuplicateAnswer,
    EventDetailBody,
    EventsAnswer,
    HealthBody,
    IdentifyAnswer,
    IdentifyBody,
    ListEventsQuery,
    ReadinessBody,
    SupplementAnswer,
    SupplementBody,
)

_ORGANIZATION = "/management/organizations/{organization_id}"
_KEYED = ("unauthorized", "validation_error")
_OWN = (*_KEYED, "not_found")
_ADMIN = (*_OWN, "insufficient_role")
_BODY = ("payload_too_large", "unsupported_media_type")

API: tuple[Route, ...] = (
    Route(
        operation_id="identify",
        method="POST",
        path="/identify",
        endpoint=client_api.identify,
        kinds=("public", "secret", "proxy"),
        body=IdentifyBody,
        answer=IdentifyAnswer,
        other_answers=((200, DuplicateAnswer),),
        from_browsers=True,
        errors=(
            "unauthorized",
            "billing_blocked",
            "no_credit",
            "payload_too_large",
            "unsupported_media_type",
            "idempotency_key_too_long",
            "invalid_visitor_metadata",
            "validation_error",
            "rate_limited",
        ),
    ),
    Route(
        operation_id="issueAttestationChallenge",
        method="POST",
        path="/attestation/challenge",
        endpoint=attestation.issue,
        kinds=("public",),
        answer=ChallengeAnswer,
        from_browsers=True,
        errors=("unauthorized", "validation_error"),
    ),
    Route(
        operation_id="supplementEvent",
        method="POST",
        path="/events/{request_id}/supplement",
        endpoint=events.supplement_event,
        kinds=("public",),
        body=SupplementBody,
        answer=SupplementAnswer,
        status=202,
        from_browsers=True,
        errors=(*_KEYED, *_BODY, "supplement_conflict", "invalid_supplement", "invalid_request_id"),
    ),
    Route(
        operation_id="listEvents",
        method="GET",
        path="/events",
        endpoint=events.list_events,
        kinds=("secret",),
        query=ListEventsQuery,
        answer=EventsAnswer,
        errors=(*_KEYED, "invalid_window"),
    ),
    Route(
        operation_id="getEvent",
        method="GET",
        path="/events/{request_id}",
        endpoint=events.get_event,
        kinds=("secret",),
        answer=EventDetailBody,
        errors=(*_KEYED, "event_not_found", "invalid_request_id"),
    ),
    Route(
        operation_id="getManagementKey",
        method="GET",
        path="/management/key",
        endpoint=keys.describe_key,
        kinds=("management",),
        answer=ManagementKeyBody,
        errors=_KEYED,
    ),
    Route(
        operation_id="listProxyKeys",
        method="GET",
        path=_ORGANIZATION + "/proxy-credentials",
        endpoint=keys.list_proxy_keys,
        kinds=("management",),
        role="admin",
        answer=ProxyKeysBody,
        errors=_ADMIN,
    ),
    Route(
        operation_id="issueProxyKey",
        method="POST",
        path=_ORGANIZATION + "/proxy-credentials",
        endpoint=keys.issue_proxy_key,
        kinds=("management",),
        role="admin",
        body=IssueProxyKeyBody,
        answer=IssuedProxyKeyBody,
        status=201,
        errors=(*_ADMIN, *_BODY),
    ),
    Route(
        operation_id="revokeProxyKey",
        method="POST",
        path=_ORGANIZATION + "/proxy-credentials/{proxy_credential_id}/revoke",
        endpoint=keys.revoke_proxy_key,
        kinds=("management",),
        role="admin",
        answer=ProxyKeyBody,
        errors=(*_ADMIN, "proxy_key_revoked"),
    ),
    Route(
        operation_id="listSdkKeys",
        method="GET",
        path=_ORGANIZATION + "/sdk-keys",
        endpoint=keys.list_sdk_keys,
        kinds=("management",),
        answer=SdkKeysBody,
        errors=_OWN,
    ),
    Route(
        operation_id="issueSdkKey",
        method="POST",
        path=_ORGANIZATION + "/sdk-keys",
        endpoint=keys.issue_sdk_key,
        kinds=("management",),
        body=IssueSdkKeyBody,
        answer=IssuedSdkKeyBody,
        status=201,
        errors=(*_OWN, *_BODY),
    ),
    Route(
        operation_id="revokeSdkKey",
        method="POST",
        path=_ORGANIZATION + "/sdk-keys/{key_id}/revoke",
        endpoint=keys.revoke_sdk_key,
        kinds=("management",),
        answer=SdkKeyBody,
        errors=(*_OWN, "sdk_key_revoked"),
    ),
    Route(
        operation_id="replaceSdkKeyOrigins",
        method="PUT",
        path=_ORGANIZATION + "/sdk-keys/{key_id}/allowed-origins",
        endpoint=keys.replace_origins,
        kinds=("management",),
        body=ReplaceOriginsBody,
        answer=SdkKeyBody,
        errors=(*_OWN, *_BODY, "sdk_key_revoked"),
    ),
    Route(
        operation_id="getOrganizationRiskWeights",
        method="GET",
        path=_ORGANIZATION + "/risk-weights",
        endpoint=weights.read_weights,
        kinds=("management",),
        answer=RiskWeightsBody,
        errors=_OWN,
    ),
    Route(
        operation_id="saveOrganizationRiskWeights",
        method="PUT",
        path=_ORGANIZATION + "/risk-weights/{platform}",
        endpoint=weights.save,
        kinds=("management",),
        role="admin",
        body=SaveWeightsBody,
        answer=RiskWeightsBody,
        errors=(*_ADMIN, *_BODY, "revision_conflict"),
    ),
    Route(
        operation_id="restoreOrganizationRiskWeights",
        method="DELETE",
        path=_ORGANIZATION + "/risk-weights/{platform}",
        endpoint=weights.restore,
        kinds=("management",),
        role="admin",
        answer=RiskWeightsBody,
        errors=_ADMIN,
    ),
    Route(
        operation_id="getSdkKeyRiskWeights",
        method="GET",
        path=_ORGANIZATION + "/sdk-keys/{key_id}/risk-weights",
        endpoint=weights.read_weights,
        kinds=("management",),
        answer=RiskWeightsBody,
        errors=_OWN,
    ),
    Route(
        operation_id="saveSdkKeyRiskWeights",
        method="PUT",
        path=_ORGANIZATION + "/sdk-keys/{key_id}/risk-weights/{platform}",
        endpoint=weights.save,
        kinds=("management",),
        role="admin",
        body=SaveWeightsBody,
        answer=RiskWeightsBody,
        errors=(*_ADMIN, *_BODY, "revision_conflict", "sdk_key_revoked"),
    ),
    Route(
        operation_id="restoreSdkKeyRiskWeights",
        method="DELETE",
        path=_ORGANIZATION + "/sdk-keys/{key_id}/risk-weights/{platform}",
        endpoint=weights.restore,
        kinds=("management",),
        role="admin",
        answer=RiskWeightsBody,
        errors=(*_ADMIN, "sdk_key_revoked"),
    ),
    Route(
        operation_id="listRiskSignals",
        method="GET",
        path=_ORGANIZATION + "/risk-signals",
        endpoint=weights.list_signals,
        kinds=("management",),
        answer=SignalsBody,
        errors=_OWN,
    ),
    Route(
        operation_id="eraseVisitor",
        method="DELETE",
        path=_ORGANIZATION + "/visitors/{visitor_id}",
        endpoint=visitors.erase,
        kinds=("management",),
        role="admin",
        answer=None,
        status=204,
        errors=_ADMIN,
    ),
    Route(
        operation_id="getHealth",
        method="GET",
        path="/healthz",
        endpoint=health.healthz,
        answer=HealthBody,
        under=("", BASE),
    ),
    Route(
        operation_id="getReadiness",
        method="GET",
        path="/readyz",
        endpoint=health.readyz,
        answer=ReadinessBody,
        other_answers=((503, ReadinessBody),),
        under=("", BASE),
    ),
)
"""What the reference describes."""

_OPENAPI, _COLLECTION = documents.documents(API)

ROUTES: tuple[Route, ...] = (
    *API,
    Route(operation_id="getOpenApi", method="GET", path="/openapi.json", endpoint=_OPENAPI, answer=None),
    Route(operation_id="getCollection", method="GET", path="/collection.json", endpoint=_COLLECTION, answer=None),
    Route(operation_id="getPage", method="GET", path="/docs", under=("",), endpoint=documents.page, answer=None),
    Route(
        operation_id="getAsset", method="GET", path="/docs/{asset}", under=("",), endpoint=documents.asset, answer=None
    ),
)


class Place(msgspec.Struct, frozen=True):
    """One path as it is served."""

    routes: dict[str, Route]
    """By method."""
    from_browsers: bool
    """CORS is answered here."""
    allow: str
    """Every method that the path takes, as the `Allow` header says it (RFC 9110, 10.2.1)."""


class Found(NamedTuple):
    """A place, and what its path's variable segments are."""

    place: Place
    path: dict[str, str]


class Paths:
    """Finds the place that a path leads to: those without variable segments at once, the others by their segments."""

    def __init__(self, routes: tuple[Route, ...] = ROUTES) -> None:
        self._fixed: dict[str, Found] = {}
        self._variable: dict[int, list[tuple[tuple[str, ...], Place]]] = {}
        for path, place in _by_path(routes).items():
            if "{" in path:
                segments = tuple(path.split("/"))
                self._variable.setdefault(len(segments), []).append((segments, place))
            else:
                self._fixed[path] = Found(place, {})

    def find(self, path: str) -> Found | None:
        """`None` where nothing is."""
        found = self._fixed.get(path)
        if found is not None:
            return found
        parts = path.split("/")
        for segments, place in self._variable.get(len(parts), ()):
            variables = _matched(segments, parts)
            if variables is not None:
                return Found(place, variables)
        return None


def _matched(segments: tuple[str, ...], parts: list[str]) -> dict[str, str] | None:
    variables: dict[str, str] = {}
    for segment, part in zip(segments, parts, strict=True):
        if segment[:1] == "{":
            if not part:
                return None
            variables[segment[1:-1]] = part
        elif segment != part:
            return None
    return variables


def _by_path(routes: tuple[Route, ...]) -> dict[str, Place]:
    table: dict[str, dict[str, Route]] = {}
    for route in routes:
        for beginning in route.under:
            table.setdefault(beginning + route.path, {})[route.method] = route
    return {path: _place(found) for path, found in table.items()}


def _place(routes: dict[str, Route]) -> Place:
    from_browsers = any(route.from_browsers for route in routes.values())
    taken: list[str] = [*routes]
    if "GET" in routes:
        taken.append("HEAD")
    if from_browsers:
        taken.append("OPTIONS")
    return Place(routes, from_browsers, ", ".join(sorted(taken)))
