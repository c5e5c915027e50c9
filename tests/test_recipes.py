"""What the documentation shows to be copied is run by a test, or says beside it that it was not run.

A block is a recipe if its language is one that somebody runs. It needs one of two: a line of `RUN_BY` or
`ALL_RUN_BY`; or the words "not run" in the block, in its section, or in the introduction of its page. A program or a
configuration to copy, in `examples` or among the proxies in `ops`, has a line of `COPIED`, or says in itself that it
was not run.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from svc.kernel.config_loading import load
from tests.test_docs import DOCS, FENCED, ROOT, block
from tools.words import GENERATED

RUNNABLE = {
    *("sh", "bash", "console", "python", "javascript", "js", "typescript", "jsx", "html", "vue", "svelte"),
    *("go", "java", "kotlin", "groovy", "swift", "php", "ruby", "sql", "toml", "yaml", "ini", "xml", "nginx"),
}
RUN_BY = {
    ("README.md", "html", "console.log(request_id);"): "tests/web/test_examples.py",
    ("clients/fingerprint-compat/README.md", "html", "importmap"): "tests/web/test_fingerprint_compat.py",
    ("clients/fingerprint-compat/README.md", "js", "createEventsHandler("): "tests/web/test_fingerprint_compat.py",
    ("clients/node/README.md", "javascript", "new FakeService("): "tests/clients/test_testing_guides.py",
    ("clients/python/README.md", "python", "FakeService("): "tests/clients/test_testing_guides.py",
    ("docs/accounts.md", "sh", "account_thresholds"): "tests/test_curl_recipes.py",
    ("docs/accounts.md", "sh", "min_visitors"): "tests/test_curl_recipes.py",
    ("docs/accounts.md", "sh", "-X DELETE"): "tests/test_curl_recipes.py",
    ("docs/backend.md", "python", "def read_event"): "tests/test_docs.py",
    ("docs/backend.md", "python", "def signed_up("): "tests/clients/test_guide.py",
    ("docs/backend.md", "javascript", "signedUp"): "tests/clients/test_guide.py",
    ("docs/backend.md", "sh", "country=GB"): "tests/test_curl_recipes.py",
    ("docs/backend.md", "sh", "after=$CURSOR"): "tests/test_curl_recipes.py",
    ("docs/collectors.md", "javascript", "function clientToken"): "tests/test_docs.py",
    ("docs/collectors.md", "javascript", "import FingerprintJS"): "tests/web/test_snippets.py",
    ("docs/frontend.md", "html", "console.log(request_id);"): "tests/web/test_examples.py",
    ("docs/frontend.md", "html", "<form"): "tests/web/test_examples.py",
    ("docs/frontend.md", "javascript", "consent.on"): "tests/web/test_snippets.py",
    ("docs/frontend.md", "javascript", "/id/sdk/v1"): "tests/web/test_snippets.py",
    ("docs/frontend.md", "javascript", "router.on"): "tests/web/test_snippets.py",
    ("docs/frontend.md", "javascript", "client ??="): "tests/web/test_snippets.py",
    ("docs/frontend.md", "javascript", "createSvc"): "tests/web/test_snippets.py",
    ("docs/frontend.md", "jsx", "SvcProvider"): "tests/web/test_snippets.py",
    ("docs/console.md", "sh", "tag=order-1234"): "tests/test_curl_recipes.py",
    ("docs/inspection.md", "sh", "svc inspect rows organizations"): "tests/spec/test_written_commands.py",
    ("docs/labels.md", "bash", "chargeback"): "tests/test_curl_recipes.py",
    ("docs/members.md", "sh", "svc member invite ORG ada@shop.example"): "tests/spec/test_written_commands.py",
    ("docs/members.md", "toml", "console_oidc_issuer"): "tests/test_recipes.py",
    ("docs/monitoring.md", "yaml", "# prometheus.yml"): "tests/test_operations.py",
    ("docs/react-native.md", "typescript", "Platform"): "tests/web/test_snippets.py",
    ("docs/runbook.md", "sh", "svc backup /mnt/move"): "tests/spec/test_first_start.py",
    ("docs/rules.md", "sh", "Fifth account"): "tests/test_curl_recipes.py",
    ("docs/rules.md", "sh", "shadow=true"): "tests/test_curl_recipes.py",
    ("docs/server-libraries.md", "python", "def log_in("): "tests/clients/test_guide.py",
    ("docs/server-libraries.md", "python", "def sign_up("): "tests/clients/test_guide.py",
    ("docs/server-libraries.md", "python", "def change_password"): "tests/clients/test_guide.py",
    ("docs/server-libraries.md", "python", "def receive"): "tests/clients/test_guide.py",
    ("docs/server-libraries.md", "python", "def seen_as"): "tests/clients/test_guide.py",
    ("docs/server-libraries.md", "javascript", "logIn"): "tests/clients/test_guide.py",
    ("docs/server-libraries.md", "javascript", "function receive"): "tests/clients/test_guide.py",
    ("docs/server-libraries.md", "go", "func logIn("): "tests/clients/test_go.py",
    ("docs/server-libraries.md", "go", "func receive("): "tests/clients/test_go.py",
    ("docs/server-libraries.md", "java", "final class LogIn"): "tests/clients/test_java.py",
    ("docs/signed-verdicts.md", "python", "def log_in_with_verdict"): "tests/clients/test_verdicts.py",
    ("docs/signed-verdicts.md", "javascript", "logInWithVerdict"): "tests/clients/test_verdicts.py",
    ("docs/signed-verdicts.md", "javascript", "verdict: true"): "tests/web/test_snippets.py",
    ("docs/signed-verdicts.md", "console", "svc org rotate-verdict-key"): "tests/spec/test_written_commands.py",
    ("docs/sizing.md", "sh", "svc_store_"): "tests/test_curl_recipes.py",
    ("docs/tls.md", "sh", "--certfile fullchain.pem"): "tests/test_serve_tls.py",
    ("docs/warehouse.md", "python", "duckdb"): "tests/spec/test_parquet.py",
    ("docs/warehouse.md", "python", "pandas"): "tests/spec/test_parquet.py",
    ("docs/warehouse.md", "python", "polars"): "tests/spec/test_parquet.py",
    ("docs/webhooks.md", "sh", "my machine"): "tests/test_curl_recipes.py",
    ("docs/webhooks.md", "sh", "one delivery, now"): "tests/test_curl_recipes.py",
    ("docs/webhooks.md", "sh", "hooks.slack.com"): "tests/test_curl_recipes.py",
    ("docs/webhooks.md", "console", "svc webhook recover"): "tests/spec/test_written_commands.py",
    ("docs/webhooks.md", "console", "--forward-to http://localhost:3000/hook"): "tests/spec/test_webhook_forwarding.py",
    ("docs/webhooks.md", "console", "WEBHOOK_SECRET=svc_whsec_"): "tests/spec/test_written_commands.py",
    ("docs/webhooks.md", "sh", "openssl dgst"): "tests/test_receivers_guide.py",
    ("docs/webhooks.md", "python", "def is_authentic"): "tests/test_receivers_guide.py",
    ("docs/webhooks.md", "python", "standardwebhooks"): "tests/test_receivers_guide.py",
    ("docs/webhooks.md", "javascript", "isAuthentic"): "tests/test_receivers_guide.py",
    ("docs/webhooks.md", "go", "func IsAuthentic"): "tests/clients/test_receivers_guide.py",
    ("web/sdk/README.md", "html", "console.log(request_id);"): "tests/web/test_examples.py",
    ("web/sdk/README.md", "javascript", "// visitor.js"): "tests/web/test_snippets.py",
    ("web/sdk/README.md", "javascript", "import { requestId }"): "tests/web/test_snippets.py",
    ("web/sdk/README.md", "javascript", 'fetch("/login"'): "tests/web/test_snippets.py",
    ("web/sdk/README.md", "javascript", "customer.id"): "tests/web/test_snippets.py",
    ("web/sdk/README.md", "javascript", "router.on"): "tests/web/test_snippets.py",
    ("web/sdk/README.md", "javascript", "consent.on"): "tests/web/test_snippets.py",
    ("web/sdk/README.md", "javascript", "/id/sdk/v1"): "tests/web/test_snippets.py",
    ("web/sdk/README.md", "javascript", "/assets/svc"): "tests/web/test_snippets.py",
    ("web/sdk/README.md", "javascript", "client ??="): "tests/web/test_snippets.py",
    ("web/sdk/README.md", "jsx", "SvcProvider"): "tests/web/test_snippets.py",
    ("web/react/README.md", "jsx", "SvcProvider"): "tests/web/test_snippets.py",
    ("web/vue/README.md", "js", "createSvc"): "tests/web/test_snippets.py",
}
"""(page, language, text that one block of it contains) -> the test that takes the block by this text and runs it."""
ALL_RUN_BY = {
    ("docs/backtesting.md", "sh"): ("tests/test_backtesting.py", "```sh"),
    ("docs/privacy.md", "sh"): ("tests/spec/test_privacy_page.py", "```sh"),
    ("docs/quickstart.md", "sh run"): ("tests/test_docs.py", '"quickstart.md", "sh run"'),
    ("docs/quickstart.md", "sh serves"): ("tests/test_docs.py", '"quickstart.md", "sh serves"'),
    ("docs/quickstart.md", "sh reads"): ("tests/test_docs.py", '"quickstart.md", "sh reads"'),
    ("docs/warehouse.md", "sql"): ("tests/spec/test_sql.py", "```sql"),
}
"""(page, language) -> the test that takes every block of this language, and how."""
COPIED = {
    "examples/dev-keys.mjs": ("tests/web/test_examples.py", '"react", "ssr"'),  # which import it
    "examples/airbyte": ("tests/test_airbyte.py", '"examples" / "airbyte"'),
    "examples/dbt": ("tests/test_dbt.py", '"examples" / "dbt"'),
    "examples/django": ("tests/web/test_examples.py", 'EXAMPLES / "django"'),
    "examples/html": ("tests/web/test_examples.py", 'EXAMPLES / "html"'),
    "examples/nextjs": ("tests/web/test_examples.py", '"nextjs"'),
    "examples/php": ("tests/clients/test_recipes.py", "svc.php"),
    "examples/react": ("tests/web/test_examples.py", '"react"'),
    "examples/ruby": ("tests/clients/test_recipes.py", "svc.rb"),
    "examples/sinks": ("tests/clients/test_sinks.py", "clickhouse.sh"),
    "examples/ssr": ("tests/web/test_examples.py", '"ssr"'),
    "ops/proxy/Caddyfile": ("tests/test_proxies.py", "Caddyfile"),
    "ops/proxy/haproxy.cfg": ("tests/test_proxies.py", "haproxy.cfg"),
    "ops/proxy/nginx.conf": ("tests/test_proxies.py", "nginx.conf"),
    "ops/proxy/worker.js": ("tests/test_proxies.py", "worker.js"),
    "ops/reverse-proxy/Caddyfile": ("tests/test_reverse_proxies.py", "Caddyfile"),
    "ops/reverse-proxy/Caddyfile.compose": ("tests/test_deployment.py", "Caddyfile.compose"),
    "ops/reverse-proxy/envoy.yaml": ("tests/test_reverse_proxies.py", "envoy.yaml"),
    "ops/reverse-proxy/haproxy.cfg": ("tests/test_reverse_proxies.py", "haproxy.cfg"),
    "ops/reverse-proxy/nginx.conf": ("tests/test_reverse_proxies.py", "nginx.conf"),
    "ops/reverse-proxy/traefik": ("tests/test_reverse_proxies.py", "traefik/traefik.yaml"),
}
"""What is there to be copied -> the test that runs it, and the text by which it does."""
_NOT_RUN = re.compile(r"\bnot run\b", re.IGNORECASE)
_HEADING = re.compile(r"^#+ .*$", re.MULTILINE)


class Recipe(NamedTuple):
    page: str
    kind: str
    text: str
    section: str
    """The text around it, from its heading to the next, and the introduction of the page."""

    @property
    def name(self) -> str:
        return f"{self.page}: {self.kind}: {self.text.strip().splitlines()[0][:60]}"

    @property
    def run_by(self) -> str | None:
        if (self.page, self.kind) in ALL_RUN_BY:
            return ALL_RUN_BY[self.page, self.kind][0]
        for (page, kind, contained), test in RUN_BY.items():
            if (page, kind) == (self.page, self.kind) and contained in self.text:
                return test
        return None

    @property
    def is_marked(self) -> bool:
        return _NOT_RUN.search(self.section) is not None


def recipes_of(page: str, text: str) -> list[Recipe]:
    found: list[Recipe] = []
    introduction = FENCED.sub("", text.partition("\n## ")[0])
    ends = [one.start() for one in _HEADING.finditer(FENCED.sub(lambda one: " " * len(one[0]), text))]
    for one in FENCED.finditer(text):
        if one["kind"].split(" ")[0] in RUNNABLE:
            start = max((end for end in ends if end <= one.start()), default=0)
            end = min((end for end in ends if end > one.start()), default=len(text))
            found.append(Recipe(page, one["kind"], one["text"], introduction + text[start:end]))
    return found


PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted(DOCS.glob("*.md")) if page.name not in GENERATED),
    *(
        page
        for folder in ("clients/*", "examples", "ops", "web/*")
        for page in sorted(ROOT.glob(f"{folder}/README.md"))
    ),
]
RECIPES = [one for page in PAGES for one in recipes_of(page.relative_to(ROOT).as_posix(), page.read_text())]


def test_a_recipe_is_run_or_says_that_it_was_not():
    silent = [each for each in RECIPES if not (each.run_by is not None or each.is_marked)]
    assert not silent, "\n".join(
        ["give it a test and a line of RUN_BY, or say beside it that it was not run:"]
        + [f"{each.name}\n{each.text}" for each in silent]
    )


def test_what_is_not_of_svc_alone_has_a_fence_with_its_language():
    """An indented block has no language, so it would be no recipe."""
    for page in PAGES:
        if page.parent != DOCS:
            continue
        text = FENCED.sub("", page.read_text())
        for indented in re.findall(r"(?<=\n\n)(?: {4}.*\n)+", text):
            for line in indented.splitlines():
                assert re.match(r" {4}(?:[A-Z_]+=\S+ )*svc [a-z]", line), (page.name, line)


def test_each_line_is_of_one_block_and_its_test_takes_it_by_the_text():
    """Otherwise a second block of the same language in a page would pass for run."""
    for (page, kind, contained), test in RUN_BY.items():
        of_line = [one for one in RECIPES if (one.page, one.kind) == (page, kind) and contained in one.text]
        assert len(of_line) == 1, f"{page} has {len(of_line)} blocks of {kind} with {contained!r}"
        source = (ROOT / test).read_text()
        assert page.removeprefix("docs/") in source, f"{test} does not name {page}"
        assert contained in source, f"{test} does not take {contained!r}"
    for (page, kind), (test, taken) in ALL_RUN_BY.items():
        source = (ROOT / test).read_text()
        assert page.rpartition("/")[2] in source, f"{test} does not name {page}"
        assert taken in source, f"{test} does not take every block of {kind}"


def says_that_it_was_not_run(path: Path) -> bool:
    return path.is_file() and _NOT_RUN.search(path.read_text()) is not None


def test_each_example_and_each_proxy_is_run_or_says_that_it_was_not():
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("examples", "ops/proxy", "ops/reverse-proxy")
        for path in (ROOT / folder).iterdir()
        if path.suffix != ".md"
    }
    assert set(COPIED) <= found, "a line of COPIED is of nothing"
    left = [path for path in sorted(found - set(COPIED)) if not says_that_it_was_not_run(ROOT / path)]
    assert left == [], "nothing runs it: give it a test and a line of COPIED, or say in it that it was not run"
    for path, (test, taken) in COPIED.items():
        assert taken in (ROOT / test).read_text(), f"{test} does not run {path}"


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("# A\n```sh\ncurl x\n```\n", False),
        ("# A\n```sh\ncurl x   # not run\n```\n", True),
        ("# A\n```sh\ncurl x\n```\nNot run: nobody has it. It was not run.\n", True),
        ("# A\n## B\nThis was not run.\n## C\n```sh\ncurl x\n```\n", False),
        ("# A\nThis was not run.\n## B\n```sh\ncurl x\n```\n", True),
        ("# A\n```console\n$ svc doctor\nall is well\n```\n", False),
    ],
)
def test_a_block_that_nothing_runs_is_found(text: str, is_right: bool):
    (recipe,) = recipes_of("docs/none.md", text)
    assert recipe.is_marked is is_right


def test_the_settings_of_the_page_about_members_are_valid(tmp_path: Path):
    file = tmp_path / "svc.toml"
    file.write_text(block("members.md", "toml", "console_oidc_issuer"))
    config = load(file, {})
    assert config.console_oidc_issuer == "https://id.example.com/realms/shop"
