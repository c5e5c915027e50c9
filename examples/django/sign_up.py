"""A sign-up form that rejects suspects."""

import secrets

import visitors
from django.core.cache import cache
from django.shortcuts import render

MOST_ACCOUNTS = 3
"""Of one visitor in a day: often worth more than any score."""


def view(request):
    if request.method != "POST":
        return form(request)
    try:
        event, problem = visitors.checked_event(request, "sign-up")
    except OSError:
        # A sign-up can wait. A shop that can't wait lets it pass here, and looks at it later.
        return form(request, "We can't open accounts at the moment. Please try again in a few minutes.", 503)
    if problem:
        return form(request, f"We could not verify this browser ({problem}). Please try again.", 422)
    if event.get("suspect_level") == "high":
        # Tell a suspect as little as possible: `event["signals"]` is for your own log.
        print("rejected:", event["request_id"], [signal["signal"] for signal in event["signals"]], flush=True)
        return form(request, "We can't open an account for you. Please contact our support.", 403)
    visitor_id, email = event["visitor_id"], request.POST.get("email", "")
    if event["velocity"]["visitor"]["accounts"]["24h"] >= MOST_ACCOUNTS:
        return form(request, "You have opened several accounts today. Please contact our support.", 403)
    # Keep the visitor with the account: the log-in compares it.
    if not cache.add(f"visitors-of:{email}", {visitor_id}, timeout=None):
        return form(request, "There is an account of this name.", 409)
    account_id = secrets.token_hex(8)  # opaque: no e-mail address leaves the shop
    cache.set(f"account-of:{email}", account_id, timeout=None)
    try:
        visitors.set_account(event, account_id)
    except OSError as error:  # the account is open all the same, and one is counted too few
        print("not set:", event["request_id"], error, flush=True)
    return render(request, "page.html", {"title": "Welcome", "message": "Your account is open.", "links": ["log-in"]})


def form(request, message="", status=200):
    shown = {
        "title": "Sign up",
        "message": message,
        "fields": [("email", "email"), ("password", "password")],
        "tag": visitors.new_tag(request, "sign-up"),
        "action": "sign_up",
        "service_url": visitors.SERVICE_URL,
        "public_key": visitors.PUBLIC_KEY,
    }
    return render(request, "page.html", shown, status=status)
