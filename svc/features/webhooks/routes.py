"""Webhook endpoints of an organization, what became of its deliveries (interface 2.9, 2.10 and 4.4, decisions 8), and
the document of the API reference page, which has webhooks, unlike the published one.

A URL is checked before the transaction, since its host has to be looked up; every attempt checks it again. The outbox
learns of a change after its commit. Counts and times of attempts are as of the response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

import msgspec
import trio
from msgspec import UNSET

from svc.features.rules.language.conditions import is_valid
from svc.features.webhooks.bodies import (
    CreateWebhookBody,
    IssuedWebhookBody,
    ListWebhookDeliveriesQuery,
    QueuedDeliveryBody,
    RedeliverWebhookBody,
    RotateWebhookSecretBody,
    UpdateWebhookBody,
    WebhookBody,
    WebhookDeliveriesBody,
    WebhooksBody,
    delivery_row,
    webhook_row,
)
from svc.features.webhooks.content.envelope import Envelope, standard_secret
from svc.features.webhooks.content.payloads import DATA, EndpointTest
from svc.features.webhooks.jobs import endpoints
from svc.features.webhooks.jobs.endpoints import Issued, NewEndpoint, Queued
from svc.features.webhooks.queries import (
    BEYOND,
    Registered,
    attempts_in_a_day,
    attempts_page,
    endpoints_of,
    filter_errors_in_a_day,
    find_endpoint,
    health,
)
from svc.features.webhooks.records import HISTORY_MS, Attempt
from svc.http.callers.limits import condition_work
from svc.http.change import caller_of, change
from svc.http.listing import encoded, read_page
from svc.http.openapi import document as openapi
from svc.http.openapi import json_schema
from svc.http.openapi.json_schema import Json, reference
from svc.http.route import ORGANIZATION, Call, Route, Services
from svc.kernel.access.audit import Audited
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.encodings import Cursors
from svc.kernel.values.fields import A_WEBHOOK_ID, AN_EVENT_ID, about
from svc.kernel.values.ids import first_id, is_id
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import fields_sent, sent
from svc.world import twenty_characters

T = TypeVar("T")


async def list_webhooks(services: Services, call: Call) -> WebhooksBody | Refusal:
    """`GET .../webhooks`: all endpoints, newest first (interface 4.4)."""
    caller = caller_of(call)
    found = await services.store.query(partial(endpoints_of, number=caller.organization.number))
    rows: list[WebhookBody] = []
    for registered in reversed(found):
        rows.append(await _row(services, call, registered))
        await trio.lowlevel.checkpoint()  # a busy endpoint's day is 1,441 rows to add up: some milliseconds
    return WebhooksBody(tuple(rows))


async def create_webhook(services: Services, call: Call) -> IssuedWebhookBody | Refusal:
    """`POST .../webhooks`: `201` with the endpoint and its signing secret, which is shown only now (interface 4.4).
    `409 webhook_limit`, `422` with the field.
    """
    body: CreateWebhookBody = call.body
    refusal = endpoints.faulty_events(body.events, body.environment)
    refusal = refusal or await services.webhooks.check_target(body.url, call.organization.number)
    refusal = refusal or compile_filter(services, call, body.filter)
    if refusal is not None:
        return refusal
    new = NewEndpoint(id="whk_" + twenty_characters(services.world.entropy), **msgspec.structs.asdict(body))
    return await _issue(services, call, partial(endpoints.create_endpoint, new=new))


async def update_webhook(services: Services, call: Call) -> WebhookBody | Refusal:
    """`PATCH .../webhooks/{webhook_id}`: changes only what is named (interface 4.4). `404`, `422` with the field."""
    named = fields_sent(call.body)
    # without an environment in the body, whether the one it has suffices is known in the transaction
    refusal = endpoints.faulty_events(named.get("events", ()), named.get("environment", "live"))
    if refusal is None and await _is_another_url(services, call, named.get("url")):
        refusal = await services.webhooks.check_target(named["url"], call.organization.number)
    refusal = refusal or compile_filter(services, call, named.get("filter"))
    if refusal is not None:
        return refusal
    job = partial(endpoints.change_endpoint, endpoint_id=call.path["webhook_id"], fields=named)
    changed = await _change(services, call, job)
    if isinstance(changed, Refusal):
        return changed
    services.webhooks.due((changed.queue,))  # what waited for a resume, or for a URL that responds
    return await _row(services, call, changed)


def compile_filter(services: Services, call: Call, condition: str | None) -> Refusal | None:
    """Compile a filter before the transaction asks for it. `429 rate_limited` after much work."""
    if condition is None:
        return None
    refusal = services.limits.work_refusal(call.organization.number, condition_work([condition]), call.at_ms)
    if refusal is None:
        is_valid(condition)
    return refusal


async def delete_webhook(services: Services, call: Call) -> Refusal | None:
    """`DELETE .../webhooks/{webhook_id}`: `204`; deliveries stop at once, those in flight are cancelled. `404
    not_found`.
    """
    job = partial(endpoints.remove_endpoint, endpoint_id=call.path["webhook_id"])
    removed = await _change(services, call, job, may_use_reserve=True)
    if isinstance(removed, Refusal):
        return removed
    services.webhooks.removed(removed)
    return None


async def rotate_secret(services: Services, call: Call) -> IssuedWebhookBody | Refusal:
    """`POST .../webhooks/{webhook_id}/rotate-secret`: the endpoint with its new secret, which is shown only now
    (decisions 8.1). `404 not_found`, `409 webhook_unsigned`.
    """
    body: RotateWebhookSecretBody = call.body
    endpoint_id, hours = call.path["webhook_id"], body.previous_secret_valid_hours
    job = partial(endpoints.rotate_secret, endpoint_id=endpoint_id, overlap_hours=hours)
    return await _issue(services, call, job)


async def send_test(services: Services, call: Call) -> QueuedDeliveryBody | Refusal:
    """`POST .../webhooks/{webhook_id}/test`: `202` once one `webhook.test` is queued (decisions 8.5). `404`, `409
    webhook_busy` or `webhook_paused`.
    """
    event_id, data = services.world.request_id(call.at_ms), EndpointTest(call.path["webhook_id"])
    job = partial(endpoints.queue_sample, event_type="webhook.test", data=data, event_id=event_id, trace=call.trace)
    return await _queue(services, call, job)


async def redeliver_webhook(services: Services, call: Call) -> QueuedDeliveryBody | Refusal:
    """`POST .../webhooks/{webhook_id}/redeliver`: `202`; the same event once more, with the same id (decisions 8.5).
    `404`, `409 webhook_busy` or `webhook_paused`.
    """
    body: RedeliverWebhookBody = call.body
    return await _queue(services, call, partial(endpoints.queue_redelivery, event_id=body.event_id))


async def list_deliveries(services: Services, call: Call) -> WebhookDeliveriesBody | Refusal:
    """`GET .../webhook-deliveries`: a page of the attempts of the last 30 days, newest first (interface 4.4). `422`
    (`invalid_cursor`, or `invalid_value` for an `endpoint_id` that is none).
    """
    query: ListWebhookDeliveriesQuery = call.query
    number = call.organization.number
    if query.endpoint_id is not UNSET and not is_id("whk_", query.endpoint_id):
        return invalid("endpoint_id", "invalid_value", "query")
    wanted, environment = sent(query.endpoint_id), None if query.environment == "all" else query.environment
    since = first_id(call.at_ms - HISTORY_MS)

    def scan(snapshot: Snapshot, before: bytes, count: int) -> Iterator[tuple[bytes, tuple[bytes, Attempt] | None]]:
        rows = attempts_page(snapshot, number, environment, since=since, before=before, limit=count)
        return ((row[0], row if wanted in (None, row[1].endpoint_id) else None) for row in rows)

    cursors = Cursors(services.webhooks.cursors_key, "deliveries", number)
    rows = encoded(scan, lambda found: delivery_row(*found))
    page = await read_page(services, call.turn, cursors, query, rows, BEYOND)
    return page if isinstance(page, Refusal) else WebhookDeliveriesBody(page.rows, page.next_cursor)


async def _is_another_url(services: Services, call: Call, url: str | None) -> bool:
    """Return whether the URL must be checked: it differs from the endpoint's current one."""
    if url is None:
        return False
    number, endpoint_id = call.organization.number, call.path["webhook_id"]
    found = await services.store.query(partial(find_endpoint, number=number, endpoint_id=endpoint_id))
    return found is None or found.endpoint.url != url


