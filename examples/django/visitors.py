"""Reads an identification by its request id, and checks that it belongs to this very action."""

import json
import os
import re
import secrets
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.core.cache import cache

ENVIRONMENT = os.environ.get("SVC_ENVIRONMENT", "development")
LONGEST_AGE = timedelta(minutes=5)


def setting(variable, kept_as):
    """From the environment, else as `make run` in the checkout has kept it."""
    if found := os.environ.get(variable):
        return found
    file = Path(os.environ.get("SVC_DEV_KEYS", Path(__file__).parents[2] / "data" / "dev-keys.json"))
    found = json.loads(file.read_text()).get(kept_as) if file.exists() else None
    if not found:
        raise SystemExit(f'No key: start the service with "make run" in the checkout first, or set {variable}.')
    return found


SERVICE_URL = setting("SVC_URL", "url")
PUBLIC_KEY, SECRET_KEY = setting("SVC_PUBLIC_KEY", "public"), setting("SVC_SECRET_KEY", "secret")


def new_tag(request, action):
    """A tag for one form of one session. The page identifies with it, so that no other identification fits here."""
    request.session[f"tag:{action}"] = tag = secrets.token_hex(16)
    return tag


def checked_event(request, action):
    """(event, None), or (None, why it doesn't count) for the form that was posted. Raises `OSError` where the service
    can't be asked: decide for each action what happens then.
    """
    event = read_event(request.POST.get("request_id", ""))
    tag = request.session.pop(f"tag:{action}", None)
    problem = problem_with(event, tag=tag, origin=f"{request.scheme}://{request.get_host()}")
    return (None, problem) if problem else (event, None)


def read_event(request_id):
    """The event, or `None` where there is none. The request id is from the client: it may be anything."""
    if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", request_id):
        return None
    url = f"{SERVICE_URL}/api/v1/events/{request_id}"
    try:
        question = urllib.request.Request(url, headers={"x-api-key": SECRET_KEY})
        with urllib.request.urlopen(question, timeout=5) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        if error.code in (404, 422):
            return None
        raise


def set_account(event, account_id):
    """Say for which account it was, once your own code knows: a page could name any. The service counts by it. Raises
    `OSError` as above.
    """
    question = urllib.request.Request(
        f"{SERVICE_URL}/api/v1/events/{event['request_id']}",
        data=json.dumps({"account_id": account_id}).encode(),
        headers={"x-api-key": SECRET_KEY, "content-type": "application/json"},
        method="PATCH",
    )
    urllib.request.urlopen(question, timeout=5).close()


def problem_with(event, *, tag, origin):
    """Why the event doesn't belong to this action, or `None`. The last check counts as use: call it once for a form."""
    if event is None:
        return "no such identification"
    if event["environment"] != ENVIRONMENT:  # a development key in a production shop, or the other way round
        return "another environment"
    age = datetime.now(UTC) - datetime.fromisoformat(event["occurred_at"])
    if not timedelta(seconds=-30) < age < LONGEST_AGE:
        return "too old"
    if event.get("origin") != origin:
        return "another site"
    if tag is None or event.get("tag") != tag:
        return "another session or action"
    # In a shop: a unique column in the database.
    if not cache.add(f"used:{event['request_id']}", True, timeout=2 * LONGEST_AGE.total_seconds()):
        return "used before"
    return None
