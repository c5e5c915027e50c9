"""A sign-up form that refuses what the score or a rule refuses, such as the third account of one device."""

import secrets

import visitors
from django.core.cache import cache
from django.shortcuts import render
from svc_client import SvcError


def view(request):
    if request.method != "POST":
        return form(request)
    try:
        checked = visitors.check(request, "sign_up", allow_unknown=True)  # nobody is known at a first visit
    except SvcError:
        # A sign-up can wait. A shop that can't wait lets it pass here, and looks at it later.
        return form(request, "We can't open accounts at the moment. Please try again in a few minutes.", 503)
    if checked.problem:
        return form(request, f"We could not verify this browser ({checked.problem}). Please try again.", 422)
    if checked.decision == "refuse":
        # Tell a suspect as little as possible: `reasons` are for your own log.
        return form(request, "We can't open an account for you. Please contact our support.", 403)
    email, request_id = request.POST.get("email", ""), checked.event["request_id"]
    # Keep the visitor with the account: the log-in compares it. In doubt none: the first log-in asks for a code.
    known = {checked.event["visitor_id"]} if checked.decision == "accept" else set()
    if not cache.add(f"visitors-of:{email}", known, timeout=None):
        return form(request, "There is an account of this name.", 409)
    account_id = secrets.token_hex(8)  # opaque: no e-mail address leaves the shop
    cache.set(f"account-of:{email}", account_id, timeout=None)
    try:
        visitors.svc.update_event(request_id, account_id=account_id)  # the service counts by it
    except SvcError as error:  # the account is open all the same, and one is counted too few
        print("not set:", request_id, error, flush=True)
    return render(request, "page.html", {"title": "Welcome", "message": "Your account is open.", "links": ["log-in"]})


def form(request, message="", status=200):
    shown = {
        "title": "Sign up",
        "message": message,
        "fields": [("email", "email"), ("password", "password")],
        "tag": visitors.new_tag(request, "sign_up"),
        "action": "sign_up",
        "service_url": visitors.SERVICE_URL,
        "public_key": visitors.PUBLIC_KEY,
    }
    return render(request, "page.html", shown, status=status)
