"""A shop in Django that identifies who signs up and who logs in: `python app.py`.

`visitors.py` checks an identification and decides; that is the part to take over.
"""

import os
import secrets
from pathlib import Path

import django
from django.conf import settings
from django.core.management import execute_from_command_line
from django.shortcuts import render
from django.urls import path

PORT = int(os.environ.get("PORT", "8000"))

settings.configure(
    DEBUG=os.environ.get("DEBUG") == "1",
    SECRET_KEY=os.environ.get("DJANGO_SECRET_KEY", secrets.token_hex(32)),
    ALLOWED_HOSTS=["localhost", "127.0.0.1"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
    ],
    # Sessions, used request ids and accounts are in the memory of this one process. A shop has a database.
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "DIRS": [Path(__file__).resolve().parent / "templates"],
        }
    ],
)
django.setup()

import log_in  # noqa: E402  views need the settings
import sign_up  # noqa: E402
import webhooks  # noqa: E402


def home(request):
    return render(request, "page.html", {"title": "A shop", "links": ["sign-up", "log-in"]})


urlpatterns = [
    path("", home),
    path("sign-up", sign_up.view),
    path("log-in", log_in.view),
    path("log-in/code", log_in.second_factor),
    path("webhooks", webhooks.view),
]

if __name__ == "__main__":
    execute_from_command_line(["app.py", "runserver", "--noreload", f"127.0.0.1:{PORT}"])
