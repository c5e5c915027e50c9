"""`svc webhook trigger`: have a running `svc dev` send an event of a type, to try a receiver with."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from svc.command.changes import Change, commit
from svc.command.data_directory import opened
from svc.command.help import examples
from svc.command.local_service import DevService, dev_data_option, identify_sample, post, service_option
from svc.command.output import CommandError, json_option, show
from svc.features.webhooks.content.payloads import DATA
from svc.features.webhooks.jobs.endpoints import Queued, queue_sample
from svc.features.webhooks.records import EVENT_TYPES, EventType
from svc.http.openapi import json_schema
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.refusals import Refusal
from svc.world import World

_REFUSED_BODY = {"sdk": {"platform": "web"}, "signals": {"tier": "deferred"}}
"""Identify refuses a deferred report with 422."""


@click.command(epilog=examples("svc webhook trigger visitor.suspect", "svc webhook trigger webhook.test --json"))
@click.argument("event_type", metavar="TYPE", type=click.Choice(EVENT_TYPES))
@service_option
@dev_data_option
@json_option
def trigger(event_type: EventType, service: str | None, directory: Path, as_json: bool) -> None:
    """Make a running `svc dev` send an event of TYPE, such as visitor.suspect, to its webhook endpoints.

    Identifications are real: a sample report is sent with the secret key of `svc dev`, and the event can be read
    afterwards; filters of endpoints apply. Refusals are reported at most once a minute. Billing and usage events
    contain sample figures and go to every endpoint that is not paused, as tests do. An unknown TYPE lists all types.
    First run `svc webhook listen --forward-to URL` elsewhere.
    """
    dev = DevService(directory, service)
    targets = [endpoint for endpoint in dev.managed("GET", "/webhooks")["endpoints"] if endpoint["status"] != "paused"]
    if not targets:
        raise CommandError(
            "no webhook endpoint would get it: run `svc webhook listen --forward-to http://localhost:3000/hook` in "
            "another terminal, or resume a paused one"
        )
    try:
        send = _TRIGGERS.get(event_type) or partial(_sample_event, event_type)
        done = send(dev, directory, [endpoint["id"] for endpoint in targets])
    except (OSError, http.client.HTTPException) as error:
        raise dev.unreachable(error) from error
    show({"type": event_type, **done}, as_json=as_json)


Done = dict[str, Any]
"""What is printed of a trigger, besides its type."""


def _identified(dev: DevService, _: Path, __: list[str], *, automated: bool) -> Done:
    response = identify_sample(dev.address, dev.keys.secret, "first_visit", automated=automated)
    if automated and response["suspect_level"] == "low":
        raise CommandError(
            f"the sample of an automated browser scored {response['suspect_score']}, which is below the threshold of "
            "the development organization: lower it, or raise the weights of bot signals"
        )
    return {
        "request_id": response["request_id"],
        "visitor_id": response["visitor_id"],
        "score": response["suspect_score"],
    }


def _refused(dev: DevService, _: Path, __: list[str]) -> Done:
    status, response = post(dev.address, dev.keys.secret, _REFUSED_BODY, "Mozilla/5.0")
    return {"request_id": response["request_id"], "status": status, "code": response["error"]["code"]}


def _reviewed(dev: DevService, directory: Path, ids: list[str], *, closed: bool) -> Done:
    done = _identified(dev, directory, ids, automated=False)
    review = _opened(dev, done["request_id"])
    if review["request_id"] != done["request_id"]:  # one that an earlier sample left open: nothing was sent
        _close(dev, review)
        review = _opened(dev, done["request_id"])
    if closed:
        _close(dev, review)
    return {"request_id": done["request_id"], "review_id": review["id"]}


def _opened(dev: DevService, request_id: str) -> Done:
    return dev.managed("POST", "/reviews", {"request_id": request_id})["review"]


def _close(dev: DevService, review: Done) -> None:
    dev.managed("POST", f"/reviews/{review['id']}/close", {"label": "legitimate"})


def _test(dev: DevService, _: Path, endpoints: list[str]) -> Done:
    queued = [dev.managed("POST", f"/webhooks/{endpoint}/test")["event_id"] for endpoint in endpoints]
    return {"event_ids": queued, "endpoints": endpoints}


def _sample_event(event_type: EventType, dev: DevService, directory: Path, ids: list[str]) -> Done:
    """Queue an event made from the examples of the API reference."""
    kind, _ = DATA[event_type]
    data = json_schema.example(json_schema.components([], [kind]), json_schema.reference(kind))
    world = World.real()
    now_ms = world.now_ms()
    queued: list[str] = []
    with opened(directory) as found:
        for endpoint_id in ids:

            def job(transaction: Transaction, endpoint_id: str = endpoint_id) -> Queued:
                event_id = world.request_id(now_ms)
                done = queue_sample(
                    transaction, dev.number, endpoint_id, event_type, data, event_id=event_id, now_ms=now_ms
                )
                if isinstance(done, Refusal):
                    raise CommandError(done.message)
                return done

            change = Change(dev.number, endpoint_id, {"events": [event_type]})
            queued.append(str(commit(found, world, job, lambda _, change=change: change).event_id))
    return {"event_ids": queued, "endpoints": ids}


_TRIGGERS: dict[str, Callable[[DevService, Path, list[str]], Done]] = {
    "identification.completed": partial(_identified, automated=False),
    "visitor.suspect": partial(_identified, automated=True),
    "identification.refused": _refused,
    "webhook.test": _test,
    "review.opened": partial(_reviewed, closed=False),
    "review.closed": partial(_reviewed, closed=True),
}
"""How events that a service can be made to send come about. Of any other type a sample is queued."""