async def _change(
    services: Services, call: Call, job: Callable[..., T | Refusal], *, may_use_reserve: bool = False
) -> T | Refusal:
    number = call.organization.number
    return await change(services, call, partial(job, number=number), may_use_reserve=may_use_reserve)


async def _queue(services: Services, call: Call, job: Callable[..., Queued | Refusal]) -> QueuedDeliveryBody | Refusal:
    queued = await _change(services, call, partial(job, endpoint_id=call.path["webhook_id"], now_ms=call.at_ms))
    if isinstance(queued, Refusal):
        return queued
    services.webhooks.due((queued.queue,))
    return QueuedDeliveryBody(str(queued.event_id))


async def _issue(services: Services, call: Call, job: Callable[..., Issued | Refusal]) -> IssuedWebhookBody | Refusal:
    """Give an endpoint a new secret, and respond with both."""
    issued = await _change(services, call, partial(job, secrets_key=services.webhooks.secrets_key, now_ms=call.at_ms))
    if isinstance(issued, Refusal):
        return issued
    row = await _row(services, call, issued.registered)
    is_chat = issued.registered.endpoint.is_chat
    shown = ("", "") if is_chat else (issued.secret, standard_secret(issued.secret))
    return IssuedWebhookBody(row, *shown)


async def _row(services: Services, call: Call, registered: Registered) -> WebhookBody:
    queue = registered.queue
    day, known, errors = await services.store.query(
        lambda snapshot: (
            attempts_in_a_day(snapshot, queue, call.at_ms),
            health(snapshot, queue),
            filter_errors_in_a_day(snapshot, registered, call.at_ms),
        )
    )
    return webhook_row(registered, day, known, errors, call.at_ms)


