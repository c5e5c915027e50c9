"""The programs in `examples/`, each started by its command: against a real `svc dev`, their pages in a real browser."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs
from uuid import UUID

import httpx
import pytest

from svc.features.webhooks.content.envelope import signed_headers
from svc.features.webhooks.records import WebhookEvent
from tests.support.chromium import browser, built
from tests.support.live import USER_AGENT, report
from tests.support.ports import free_port
from tests.support.process import ENVIRONMENT, read_until, start
from tools.node_client import compile_to, compiler
from tools.packages import NPM_SCOPE
from tools.web import WEB, find_node

pytestmark = pytest.mark.slow(20)

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
REQUEST_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
WEBHOOK_SECRETS = ("svc_whsec_" + "aB3" * 14 + "x", "svc_whsec_" + "zY8" * 14 + "w")
PATIENCE_S = 60
NEVER = "019b76da-a800-7000-8000-000000000000"


class Service(NamedTuple):
    """A running `svc dev`, and its keys."""

    url: str
    keys_file: Path

    @property
    def keys(self) -> dict[str, str]:
        return json.loads(self.keys_file.read_text())

    @property
    def settings(self) -> dict[str, str]:
        return {"SVC_DEV_KEYS": str(self.keys_file)}

    def rule(self, name: str, condition: str, action: str) -> None:
        """Adds a rule below the others, for development."""
        path = f"{self.url}/api/v1/management/organizations/{self.keys['organization_id']}/rules?environment=test"
        with httpx.Client(headers={"x-api-key": self.keys["management"]}) as client:
            kept = client.get(path).json()
            fields = ("id", "name", "condition", "action", "mode")
            rules = [{field: rule[field] for field in fields} for rule in kept["rules"]]
            body = {
                "revision": kept["revision"],
                "rules": [*rules, {"name": name, "condition": condition, "action": action}],
            }
            saved = client.put(path, json=body)
            assert saved.status_code == 200, saved.text

    def event(self, request_id: str) -> dict[str, Any]:
        response = httpx.get(f"{self.url}/api/v1/events/{request_id}", headers={"x-api-key": self.keys["secret"]})
        assert response.status_code == 200, response.text
        return response.json()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Generator[Service]:
    data = tmp_path_factory.mktemp("service") / "data"
    port = free_port()
    command = ("dev", "--data", data, "--bind", f"127.0.0.1:{port}")
    process = start(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    try:
        read_until(process, "Ctrl-C")
        yield Service(f"http://127.0.0.1:{port}", data / "dev-keys.json")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)


class Example:
    """A running example. `log` is what it has printed."""

    def __init__(self, port: int, log: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""


@contextmanager
def running(command: list[str], folder: Path, log: Path, **settings: str) -> Iterator[Example]:
    port = free_port()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "clients/python"), **settings}
    environment |= {"PORT": str(port), "PYTHONUNBUFFERED": "1"}
    with log.open("w") as printed:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            example = Example(port, log)
            await_response(example, process)
            yield example
        finally:
            os.killpg(process.pid, signal.SIGTERM)  # npm's own process does not hand signals on everywhere
            process.wait(timeout=PATIENCE_S)


def await_response(example: Example, process: subprocess.Popen[bytes]) -> None:
    waiting = threading.Event()
    for _ in range(PATIENCE_S * 10):
        assert process.poll() is None, example.log
        with suppress(httpx.TransportError):
            if httpx.get(example.url, timeout=PATIENCE_S).status_code == 200:
                return
        waiting.wait(0.1)
    raise AssertionError(example.log)


# Pages ----------------------------------------------------------------------------------------------------------------


def copied(name: str, folder: Path) -> Path:
    """The example with the packages of the workspace, from which no registry is asked."""
    built()
    packages = WEB / "node_modules"
    if not (packages / "vite").exists():
        pytest.skip("the packages of web/ are not installed: `make web`")
    shutil.copytree(EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns("node_modules", ".venv", "dist"))
    installed = folder / "examples" / name / "node_modules"
    installed.mkdir()
    for package in packages.iterdir():  # one by one: Vite writes beside them
        if package.name == NPM_SCOPE:  # as from a registry, where they are no links
            shutil.copytree(package, installed / package.name, ignore=shutil.ignore_patterns("src", "test"))
        elif not package.name.startswith(".vite"):
            (installed / package.name).symlink_to(package)
    library = installed / NPM_SCOPE / "client"
    compiled = compiler()
    assert not isinstance(compiled, str), compiled
    compile_to(compiled, library / "dist")
    shutil.copy(ROOT / "clients/node/package.json", library)
    return folder / "examples" / name


def used(example: Example, expected: str = "", *, forgets: bool = False) -> str:
    """The request id that the page shows after a person has used it. `expected`: an error that its console may show;
    `forgets`: whether it has a button that removes the token and its key: a cookie, two entries of localStorage and a
    database.
    """
    seen = json.loads(browser().run("examples.mjs", example.url))
    problems = [problem for problem in seen["problems"] if not expected or expected not in problem]
    assert problems == [], example.log
    assert seen.get("stored") == ([4, 0] if forgets else None)
    found = REQUEST_ID.search(" ".join(seen["shown"]))
    assert found, (seen, example.log)
    return found[0]


def test_plain_html_submits_the_request_id(service: Service, tmp_path: Path):
    built()
    with running(["make", "run"], EXAMPLES / "html", tmp_path / "log", **service.settings) as example:
        assert service.keys["public"] in httpx.get(example.url).text
        request_id = used(example)
        assert re.fullmatch(r"[\w-]{22}", service.event(request_id)["tag"]), "of this form alone"
        assert f"refuse: {request_id}" in example.log, "a driven browser"
        again = httpx.post(f"{example.url}/subscribe", data={"request_id": request_id})
        assert "can't subscribe you" in again.text, "the tag of a form is valid once"
        alone = httpx.post(f"{example.url}/subscribe", data={"request_id": ""})
        assert "Confirm your address" in alone.text, "without an identification"


@pytest.mark.parametrize("name", ["react", "ssr"])
def test_a_react_page_identifies(service: Service, tmp_path: Path, name: str):
    folder = copied(name, tmp_path)
    node = find_node()
    assert node is not None, "the packages are installed without node"
    with running([*node.npm, "start"], folder, tmp_path / "log", **node.environment, **service.settings) as example:
        page = httpx.get(example.url).text
        assert ("<h1>Rendered on the server</h1><p>Hello!</p>" in page) == (name == "ssr")
        request_id = used(example, forgets=name == "react")
        assert service.event(request_id)["origin"] == example.url
        assert f"refuse (level:high): {request_id}" in example.log, "a driven browser"
        assert "not_a_browser" not in example.log


@pytest.mark.long
def test_nextjs_renders_identifies_and_checks_on_its_server(service: Service, tmp_path: Path):
    """From the registry, where there is one: Next.js has 340 MB."""
    built()
    compiled = compiler()
    if isinstance(compiled, str):
        pytest.skip(f"the library for Node.js can't be compiled: {compiled}")
    left_out = shutil.ignore_patterns("node_modules", ".next", "src", "test")
    for place in ("examples", "web/sdk", "web/react", "clients/node"):
        shutil.copytree(ROOT / place, tmp_path / place, ignore=left_out)
    compile_to(compiled, tmp_path / "clients/node/dist")
    folder, environment = tmp_path / "examples" / "nextjs", {**compiled.environment, "NEXT_TELEMETRY_DISABLED": "1"}
    command = [*compiled.npm, "install", "--prefer-offline", "--no-audit", "--no-fund"]
    installed = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if installed.returncode != 0:
        pytest.skip("Next.js cannot be installed: there is no registry of npm")
    environment |= service.settings
    built_by = [*compiled.npm, "run", "build"]
    made = subprocess.run(built_by, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    with running([*compiled.npm, "start"], folder, tmp_path / "log", **environment) as example:
        page = httpx.get(example.url).text
        assert "<h1>Checkout</h1>" in page
        assert service.keys["secret"] not in page
        seen = json.loads(browser().run("examples.mjs", example.url))
        assert seen["problems"] == [], example.log
        (said,) = seen["shown"]
        event = service.event(REQUEST_ID.findall(said)[0])
    # A driven browser: the server finds the event sound, and its score too high.
    assert said == f"We can't take this order. Reference: {event['request_id']}"
    assert (event["action"], event["origin"]) == ("checkout", example.url)


@pytest.mark.parametrize("name", ["react", "ssr", "nextjs"])
def test_an_example_uses_the_versions_tested_in_the_workspace(name: str):
    tested = json.loads((WEB / "package.json").read_text())["devDependencies"]
    described = json.loads((EXAMPLES / name / "package.json").read_text())
    named = {**described["dependencies"], **described.get("devDependencies", {})}
    assert {package for package, version in named.items() if version.startswith("file:")} >= {"@svc/web", "@svc/react"}
    others = {package: version for package, version in named.items() if not version.startswith("file:")}
    others.pop("next", None)  # which the workspace does not have
    assert others == {package: tested[package] for package in named if package in tested}


class Page(SimpleHTTPRequestHandler):
    """A page of the guides under the policy of the guide, and what its form is sent to."""

    content = ""
    policy = ""

    def do_GET(self) -> None:
        self.respond(self.content)

    def do_POST(self) -> None:
        if self.path.startswith("/id/"):
            self.send_error(404)
            return
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        self.respond(f"<!doctype html><code>{form.get('request_id', [''])[0]}</code>")

    def respond(self, page: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-security-policy", self.policy)
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_: object) -> None:
        """Not among what the tests print."""


GUIDE = (EXAMPLES.parent / "docs" / "frontend.md").read_text()
SEND = "console.log(request_id);"
SHOW = "document.body.append(Object.assign(document.createElement('code'), { textContent: request_id }));"


def shown_page(service: Service, file: str, containing: str) -> str:
    """The page in a guide, for this service and its key."""
    blocks = re.findall(r"^```html\n(.*?)^```$", (EXAMPLES.parent / file).read_text(), re.MULTILINE | re.DOTALL)
    (page,) = [block for block in blocks if containing in block]
    page = re.sub(r"https://id\.shop\.example|http://127\.0\.0\.1:8080", service.url, page)
    return re.sub(r"svc_pk_[\w.]+", service.keys["public"], page)


@contextmanager
def serving(service: Service, page: str, log: Path) -> Iterator[Example]:
    (policy,) = re.findall(r"^\| the service, .*\| `(script-src .*)` \|$", GUIDE, re.MULTILINE)
    policy = policy.replace("https://id.shop.example", service.url).replace("script-src", "script-src 'unsafe-inline'")
    policy = policy.replace("connect-src", "connect-src 'self'")
    given = {"content": page, "policy": f"default-src 'none'; {policy}"}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("ThisPage", (Page,), given))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Example(server.server_port, log)
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("file", "containing", "tag"),
    [
        ("README.md", SEND, None),
        ("docs/frontend.md", SEND, None),
        ("docs/frontend.md", "<form", "mJ4tq0ZfW2s"),
        ("web/sdk/README.md", SEND, None),
    ],
)
def test_a_page_shown_in_the_guides_identifies(
    service: Service, tmp_path: Path, file: str, containing: str, tag: str | None
):
    built()
    page = shown_page(service, file, containing)
    if "<form" not in page:
        page = f"<!doctype html><body>{page.replace(SEND, SHOW)}</body>"
    with serving(service, page, tmp_path / "log") as example:
        assert service.event(used(example)).get("tag") == tag


def sent_again(url: str) -> dict[str, Any]:
    """Whoever comes back to the form sends it again, and never the request id of the first time. Returns what was seen
    of both forms.
    """
    seen = json.loads(browser().run("back.mjs", url))
    first, second = seen["sent"]
    assert REQUEST_ID.fullmatch(first)
    assert second == ""
    return seen


def test_the_form_of_the_guide_is_sent_again_by_who_comes_back(service: Service, tmp_path: Path):
    built()
    with serving(service, shown_page(service, "docs/frontend.md", "<form"), tmp_path / "log") as example:
        assert sent_again(example.url)["kept"] is True


def test_the_form_of_plain_html_is_sent_again_by_who_comes_back(service: Service, tmp_path: Path):
    built()
    with running(["make", "run"], EXAMPLES / "html", tmp_path / "log", **service.settings) as example:
        first, second = sent_again(example.url)["tags"]
    assert first != second, "each tag is valid once"


def test_the_second_endpoint_is_used_when_the_first_is_not_the_service(service: Service, tmp_path: Path):
    built()
    page = shown_page(service, "docs/frontend.md", "<form")
    assert page.count('load({ apiKey: "') == 1
    page = page.replace('load({ apiKey: "', f'load({{ endpoint: ["/id", "{service.url}"], apiKey: "')
    with serving(service, page, tmp_path / "log") as example:
        assert service.event(used(example, "status of 404"))["origin"] == example.url


# The backend ----------------------------------------------------------------------------------------------------------

WITHOUT_DJANGO = importlib.util.find_spec("django") is None
django = pytest.mark.skipif(WITHOUT_DJANGO, reason="Django is not installed")
SUSPECT = {"signals": report(9, webdriver=True), "user_agent": USER_AGENT.replace("Chrome/", "HeadlessChrome/")}


@contextmanager
def shop_of(log: Path, **settings: str) -> Iterator[Example]:
    with running([sys.executable, "app.py"], EXAMPLES / "django", log, **settings) as example:
        yield example


@pytest.fixture(scope="module")
def shop(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Generator[Example]:
    log = tmp_path_factory.mktemp("shop") / "log"
    with shop_of(log, **service.settings, SVC_WEBHOOK_SECRETS=",".join(WEBHOOK_SECRETS)) as example:
        yield example


class Person:
    """Somebody with a browser of their own, whose page does what `templates/page.html` says."""

    def __init__(self, client: httpx.Client, service: Service, signals: Mapping[str, Any]) -> None:
        self.client, self.service, self.signals = client, service, signals
        self.origin = str(client.base_url).rstrip("/")
        self.page, self.action = "", "none"

    def open(self, path: str) -> str:
        """The tag of the form there."""
        self.page = self.client.get(path).text
        found = re.search(r'identify\({ action: "([a-z_]+)", tag: "([^"]+)" }\)', self.page)
        self.action = found[1] if found else "none"
        return found[2].encode().decode("unicode-escape") if found else ""

    def identified(self, tag: str, **about: str) -> str:
        response = self.client.post(
            f"{self.service.url}/api/v1/identify",
            json={"sdk": {"platform": "web"}, "action": self.action, "tag": tag, "signals": self.signals, **about},
            headers={"x-api-key": self.service.keys["public"], "origin": self.origin},
        )
        assert response.status_code == 200, response.text
        return response.json()["request_id"]

    def submit(self, path: str, **fields: str) -> httpx.Response:
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.page)
        assert found, self.page
        response = self.client.post(path, data={**fields, "csrfmiddlewaretoken": found[1]})
        self.page = response.text
        return response

    def does(self, path: str, email: str, **about: str) -> httpx.Response:
        """Opens the form, is identified, and submits it."""
        request_id = self.identified(self.open(path), **about)
        return self.submit(path, email=email, password="correct horse", request_id=request_id)


Meet = Callable[..., Person]


@pytest.fixture
def meet(service: Service) -> Generator[Meet]:
    """Makes people; their connections end with the test."""
    with ExitStack() as stack:

        def made(shop: Example, signals: Mapping[str, Any], user_agent: str = USER_AGENT) -> Person:
            client = httpx.Client(
                base_url=shop.url, headers={"user-agent": user_agent}, timeout=PATIENCE_S, follow_redirects=True
            )
            return Person(stack.enter_context(client), service, signals)

        yield made


@django
def test_the_sign_up_accepts_visitors_and_rejects_suspects(shop: Example, meet: Meet):
    person = meet(shop, report(1))
    assert person.does("/sign-up", "ada@shop.example").status_code == 200
    assert person.does("/sign-up", "ada@shop.example").status_code == 409
    suspect = meet(shop, SUSPECT["signals"], SUSPECT["user_agent"])
    assert suspect.does("/sign-up", "eve@shop.example").status_code == 403
    assert "sign_up: refuse ['level:high']" in shop.log
    assert "level:high" not in suspect.page, "a suspect is told why"


@django
def test_the_shop_obeys_a_rule_and_counts_nothing_itself(shop: Example, service: Service, meet: Meet):
    """Decisions 20: `block` refuses the third account of a visitor, `challenge` asks for a code."""
    third = 'action == "sign_up" && velocity.visitor.accounts["24h"] >= 3'
    service.rule("Third account", third, "block")
    service.rule("Second device", 'action == "log_in" && account.id == "watched"', "challenge")
    person = meet(shop, report(2))
    for number in (1, 2):
        assert person.does("/sign-up", f"two{number}@shop.example", account_id=f"two{number}").status_code == 200
    assert "You are logged in" in person.does("/log-in", "two1@shop.example").text
    assert "Enter the code" in person.does("/log-in", "two1@shop.example", account_id="watched").text
    assert "log_in: verify ['rule:Second device'" in shop.log
    assert person.does("/sign-up", "two3@shop.example", account_id="two3").status_code == 403
    assert "sign_up: refuse ['rule:Third account'" in shop.log
    assert "rule:" not in person.page, "a suspect is told why"
    url, secret = f"{service.url}/api/v1/events", service.keys["secret"]
    rows = httpx.get(url, params={"action": "sign_up", "limit": 3}, headers={"x-api-key": secret}).json()["rows"]
    assert [row.get("account_verified") for row in rows] == [False, True, True], "the shop names those that it opened"


@django
def test_a_request_id_is_valid_once_and_only_for_its_own_session_and_action(shop: Example, meet: Meet):
    honest, thief = meet(shop, report(3)), meet(shop, report(4))
    stolen = honest.identified(honest.open("/sign-up"))
    thief.open("/sign-up")
    assert "other_tag" in thief.submit("/sign-up", email="x@shop.example", request_id=stolen).text
    assert honest.submit("/sign-up", email="three@shop.example", request_id=stolen).status_code == 200
    honest.open("/sign-up")
    again = honest.submit("/sign-up", email="four@shop.example", request_id=stolen)
    assert (again.status_code, "other_tag" in again.text) == (422, True)
    for made_up in ("", NEVER, "../../healthz", "x" * 36):
        honest.open("/sign-up")
        assert "not_found" in honest.submit("/sign-up", email="x@a.example", request_id=made_up).text
    other_action = honest.identified(honest.open("/log-in"))
    honest.open("/sign-up")
    assert honest.submit("/sign-up", email="five@shop.example", request_id=other_action).status_code == 422


@django
def test_the_login_asks_an_unknown_visitor_for_a_second_factor_once(shop: Example, meet: Meet):
    email = "six@shop.example"
    at_home, elsewhere = meet(shop, report(6)), meet(shop, report(7))
    at_home.does("/sign-up", email)
    assert "You are logged in" in at_home.does("/log-in", email).text
    assert "Enter the code" in elsewhere.does("/log-in", email).text
    code = re.findall(rf"code for {email}: (\d+)", shop.log)[-1]
    wrong = f"{(int(code) + 1) % 10**6:06}"
    assert elsewhere.submit("/log-in/code", code=wrong).status_code == 403
    assert "You are logged in" in elsewhere.submit("/log-in/code", code=code).text
    assert "You are logged in" in elsewhere.does("/log-in", email).text, "the second device is not remembered"
    suspect = meet(shop, SUSPECT["signals"], SUSPECT["user_agent"])
    assert suspect.does("/log-in", email).status_code == 403
    guessing = meet(shop, report(8))
    guessing.does("/log-in", email)
    code = re.findall(rf"code for {email}: (\d+)", shop.log)[-1]
    wrong = f"{(int(code) + 1) % 10**6:06}"
    assert [guessing.submit("/log-in/code", code=wrong).status_code for _ in range(3)] == [403, 403, 403]
    assert "Log in" in guessing.submit("/log-in/code", code=code).text, "codes can be guessed without end"


@django
def test_without_the_service_a_sign_up_is_deferred_and_a_login_asks_for_more(
    service: Service, tmp_path: Path, meet: Meet
):
    with shop_of(tmp_path / "log", **{**service.settings, "SVC_URL": "http://127.0.0.1:9"}) as alone:
        person = meet(alone, report(1))
        person.open("/sign-up")
        assert person.submit("/sign-up", email="ada@shop.example", request_id=NEVER).status_code == 503


@django
def test_a_webhook_is_accepted_once_and_only_with_its_signature(shop: Example):
    event_id = UUID(NEVER)
    body = json.dumps({"id": NEVER, "type": "webhook.test"}).encode()
    event = WebhookEvent(type="webhook.test", environment="test", created_at_ms=0, body=body)
    now_s = int(time.time())

    def received(body: bytes, now_s: int, secrets: tuple[str, ...]) -> int:
        headers = signed_headers(event_id, event, secrets, now_s)
        return httpx.post(f"{shop.url}/webhooks", content=body, headers=headers).status_code

    assert received(body, now_s, WEBHOOK_SECRETS[:1]) == 204
    assert received(body, now_s, WEBHOOK_SECRETS[1:]) == 204
    assert shop.log.count(f"webhook.test {NEVER}") == 1
    assert received(body + b" ", now_s, WEBHOOK_SECRETS) == 401
    assert received(body, now_s - 400, WEBHOOK_SECRETS) == 401
    assert received(body, now_s, ("svc_whsec_" + "q" * 43,)) == 401
    assert httpx.post(f"{shop.url}/webhooks", content=body).status_code == 401


@django
def test_a_webhook_whose_work_fails_is_taken_when_it_arrives_again():
    """The example raises at its work once: an event that was remembered before it would be lost."""
    body = json.dumps({"id": NEVER, "type": "webhook.test"}).encode()
    event = WebhookEvent(type="webhook.test", environment="test", created_at_ms=0, body=body)
    headers = {
        name.lower(): value
        for name, value in signed_headers(UUID(NEVER), event, WEBHOOK_SECRETS, int(time.time())).items()
    }
    script = """
import json, sys
from django.conf import settings
settings.configure()
import webhooks
from django.test import RequestFactory
body, headers = json.load(sys.stdin)
tried = []
def work(*words, flush):
    tried.append(words)
    if len(tried) == 1:
        raise OSError("the queue is away")
webhooks.print = work
def deliver():
    try:
        return webhooks.view(RequestFactory().post("/webhooks", body, "application/json", headers=headers)).status_code
    except OSError:
        return 500
print(json.dumps([[deliver(), len(tried)] for _ in range(3)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=EXAMPLES / "django",
        env={**ENVIRONMENT, "SVC_WEBHOOK_SECRETS": ",".join(WEBHOOK_SECRETS), "PYTHONPATH": "."},
        input=json.dumps([body.decode(), headers]),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert json.loads(done.stdout) == [[500, 1], [204, 2], [204, 2]]


@django
def test_the_sign_up_page_identifies_a_real_browser(shop: Example):
    """A driven, headless one, which it rejects."""
    built()
    seen = json.loads(browser().run("examples.mjs", f"{shop.url}/sign-up"))
    assert seen["shown"] == ["We can't open an account for you. Please contact our support."]
