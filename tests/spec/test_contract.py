"""Interface 4.4 (end): the service against its own document, by requests that a stranger made up from it.

Schemathesis reads the document, sends its examples, its boundary values, random ones right and wrong, and chains of
requests, and holds every answer to the document. The examples name what there is in this test's service, so that each
operation is taken at least once: a run that is only refused proves nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

import pytest
import trio

from svc.features.routes import API
from tests.spec.automation import Automation
from tests.spec.commands import ROOT
from tests.spec.subscriber import Names
from tests.support.conformance import find
from tests.support.documents import both
from tests.support.effort import effort
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, live_service, report
from tests.support.receivers import Receivers

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "ignored_auth",
)
"""Whether a request is refused or taken is the business of the tests of its operation."""
MEMBERS_OWN = {
    "readInvitation",
    "acceptInvitation",
    "offerTotp",
    "confirmTotp",
    "replaceRecoveryCodes",
    "changePassword",
    "beginOpenId",
    "endOpenId",
}
"""Which take an invitation, a member's session or a provider's response, and no key."""
EXAMPLES = effort(2, 10)
"""Random requests per operation, and of chains as many."""
ONE_IN = effort(12, 1)
"""Of the operations, this share gets its boundary values at a commit, which are most of the requests."""
LIMIT_S = 300
OPERATIONS = {route.operation_id for route in API}
SHOP = "shop.example"
"""The host that the examples of the document name."""
PROGRAM = shutil.which("schemathesis", path=str(Path(sys.executable).parent)) or "schemathesis"

SETTINGS = """
hooks = "{hooks}"
continue-on-failure = true
parameters = {{ organization_id = "{organization}" }}
[auth.openapi]
publicKey = {{ api_key = "{public}" }}
secretKey = {{ api_key = "{secret}" }}
managementKey = {{ api_key = "{management}" }}
"""
WITHOUT_BOUNDARIES = """
[[operations]]
include-operation-id = {others}
phases.coverage.enabled = false
"""


@pytest.mark.slow(15)
@pytest.mark.any_store  # each route responds on both: tests/spec/test_on_postgresql.py
async def test_no_generated_request_finds_an_error_or_an_undocumented_response(directory: Path, crash_seed: int):
    names = Names()
    names.known[SHOP] = (PUBLIC_ADDRESS,)
    async with live_service(directory / "data", transport=Receivers(), resolver=names) as live:
        others = [name for name in OPERATIONS if (crc32(name.encode()) + crash_seed) % ONE_IN]
        await generated_requests_find_nothing(live, directory, others)


async def generated_requests_find_nothing(live: Live, tmp_path: Path, others: list[str]) -> None:
    """`others` are operations that get no boundary values."""
    from tests.support import schemathesis_hooks  # takes long to import, in each process

    assert schemathesis_hooks.ORIGIN == ORIGIN
    secrets = {kind: live.issue(kind)[1] for kind in ("public", "secret", "management")}
    settings, document, sent = (tmp_path / name for name in ("settings.toml", "openapi.json", "sent.json"))
    settings.write_text(
        SETTINGS.format(**secrets, organization=live.organization.id, hooks=schemathesis_hooks.__file__)
        + (WITHOUT_BOUNDARIES.format(others=json.dumps(others)) if others else "")
    )
    document.write_text(json.dumps(await document_of(live, secrets["public"])))
    done = await run(
        tmp_path,
        *("--config-file", str(settings), "run", str(document), "--url", live.url),
        *("--phases", "examples,coverage,fuzzing,stateful", "--checks", ",".join(CHECKS)),
        *("--max-examples", str(EXAMPLES), "--generation-deterministic", "--no-shrink", "--warnings", "off"),
        *("--report", "har", "--report-har-path", str(sent)),
    )
    told = done.stdout.decode()
    assert done.returncode == 0, told
    taken = Counter(operation_id(entry) for entry in entries(sent) if entry["response"]["status"] < 300)
    left_out = {"signIn", "readSession", "signOut", "streamEvents"} | MEMBERS_OWN
    refused = OPERATIONS - taken.keys() - left_out
    # Among fewer requests some depend on what those before them have left: a revision, a key that is not revoked.
    assert not refused if ONE_IN == 1 else len(refused) < len(OPERATIONS) // 10, told


async def document_of(live: Live, public: str) -> Any:
    """The document with whole paths, and with examples that are there."""
    identified, erased = [(await live.identify(public, report(device))).json() for device in (1, 2)]
    document = deepcopy(both())
    document["components"]["schemas"]["SupplementBody"]["properties"]["token"]["examples"] = [
        identified["deferred_token"]
    ]
    endpoint_id, event_id = await an_endpoint(live)
    document["components"]["schemas"]["RedeliverWebhookBody"]["properties"]["event_id"]["examples"] = [event_id]
    there = {
        "request_id": identified["request_id"],
        "key_id": live.issue()[0].id,
        "visitor_id": erased["visitor_id"],
        "webhook_id": endpoint_id,
        "list_id": await a_list(live, "kept"),
    }
    deleted = {"list_id": await a_list(live, "deleted")}
    kept, closed = await a_review(live, public, "kept"), await a_review(live, public, "closed")
    there["review_id"] = kept
    noted = {
        path: {whom: subject_id, "note_id": await a_note(live, path, subject_id)}
        for path, whom, subject_id in (
            ("/visitors/", "visitor_id", identified["visitor_id"]),
            ("/accounts/", "account_id", "kept"),
        )
    }
    revoked = {"key_id": live.issue()[0].id, "proxy_credential_id": live.issue("proxy")[0].id}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            named = there | (revoked if path.endswith("/revoke") else {})
            named |= {"review_id": closed} if path.endswith("/close") else {}
            for beginning, note in noted.items():
                named |= note if beginning in path and path.endswith("/notes/{note_id}") else {}
            named |= deleted if (method, path.endswith("/{list_id}")) == ("delete", True) else {}
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in named:
                    parameter["schema"]["examples"] = [named[parameter["name"]]]
                if parameter["in"] == "query":  # a window of the past, and filters that fit nothing
                    del parameter["schema"]["examples"]
    for path in ("/console/session", "/console/api/stream"):  # for pages of the service alone, and without an end
        del document["paths"][path]
    document["paths"] = {
        path if path.startswith("/console") else "/api/v1" + path: operations
        for path, operations in document["paths"].items()
    }
    return document


async def a_review(live: Live, public: str, account: str) -> str:
    """The id of an open review of an account."""
    answer = (await live.identify(public, report(3), account_id=account)).json()
    opened = await Automation(live)("POST", "/reviews", {"request_id": answer["request_id"]})
    return opened.json()["review"]["id"]


async def a_note(live: Live, path: str, subject_id: str) -> str:
    """The id of a note about a visitor or an account."""
    return (await Automation(live)("POST", f"{path}{subject_id}/notes", {"text": "x"})).json()["id"]


async def a_list(live: Live, name: str) -> str:
    """The id of a new list of accounts."""
    return (await Automation(live)("POST", "/lists", {"name": name, "kind": "account"})).json()["id"]


async def an_endpoint(live: Live) -> tuple[str, str]:
    """Its id, and that of an event that it has received."""
    automation = Automation(live)
    body = {"url": f"https://{SHOP}/", "environment": "live", "events": [], "description": ""}
    endpoint_id = (await automation("POST", "/webhooks", body)).json()["endpoint"]["id"]
    return endpoint_id, (await automation("POST", f"/webhooks/{endpoint_id}/test")).json()["event_id"]


def entries(har: Path) -> list[Any]:
    return json.loads(har.read_text())["log"]["entries"]


def operation_id(entry: Any) -> str | None:
    operation = find(entry["request"]["method"], urlsplit(entry["request"]["url"]).path)
    return None if operation is None else operation["operationId"]


async def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """In a small environment, since requests looks through all of it twice for each request, and with the tables of
    Unicode that Hypothesis has made for these tests.
    """
    environment = {"PATH": os.environ["PATH"], "HYPOTHESIS_STORAGE_DIRECTORY": str(ROOT / ".hypothesis")}
    with trio.fail_after(LIMIT_S):
        return await trio.run_process(
            [PROGRAM, "--no-color", *arguments],
            capture_stdout=True,
            stderr=subprocess.STDOUT,
            check=False,
            cwd=directory,
            env=environment,
        )
