"""A log-in that asks for a second factor, unless the visitor is known for the account and nothing is suspicious."""

import secrets

import visitors
from django.core.cache import cache
from django.shortcuts import redirect, render
from svc_client import Checked, SvcError

MAX_TRIES = 3


def view(request):
    if request.method != "POST":
        return form(request)
    email = request.POST.get("email", "")
    known = cache.get(f"visitors-of:{email}")
    if known is None:  # and here a real log-in checks the password, before anything else
        return form(request, "There is no such account.", 403)
    try:
        checked = visitors.check(request, "log_in")
    except SvcError:
        checked = Checked("not_found", None)
    # Without an identification, since an extension or an outage is in its way, a second factor takes its place.
    if checked.decision == "refuse" and checked.problem != "not_found":
        return form(request, "We can't log you in. Please contact our support.", 403)
    event = checked.event
    if checked.decision == "accept" and event["visitor_id"] in known:
        return welcome(request, email)
    code = f"{secrets.randbelow(10**6):06}"
    request.session["second factor"] = {
        "email": email,
        "code": code,
        "tries": 0,
        "visitor_id": event["visitor_id"] if event is not None and event["identifiable"] else None,
    }
    print(f"code for {email}: {code}", flush=True)  # as an e-mail
    return redirect("/log-in/code")


def second_factor(request):
    asked = request.session.get("second factor")
    if asked is None:  # nobody asked, or all tries are used up
        return redirect("/log-in")
    shown = {"title": "Enter the code that we sent you", "fields": [("code", "text")]}
    if request.method != "POST":
        return render(request, "page.html", shown)
    asked["tries"] += 1
    request.session["second factor"] = asked if asked["tries"] < MAX_TRIES else None
    if not secrets.compare_digest(request.POST.get("code", "").encode(), asked["code"].encode()):
        return render(request, "page.html", {**shown, "message": "That is not the code."}, status=403)
    del request.session["second factor"]
    if asked["visitor_id"] is not None:  # from now on this visitor is known for the account
        name = f"visitors-of:{asked['email']}"
        cache.set(name, cache.get(name, set()) | {asked["visitor_id"]}, timeout=None)
    return welcome(request, asked["email"])


def welcome(request, email):
    request.session.cycle_key()
    request.session["account"] = email
    return render(request, "page.html", {"title": "Welcome back", "message": f"You are logged in as {email}."})


def form(request, message="", status=200):
    shown = {
        "title": "Log in",
        "message": message,
        "fields": [("email", "email"), ("password", "password")],
        "tag": visitors.new_tag(request, "log_in"),
        "action": "log_in",
        "service_url": visitors.SERVICE_URL,
        "public_key": visitors.PUBLIC_KEY,
    }
    return render(request, "page.html", shown, status=status)