_WEBHOOK = ORGANIZATION + "/webhooks/{webhook_id}"

_WEBHOOK_ID = {"webhook_id": Annotated[str, about("Id of the endpoint.", A_WEBHOOK_ID)]}
_route = partial(Route, tag="Management: webhooks", kinds=("management",), variables=_WEBHOOK_ID)


TAG = "Webhooks"
HEADERS: dict[str, Any] = {
    "X-Svc-Event-ID": Annotated[str, about("The `id` of the body.", AN_EVENT_ID)],
    "X-Svc-Event-Type": Annotated[str, about("The `type` of the body.", "webhook.test")],
    "X-Svc-Timestamp": Annotated[str, about("When it was sent, in Unix seconds.", "1767607200")],
    "X-Svc-Signature": Annotated[
        str,
        about(
            "`sha256=` and the HMAC-SHA256 of timestamp, a full stop and the raw body. The key is the endpoint's "
            "secret.",
            "sha256=5f2b...",
        ),
    ],
}


def document(routes: Sequence[Route]) -> Json:
    """Return the OpenAPI 3.1 document of these routes, with `webhooks`."""
    made = openapi.emit(routes)
    schemas = json_schema.components([], [Envelope, *(kind for kind, _ in DATA.values())])
    known = {**made["components"]["schemas"], **schemas}
    examples = {route.operation_id: msgspec.json.decode(route.example) for route in routes if route.example}
    for operations in made["paths"].values():
        for operation in operations.values():
            content = operation.get("requestBody", {}).get("content", {}).get(openapi.JSON)
            if content is not None:
                whole = json_schema.example(known, content["schema"])
                content["example"] = examples.get(operation["operationId"], whole)
    return {
        **made,
        "components": {**made["components"], "schemas": known},
        "webhooks": {
            name: {"post": _webhook(name, reference(kind), when, known)} for name, (kind, when) in DATA.items()
        },
    }


