"""Checks the identification of a form, and obeys what the rules decided: `check`, and act on its `decision`."""

import json
import os
import secrets
from pathlib import Path

from django.core.cache import cache
from svc_client import Client

USED_SECONDS = 600
"""For how long a request id is remembered: `check` refuses one that is older than five minutes."""


def setting(variable, kept_as):
    """From the environment, else as `make run` in the checkout has kept it."""
    if found := os.environ.get(variable):
        return found
    file = Path(os.environ.get("SVC_DEV_KEYS", Path(__file__).parents[2] / "data" / "dev-keys.json"))
    found = json.loads(file.read_text()).get(kept_as) if file.exists() else None
    if not found:
        raise SystemExit(f'No key: start the service with "make run" in the checkout first, or set {variable}.')
    return found


SERVICE_URL, PUBLIC_KEY = setting("SVC_URL", "url"), setting("SVC_PUBLIC_KEY", "public")
svc = Client(SERVICE_URL, setting("SVC_SECRET_KEY", "secret"))


def new_tag(request, action):
    """A tag for one form of one session. The page identifies with it, so that no other identification fits here."""
    request.session[f"tag:{action}"] = tag = secrets.token_hex(16)
    return tag


def check(request, action, *, allow_unknown=False):
    """What came of the checks of the form that was posted: act on its `decision`. Raises `SvcError` where the service
    can't be asked: decide for each action what happens then.
    """
    checked = svc.check(
        request.POST.get("request_id"),
        origin=f"{request.scheme}://{request.get_host()}",
        tag=request.session.pop(f"tag:{action}", None) or secrets.token_hex(16),  # without a form, nothing fits
        action=action,
        allow_unknown=allow_unknown,
        is_first_use=is_first_use,
    )
    if checked.reasons:
        print(f"{action}: {checked.decision} {checked.reasons}", request.POST.get("request_id"), flush=True)
    return checked


def is_first_use(request_id):
    """In a shop: a unique column in the database."""
    return cache.add(f"used:{request_id}", True, timeout=USED_SECONDS)
