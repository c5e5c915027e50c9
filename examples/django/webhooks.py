"""A receiver of webhooks: it checks the signature over the exact bytes, and skips events that are done."""

import hashlib
import hmac
import json
import os
import time

from django.core.cache import cache
from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

SECRETS = [secret for secret in os.environ.get("SVC_WEBHOOK_SECRETS", "").split(",") if secret]
"""The signing secret of the endpoint; two with a comma between them while you rotate."""
MAX_SECONDS = 300
MAX_DIGITS = 12
"""Of a time: Python raises ValueError for a number of thousands of them."""
REMEMBERED_SECONDS = 30 * 24 * 3600
"""For as long as a delivery may be sent again."""


@csrf_exempt  # the signature says who it is from
@require_POST
def view(request):
    if not is_authentic(request.body, request.headers):
        return HttpResponse("the signature is not valid\n", status=401)
    event = json.loads(request.body)
    # The same event may arrive more than once. If its work raises, it arrives again: so it is remembered after that.
    known = f"webhook:{event['id']}"
    if known not in cache:
        # Real work goes into a queue: respond within 10 seconds.
        print("webhook:", event["type"], event["id"], flush=True)
        cache.set(known, True, timeout=REMEMBERED_SECONDS)
    return HttpResponse(status=204)


def is_authentic(body, headers):
    """Whether one of our secrets signed these bytes at this time."""
    timestamp = headers.get("x-svc-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= MAX_DIGITS):
        return False
    if abs(time.time() - int(timestamp)) > MAX_SECONDS:
        return False
    given = [part.strip().encode() for part in headers.get("x-svc-signature", "").split(",")]
    for secret in SECRETS:
        digest = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        if any(hmac.compare_digest(f"sha256={digest}".encode(), part) for part in given):
            return True
    return False