def _webhook(name: str, data: Json, when: str, schemas: dict[str, Json]) -> Json:
    envelope = json_schema.example(schemas, reference(Envelope))
    body = {**envelope, "type": name, "data": json_schema.example(schemas, data)}
    parameters = [
        {"name": header, "in": "header", "required": True, **openapi.parameter(of)} for header, of in HEADERS.items()
    ]
    schema = {"allOf": [reference(Envelope), {"type": "object", "properties": {"data": data}}]}
    return {
        "operationId": name,
        "tags": [TAG],
        "summary": when,
        "parameters": parameters,
        "requestBody": {"required": True, "content": {openapi.JSON: {"schema": schema, "example": body}}},
        "responses": {"2XX": {"description": "Accepted. Anything else, or nothing in 10 seconds, is tried again."}},
    }


ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="listWebhooks",
        path=ORGANIZATION + "/webhooks",
        summary="List webhook endpoints",
        description="Newest first, without secrets.",
        handler=list_webhooks,
    ),
    _route(
        operation_id="createWebhook",
        audited=Audited(made="registered.endpoint.id"),
        method="POST",
        path=ORGANIZATION + "/webhooks",
        summary="Register a webhook endpoint",
        description=(
            "At most ten per organization. The signing secret is shown this once. The URL must be `https`, and every "
            "address of its host public and none of this service's own; it is judged again at every attempt, and "
            "redirects are not followed. Ports are 443 and those above 1023, unless the operator allows others. "
            "`live` endpoints get events of production traffic, `test` ones all others; `billing.status_changed` needs "
            "`live`. A `filter` that cannot be used is `invalid_condition`, and one that could cost too much "
            "`too_expensive`; `message` says why."
        ),
        handler=create_webhook,
        body=CreateWebhookBody,
        status=201,
        errors=("webhook_limit",),
    ),
    _route(
        operation_id="updateWebhook",
        method="PATCH",
        path=_WEBHOOK,
        summary="Change a webhook endpoint",
        description=(
            "Send only what changes. While it is paused nothing new is queued for it, and what was queued waits until "
            "it is resumed. A changed URL, or `paused: false`, gives a failing endpoint a new start. What waits goes "
            "out in the format that the endpoint has then; after a change to `json`, a rotation shows a secret."
        ),
        handler=update_webhook,
        body=UpdateWebhookBody,
    ),
    _route(
        operation_id="deleteWebhook",
        method="DELETE",
        path=_WEBHOOK,
        summary="Delete a webhook endpoint",
        description="Deliveries to it stop at once.",
        handler=delete_webhook,
        status=204,
    ),
    _route(
        operation_id="rotateWebhookSecret",
        method="POST",
        path=_WEBHOOK + "/rotate-secret",
        summary="Rotate the signing secret of a webhook endpoint",
        description=(
            "The new secret is shown this once. The previous one signs along for this many hours, `0` = not at all; an "
            "older one no more. A chat format has no secret."
        ),
        handler=rotate_secret,
        body=RotateWebhookSecretBody,
        body_required=False,
        errors=("webhook_unsigned",),
    ),
    _route(
        operation_id="testWebhook",
        method="POST",
        path=_WEBHOOK + "/test",
        summary="Send a test event",
        description=(
            "One `webhook.test`, whether or not the endpoint subscribes to it. It is tried once, and its "
            "failure does not make the endpoint `failing`."
        ),
        handler=send_test,
        status=202,
        errors=("webhook_busy", "webhook_paused"),
    ),
    _route(
        operation_id="redeliverWebhook",
        method="POST",
        path=_WEBHOOK + "/redeliver",
        summary="Deliver an event again",
        description=(
            "An event that was sent to this endpoint in the last 30 days, accepted or not, with the same `id`. It is "
            "tried once, and its failure does not make the endpoint `failing`."
        ),
        handler=redeliver_webhook,
        body=RedeliverWebhookBody,
        status=202,
        errors=("webhook_busy", "webhook_paused"),
    ),
    _route(
        operation_id="listWebhookDeliveries",
        path=ORGANIZATION + "/webhook-deliveries",
        summary="List delivery attempts",
        description=(
            "Of the last 30 days, newest first. The last page has no `next_cursor`. With `endpoint_id`, a page may be "
            "short or empty and have one."
        ),
        handler=list_deliveries,
        query=ListWebhookDeliveriesQuery,
    ),
)
