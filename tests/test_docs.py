"""The documentation holds: what is generated is up to date and complete, links lead somewhere, commands exist, and what
is shown to be copied runs, through a real service.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
import trio

from bench.farm import CASES, read_recipes
from svc.cli import program
from svc.features.routes import API, ROUTES
from svc.features.rules.language.conditions import compile_once
from svc.features.rules.language.cost import BUDGET
from svc.features.webhooks.content.envelope import Envelope
from svc.http.openapi.document import TAGS
from svc.http.pages.app import create_app, documentation, paths, site
from svc.identify.model import RequestFacts
from svc.identify.report import read_report
from svc.identify.report.native import FLAGS
from svc.identify.scoring.signals import CATALOG
from svc.kernel.config import Config
from svc.kernel.config_loading import load
from svc.kernel.values.fields import fields_of
from tests.spec.responses import BROWSER, DRIVEN, HEADLESS, TOO_LITTLE
from tests.support.live import ORIGIN, Live, live_service, report
from tests.support.ports import free_port
from tests.support.process import read_until
from tools import import_graph
from tools.reference import PAGES, PLACES
from tools.report_fields import field_rows
from tools.words import LIMIT, sections, words

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MARKDOWN = sorted(
    [
        *ROOT.glob("*.md"),
        *DOCS.rglob("*.md"),
        *(ROOT / "ops").rglob("*.md"),
        *(ROOT / "examples").glob("*.md"),
        *ROOT.glob("clients/*/README.md"),
        *ROOT.glob("web/*/README.md"),
    ]
)
FENCED = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(page: str, kind: str) -> list[str]:
    return [found["text"] for found in FENCED.finditer((DOCS / page).read_text()) if found["kind"] == kind]


def block(page: str, kind: str, containing: str) -> str:
    (found,) = [text for text in blocks(page, kind) if containing in text]
    return found


def prose(path: Path) -> str:
    """Without what stands in code blocks, whose brackets and marks are no links and headings."""
    return FENCED.sub("", path.read_text())


# What is generated


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str):
    written = (ROOT / PLACES[name]).read_text()
    assert written == PAGES[name](), "it is out of date: make reference"


@pytest.mark.slow(0.9)
def test_the_picture_of_imports_is_up_to_date():
    drawn = import_graph.picture(import_graph.arrows(import_graph.of_checkout()))
    assert drawn in blocks("internals/README.md", "mermaid")


@pytest.mark.parametrize("package", ["kernel", "identify", "http", "cli"])
def test_the_list_of_folders_is_up_to_date(package: str):
    page = (DOCS / "internals" / "README.md").read_text()
    (part,) = re.findall(rf"^    svc/{package}/ .*\n(?: {{8}}.*\n)*", page, re.MULTILINE)
    folders = {path.parent.name for path in (ROOT / "svc" / package).glob("*/[!_]*.py")}
    assert folders - {*re.findall(r"(\w+)/", part)} == set()
    assert {*" ".join(re.findall(r"^ {8}((?:\w+/ ?)+)", part, re.MULTILINE)).replace("/", "").split()} <= folders


def test_the_example_settings_file_is_valid_and_has_every_setting(tmp_path: Path):
    text = (ROOT / PLACES["settings"]).read_text()
    assert tomllib.loads(text) == {}, "a setting is not commented out"
    uncommented = tomllib.loads(re.sub(r"^#(?=[a-z])", "", text, flags=re.MULTILINE))
    assert list(uncommented) == list(Config.__struct_fields__)
    file = tmp_path / "svc.toml"
    unset = {name for name in Config.__struct_fields__ if getattr(Config(), name) is None}
    file.write_text(re.sub(r"^#(?=[a-z])(?!(?:" + "|".join(unset) + r") )", "", text, flags=re.MULTILINE))
    assert load(file, {}) == Config()
    del uncommented["webhook_ca_file"]  # looked for at once
    assert msgspec.convert(uncommented, Config)


def test_every_setting_is_documented_and_described():
    rows = {
        cells[1].strip("` "): cells[-2].strip()
        for line in (DOCS / "configuration.md").read_text().splitlines()
        if len(cells := re.split(r"(?<!\\)\|", line)) > 5
    }
    for name in Config.__struct_fields__:
        assert rows.get(name), f"{name} has no description"


def test_the_page_of_settings_names_every_limit_of_a_value():
    page = (DOCS / "configuration.md").read_text()
    limited = {
        field.name: limits for field in fields_of(Config) if (limits := re.findall(r"\b[lg][te]=(\d+)", str(field)))
    }
    assert len(limited) > 25, "they are looked for in vain"
    for name, limits in limited.items():
        (value,) = re.findall(rf"^\| `{name}` \| ([^|]+) \|", page, re.MULTILINE)
        assert set(limits) <= set(re.findall(r"\d+", value)), name


def all_commands() -> Iterator[tuple[str, click.Command]]:
    def below(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        yield path, command
        if isinstance(command, click.Group):
            for name, inner in command.commands.items():
                yield from below(f"{path} {name}", inner)

    yield from below("svc", program)


def test_every_command_and_every_option_is_documented_and_has_help():
    page = (DOCS / "commands.md").read_text()
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    for path, command in all_commands():
        if path == "svc":
            continue
        assert command.help, path
        for param in command.params:
            if isinstance(param, click.Option):
                assert param.help, f"{path} {param.opts[0]}"
                assert param.opts[0] in sections[path], f"{path} {param.opts[0]}"


def test_every_route_is_documented():
    page = (DOCS / "api.md").read_text()
    for route in ROUTES:
        for under in route.under:
            assert f"`{route.method} {under}{route.path}`" in page
    for path in paths(create_app(site, documentation, api=API)):
        assert f"`GET {path}`" in page


def test_what_a_section_of_the_api_says_of_admins_holds_for_each_of_its_routes():
    for tag, says in TAGS.items():
        changing = {route.needs for route in ROUTES if route.tag == tag and route.method != "GET"} - {"read"}
        if "`admin`" in says and "active ones need" not in says:
            assert changing == {"administer"}, tag


# What is written


@cache
def anchors(path: Path) -> set[str]:
    """Of the headings, as code hosts make them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?) *$", prose(path), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w -]", "", words.lower()).replace(" ", "-")
        twin = next(number for number in range(100) if (f"{anchor}-{number}" if number else anchor) not in found)
        found.add(f"{anchor}-{twin}" if twin else anchor)
    return found


@pytest.mark.slow(0.3)
def test_every_link_to_a_file_or_a_heading_is_valid():
    wrong: list[str] = []
    for path in MARKDOWN:
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(path))):
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            if not target.exists():
                wrong.append(f"{name_of(path)}: {link} is not there")
            elif anchor and anchor not in anchors(target):
                wrong.append(f"{name_of(path)}: {link} has no such heading")
    assert wrong == []


NOTED_AS_RENAMED = {"labels/checks.py", "schedule.py"}
"""Former names that ADR 194 tells of."""


def test_every_source_file_that_a_page_names_is_there():
    """But for decisions that another replaced: they tell of what was."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    there = {path[start:] for path in tracked for start in (0, *(at.end() for at in re.finditer("/", path)))}
    wrong: list[str] = []
    for page in MARKDOWN:
        text = page.read_text()
        if all(is_in_part for is_in_part, _ in SUPERSEDED.findall(text)):
            named = re.findall(r"`([\w./-]+\.(?:py|tsx?))(?:::\w+)?`", text)
            wrong += [f"{name_of(page)}: {file}" for file in named if file not in there | NOTED_AS_RENAMED]
    assert wrong == []


def test_the_index_names_every_page_in_one_section():
    pages = [page for pages in sections().values() for page in pages]
    assert sorted(pages) == sorted(DOCS.glob("*.md"))


def test_every_internals_page_is_in_their_index():
    index = (DOCS / "internals" / "README.md").read_text()
    missing = [page.name for page in (DOCS / "internals").glob("*.md") if f"({page.name})" not in index]
    assert missing == ["README.md"]


SUPERSEDED = re.compile(r"^\*Superseded( in part)? by (.+)\.\*$", re.MULTILINE)
SUPERSEDES = re.compile(r"Supersedes( in part)? ((?:\[ADR \d+\]\([^)]+\)(?:, | and )?)+)")
ADR = re.compile(r"\[ADR (\d+)\]\(0*(\d+)-")


def adrs() -> dict[int, Path]:
    return {int(path.name[:4]): path for path in (DOCS / "adr").glob("[0-9]*.md")}


def test_a_decision_is_short_and_named_by_its_number():
    for number, path in adrs().items():
        lines = path.read_text().splitlines()
        assert lines[0].startswith(f"# {number}. "), path.name
        assert len(lines) <= 150, path.name


def test_what_a_decision_supersedes_says_so_and_the_other_way_round():
    by: set[tuple[int, int, bool]] = set()
    of: set[tuple[int, int, bool]] = set()
    for number, path in adrs().items():
        text = path.read_text()
        for in_part, links in SUPERSEDED.findall(text):
            assert all(name == place for name, place in ADR.findall(links)), path.name
            by |= {(number, int(later), bool(in_part)) for later, _ in ADR.findall(links)}
        for in_part, links in SUPERSEDES.findall(text):
            of |= {(int(earlier), number, bool(in_part)) for earlier, _ in ADR.findall(links)}
    assert by == of
    assert all(earlier < later for earlier, later, _ in by)
    assert {earlier for earlier, _, in_part in by if not in_part} >= {33, 40, 71, 82}


def test_the_index_of_decisions_has_each_once_with_its_title_and_status():
    rows = re.findall(r"^\| \[(.+)\]\(([^)]+)\) \| (.+) \|$", (DOCS / "adr" / "README.md").read_text(), re.MULTILINE)
    expected: list[tuple[str, str, str]] = []
    for path in adrs().values():
        text = path.read_text()
        found = SUPERSEDED.search(text)
        later = " and ".join(name for name, _ in ADR.findall(found[2])) if found else ""
        status = f"superseded{found[1] or ''} by {later}" if found else "in force"
        expected.append((text.splitlines()[0].removeprefix("# "), path.name, status))
    assert sorted(rows) == sorted(expected)


@pytest.mark.slow(0.2)
def test_every_rule_that_is_cited_is_in_the_contract_by_number():
    page = (DOCS / "internals" / "contract.md").read_text()
    known: set[tuple[str, str]] = set()
    for document, rows in zip(("interface", "decisions"), page.split("\n## ")[1:], strict=True):
        for numbers in re.findall(r"^\| ([\d.]+(?:(?:, | to )[\d.]+)*) \|", rows, re.MULTILINE):
            for given in numbers.split(", "):
                first, _, last = given.partition(" to ")
                section, _, rule = first.partition(".")
                rules = range(int(rule), int(last.split(".")[1]) + 1) if last else ()
                known |= {(document, first), *((document, f"{section}.{number}") for number in rules)}
    modules = (path for folder in ("svc", "svc_replay", "tests") for path in (ROOT / folder).rglob("*.py"))
    sources = [*modules, *(ROOT / "docs" / "adr").glob("*.md")]
    cited = {
        (document, number.rstrip("."))
        for path in sources
        for document, numbers in re.findall(
            r"\b(interface|decisions) ((?:\d+(?:\.\d+)?(?:, |;|\b))+)", path.read_text()
        )
        for number in re.split(", |;", numbers)
        if number
    }
    assert cited - known == set()


MEASURED = re.compile(r"^\| (R\d+) \| `([^`]+)` \| ([^|]+) \| `([0-9a-f]{8})` \| (\d{4}-\d\d-\d\d) \| ", re.MULTILINE)


def test_every_promise_was_measured_by_a_command_that_exists_at_a_commit_with_a_seed():
    page = (DOCS / "internals" / "reliability.md").read_text()
    table = page.partition("## Last measured")[2].partition("\n## ")[0]
    rows = MEASURED.findall(table)
    assert len(rows) == len(re.findall(r"^\| R", table, re.MULTILINE)), "a row lacks a command, seed, commit or date"
    assert {promise for promise, *_ in rows} == set(re.findall(r"^\| (R\d+) \|", page, re.MULTILINE))
    for promise, command, seed, *_ in rows:
        words = [word for word in shlex.split(command) if "=" not in word]
        assert seed.strip(), promise
        if words[0] == "make":
            assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(), command
        elif words[0] == "pytest":
            assert all((ROOT / file).exists() for file in words[1:]), command
        else:
            module = ROOT / Path(*words[2].split("."))
            source = module.with_suffix(".py") if module.with_suffix(".py").exists() else module / "__main__.py"
            text, options = source.read_text(), [word for word in words[3:] if word.startswith("--")]
            assert [one for one in options if f'"{one}"' not in text and f"[{one}" not in text] == [], command


def test_the_pages_for_users_are_short_enough_to_read():
    assert sum(words(generated=False).values()) <= LIMIT, "python -m tools.words shows where they are"


def test_the_names_in_the_migration_tables_exist():
    """The last column of each table: fields, values and signals by their names."""
    document = json.loads((DOCS / "openapi.json").read_text())

    def named(part: Any) -> Iterator[str]:
        if isinstance(part, list):
            for one in part:
                yield from named(one)
        elif isinstance(part, dict):
            yield from part.get("properties", ())
            yield from (value for value in part.get("x-extensible-enum", ()) if isinstance(value, str))
            yield from [part["name"]] if "in" in part else ()
            for one in part.values():
                yield from named(one)

    options = re.findall(r"^\| `(\w+)` \|", (DOCS / "frontend.md").read_text(), re.MULTILINE)
    known = {*named(document), *CATALOG, *Envelope.__struct_fields__, *options, "load"}
    cells = [
        line.split(" | ")[-1] for line in (DOCS / "migrating.md").read_text().splitlines() if line.startswith("| ")
    ]
    written = {name for cell in cells for name in re.findall(r"`([a-zA-Z_]+)`", cell)}
    assert len(written) > 60
    assert written - known == {"thumbmark"}, "the name of a key that an adapter reads"


def written_commands() -> Iterator[tuple[str, str]]:
    """(page, command) of whatever calls `svc`: in code blocks, whole lines; in the text, what is set as code or
    indented.
    """
    for path in MARKDOWN:
        if path.name == "CHANGELOG.md" or (path.parent == DOCS and path.stem in PAGES):
            continue
        text = path.read_text()
        for found in FENCED.finditer(text):
            if found["kind"].startswith(("sh", "console")):
                for line in found["text"].replace("\\\n", " ").splitlines():
                    for part in re.split(r"&&|\||;", line.split(" # ")[0]):
                        if call := re.match(
                            r"\s*(?:\$ )?(?:[A-Z_]+=\S* )*(?:sudo -u \w+ )?svc(?:-admin)? (.+?)\s*$", part
                        ):
                            yield name_of(path), f"svc {call[1]}"
        of_text = r"(?:`(svc [a-z][^`\n]*)`|^ {4}(?:[A-Z_]+=\S* )*(svc [a-z].*?)(?: {3,}.*)?$)"
        for in_line, indented in re.findall(of_text, prose(path), re.MULTILINE):
            yield name_of(path), in_line or indented


def problem_with(call: str) -> str | None:
    """What is not there of a command line; words in capitals and what is left out (`...`) stand for anything."""
    command: click.Command = program
    words = shlex.split(re.sub(r"\[|\]", " ", call))[1:]
    while words and isinstance(command, click.Group):
        name = words.pop(0)
        if name in ("...", "--version", "--help"):
            return None
        if name not in command.commands:
            return f"there is no {name!r}"
        command = command.commands[name]
    known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)} | {"--help"}
    unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
    return f"no option {unknown[0]}" if unknown else None


def test_every_documented_command_exists_with_its_options():
    wrong = [(page, call, problem) for page, call in written_commands() if (problem := problem_with(call))]
    assert wrong == []
    assert len(list(written_commands())) > 200, "they are looked for in vain"


def test_every_log_line_that_a_page_names_is_written():
    """What an operator looks for: words set as code behind "the log says", "a line" and the like."""
    source = "".join(path.read_text() for path in (ROOT / "svc").rglob("*.py"))
    says = re.compile(r"\b(?:logs?|logged|line|lines)\b[^`]{0,60}`([a-z][A-Za-z-]*(?:,? [A-Za-z-]+)+)`")
    pages = [page for page in DOCS.glob("*.md") if page.stem not in PAGES]
    named = {(page.name, line) for page in pages for line in says.findall(page.read_text())}
    lines = {(page, line) for page, line in named if not line.startswith("svc ")}
    assert len(lines) > 12, "they are looked for in vain"
    assert {(page, line) for page, line in lines if f'"{line}' not in source} == set()


def test_a_command_that_fills_a_copy_names_where_it_begins():
    """With the default the copy would lack what was there before, or what is kept for longer than 30 days."""
    of_help = [line for _, command in all_commands() for line in (command.epilog or "").splitlines()]
    given = [call for call in [*(call for _, call in written_commands()), *of_help] if "ORG" in call]
    filling = [call for call in given if "--cursor-file" in call or "--hourly" in call]
    assert len(filling) > 4, "they are looked for in vain"
    assert [call for call in filling if "--since" not in call] == []


def test_an_unknown_command_is_detected():
    assert problem_with("svc key isue ORG") is not None
    assert problem_with("svc key issue ORG --knd secret") is not None
    assert problem_with("svc key issue ORG --kind secret [--name N]") is None


# What is shown to be copied

PATIENCE_S = 60


class Shell:
    """Somebody who follows the quick start: a folder, the programs, and what was put down of their output."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.receiver = free_port(), free_port()
        outside = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
        programs = Path(sys.executable).parent
        self.environment = {**outside, "PATH": f"{programs}:{outside['PATH']}", "HOME": str(folder)}

    def here(self, text: str) -> str:
        """With ports of this test's own, since others run beside it."""
        text = text.replace("127.0.0.1:8080", f"127.0.0.1:{self.port}").replace(":8443", f":{self.receiver}")
        text = text.replace("svc dev", f"svc dev --bind 127.0.0.1:{self.port}")
        return text.replace("svc webhook listen", f"svc webhook listen --bind 127.0.0.1:{self.receiver}")

    def run(self, text: str) -> str:
        """A block, to its end."""
        done = subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", self.here(text)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def read(self, file: str) -> Any:
        return json.loads((self.folder / file).read_text())

    @contextmanager
    def serving(self, text: str) -> Iterator[subprocess.Popen[str]]:
        """A block that goes on until Ctrl-C."""
        process = subprocess.Popen(
            ["bash", "-c", self.here(text)],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        end = partial(os.killpg, process.pid)
        too_long = threading.Timer(PATIENCE_S, end, [signal.SIGKILL])
        too_long.start()
        try:
            yield process
        finally:
            too_long.cancel()
            if process.poll() is None:
                end(signal.SIGINT)
            process.communicate(timeout=PATIENCE_S)


@pytest.mark.slow
def test_the_quick_start_runs_as_written(tmp_path: Path):
    shell = Shell(tmp_path)
    listen, dev = blocks("quickstart.md", "sh serves")
    with shell.serving(listen) as receiver:
        read_until(receiver, "SVC_WEBHOOK_CA_FILE")
        with shell.serving(dev) as service:
            shown = read_until(service, "Ctrl-C")
            (reads,) = blocks("quickstart.md", "sh reads")
            used = shell.run(f"{reads}\necho $AT $ORG $PUBLIC $SECRET $MANAGEMENT").split()
            assert len([value for value in used[1:] if value in shown]) == 4, "as it printed"
            assert used[0] == f"http://127.0.0.1:{shell.port}/api/v1"
            for step in blocks("quickstart.md", "sh run"):
                shell.run(f"{reads}\n{step}")
            arrived = read_until(receiver, "identification.completed")
            assert "not checked" in arrived
    answer, again, event = shell.read("answer.json"), shell.read("again.json"), shell.read("event.json")
    assert answer["visitor_is_new"]
    assert shell.read("duplicate.json") == {"request_id": answer["request_id"], "duplicate": True}
    assert again["visitor_id"] == answer["visitor_id"] == event["visitor_id"]
    assert 0 < again["visitor_confidence"] < 100
    assert (event["tag"], event["document"]["sdk"]) == ("mJ4tq0ZfW2s", {"platform": "web", "version": "1.0"})
    assert (event["account_id"], event["action"], event["account_verified"]) == ("user-42", "log_in", False)
    (shown,) = blocks("quickstart.md", "json")
    made_up = {name: answer[name] for name in ("request_id", "deferred_token", "visitor_id")}
    assert json.loads(shown) | made_up == answer, "the page shows another answer than comes"
    assert shell.read("endpoint.json")["secret"].startswith("svc_whsec_")
    assert shell.read("decided.json")["decision"]["action"] == "review"


def node() -> str:
    path = shutil.which("node")
    if path is None:
        pytest.skip("needs node, which is not on this machine")
    return path


async def in_node(folder: Path, script: str) -> Any:
    (folder / "main.mjs").write_text(script)
    done = await trio.run_process([node(), "main.mjs"], cwd=folder, capture_stdout=True)
    return json.loads(done.stdout)


def test_no_sample_lets_a_collector_contact_its_vendor():
    loads = re.findall(r"\bload\((.*?)\)", (DOCS / "collectors.md").read_text())
    assert len(loads) >= 3
    of_our_own = {arguments for arguments in loads if "apiKey" in arguments}
    assert {arguments for arguments in loads if arguments} - of_our_own == {"{ monitoring: false }"}


SDK_API = (ROOT / "web" / "sdk" / "src" / "api.ts").read_text()


def members(interface: str) -> set[str]:
    """Names in an interface of the SDK."""
    found = re.search(rf"^export interface {interface} {{\n(.*?)^}}", SDK_API, re.MULTILINE | re.DOTALL)
    assert found, interface
    return set(re.findall(r"^  (?:readonly )?(\w+)[?(:]", found[1], re.MULTILINE))


def test_the_frontend_guide_names_every_option_every_time_and_every_error():
    page = (DOCS / "frontend.md").read_text()
    codes = re.search(r"^export type SdkErrorCode =(.*?);$", SDK_API, re.MULTILINE | re.DOTALL)
    assert codes
    own = set(re.findall(r'\| "(\w+)"', codes[1]))
    of_service = {code for route in ROUTES if route.operation_id == "identify" for code in route.errors}
    named = set(re.findall(r"`(\w+)`", page))
    for interface in ("LoadOptions", "IdentifyOptions", "Timing"):
        assert members(interface) - named == set(), interface
    rows = "".join(re.findall(r"^(\|[^|]*)\|", page, re.MULTILINE))
    assert (own | of_service) - set(re.findall(r"`(\w+)`", rows)) == set()
    assert len(own) > 5, "they are looked for in vain"


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["android", "ios"])
async def test_the_example_report_of_an_app_identifies_and_every_field_of_it_is_listed(tmp_path: Path, platform: str):
    shown = json.loads(block("mobile.md", "json", f'"platform": "{platform}"'))
    section = (DOCS / "report-fields.md").read_text().partition("## native")[2].partition("\n## ")[0]
    listed = set(re.findall(r"`([\w.]+)`", section)) | {row.path for row in field_rows() if row.adapter == ""}
    for name, value in shown["signals"].items():
        for path in [f"{name}.{part}" for part in value] if isinstance(value, dict) else [name]:
            assert path in listed, path
    read = read_report(shown["signals"], RequestFacts(ip="192.0.2.1"))
    assert read.device_id in (shown["signals"].get("android_id"), shown["signals"].get("identifier_for_vendor"))
    assert read.client_token == shown["signals"]["client_token"]
    async with live_service(tmp_path / "data") as live:
        key = live.issue(platforms=(platform,), allowed_origins=())[1]
        headers = {"x-api-key": key, "user-agent": "Shop/42"}
        response = await live.client.post("/api/v1/identify", json=shown, headers=headers)
    assert response.status_code == 200, response.text
    assert response.json()["identifiable"]
    assert "triggers" not in response.json()


def test_the_page_about_apps_names_every_flag():
    section = (DOCS / "mobile.md").read_text().partition("## Flags")[2].partition("\n## ")[0]
    assert set(FLAGS) - set(re.findall(r"`(?:flags\.)?(\w+)`", section)) == set()


PAGE = """
import { identify, sendDeferred } from "./identify.mjs";
delete Object.getPrototypeOf(globalThis.crypto).randomUUID;  // as on a page without TLS
const stored = new Map();
const getItem = (name) => stored.get(name) ?? null, setItem = (name, text) => stored.set(name, text);
globalThis.localStorage = { getItem, setItem };
const sent = globalThis.fetch;
let losing = 0, sendings = 0;
globalThis.fetch = async (url, options) => {
  sendings += 1;
  const answer = await sent(url, { ...options, headers: { ...options.headers, origin: ORIGIN } });
  if (losing-- > 0) { await answer.text(); throw new TypeError("the answer was lost"); }
  return answer;
};
const one = { url: URL, key: KEY, collect: async () => (REPORT), tag: "signup" };
const first = await identify(one);
const second = await identify(one);
losing = 2;
const lost = await identify(one);
const deferred = await sendDeferred({ ...one, identification: second, signals: { slow: 1 } });
sendings = 0;
const refused = await identify({ ...one, key: KEY + "x" }).then(() => "not refused", (error) => error.message);
const refusedAfter = sendings;
const fetched = globalThis.fetch, later = globalThis.setTimeout, waits = [];
globalThis.setTimeout = (done, ms, ...rest) =>
  ms < 3_600_000 ? later(done, ms, ...rest) : (waits.push(ms), later(done, 0));
globalThis.fetch = async () => new Response("", { status: 429, headers: { "retry-after": "3600" } });
const limited = await identify(one).then(() => "not refused", (error) => error.message);
Object.assign(globalThis, { fetch: fetched, setTimeout: later });
delete globalThis.localStorage;
const without = await identify(one);
const token = stored.get("visitor_token");
console.log(JSON.stringify({ first, second, lost, deferred, refused, refusedAfter, limited, waits, without, token }));
"""


@pytest.mark.slow
async def test_the_client_for_other_collectors_identifies_retries_and_keeps_its_token(tmp_path: Path):
    (tmp_path / "identify.mjs").write_text(block("collectors.md", "javascript", "function clientToken"))
    async with live_service(tmp_path / "data") as live:
        key = live.issue()[1]
        await live.identify(key, report(2))  # the first one loads patterns, for longer than a page may wait
        values = {"ORIGIN": ORIGIN, "URL": live.url, "KEY": key, "REPORT": report()}
        script = re.sub(r"\b(ORIGIN|URL|KEY|REPORT)\b", lambda name: json.dumps(values[name[1]]), PAGE)
        told = await in_node(tmp_path, script)
        events = dict(live.events())
    assert told["second"]["visitor_id"] == told["first"]["visitor_id"]
    assert told["second"]["visitor_confidence"] == 100
    assert told["lost"] == {**told["lost"], "visitor_id": told["first"]["visitor_id"], "duplicate": True}
    assert len(events) == 5, "a lost answer made another event, or none"
    assert events[told["lost"]["request_id"]].verdict.visitor_id == told["first"]["visitor_id"]
    assert told["deferred"]["request_id"] == told["second"]["request_id"]
    assert (told["refused"], told["refusedAfter"]) == ("identification failed: 401", 1)
    assert (told["limited"], told["waits"]) == ("identification failed: 429", [])
    assert re.fullmatch("[0-9a-f]{32}", told["token"])
    assert told["without"]["identifiable"]


@pytest.mark.slow
async def test_the_checks_of_the_backend_guide_reject_ids_of_another_action(tmp_path: Path):
    async with live_service(tmp_path / "data") as live:
        request_id = (await live.identify(live.issue()[1], tag="signup")).json()["request_id"]
        secret = live.issue("secret")[1]
        now = datetime.fromtimestamp(live.clock.now_ms / 1000, UTC)
        right = {"id": request_id, "now": now, "origin": ORIGIN, "tag": "signup"}
        cases: list[tuple[dict[str, Any], str | None]] = [
            ({**right, "id": "019b76da-a800-7000-8000-000000000000"}, "no such identification"),
            ({**right, "id": "../../healthz"}, "no such identification"),
            ({**right, "id": "é" * 36}, "no such identification"),
            ({**right, "now": now + timedelta(minutes=6)}, "too old"),
            ({**right, "now": now - timedelta(minutes=6)}, "too old"),
            ({**right, "origin": "https://other.example"}, "another site"),
            ({**right, "tag": "payment"}, "another action"),
            (right, None),
            (right, "used before"),
        ]
        expected = [says for _, says in cases]
        assert await in_python(live, secret, [case for case, _ in cases]) == expected


@pytest.mark.slow
async def test_the_decision_of_the_backend_guide_challenges_new_visitors_and_refuses_suspects(tmp_path: Path):
    names: dict[str, Any] = {}
    exec(compile(block("backend.md", "python", "def what_to_do"), "docs/backend.md", "exec"), names)
    async with live_service(tmp_path / "data") as live:
        key, secret = live.issue()[1], live.issue("secret")[1]
        events = []
        for signals, headers in (
            (report(1), BROWSER),
            (report(1), BROWSER),
            (TOO_LITTLE, BROWSER),
            (report(1, **DRIVEN), HEADLESS),
        ):
            answer = (await live.identify(key, signals, headers=headers)).json()
            events.append(await trio.to_thread.run_sync(names["read_event"], live.url, secret, answer["request_id"]))
        expected = ["verify", "accept", "verify", "refuse"]
        assert [names["what_to_do"](event) for event in events] == expected
    known = events[1]
    ruled = [{**known, "decision": {"action": one}} for one in ("allow", "review", "challenge", "block", "delay")]
    assert [names["what_to_do"](event) for event in ruled] == ["accept", "accept", "verify", "refuse", "verify"]


async def test_the_recipes_can_be_saved_as_they_stand(tmp_path: Path):
    recipes = read_recipes((DOCS / "rules.md").read_text())
    rules = [{"name": one.name, "condition": one.condition, "action": one.action} for one in recipes]
    assert len(rules) == 10
    assert {case.recipe for case in CASES} == {one.name for one in recipes}, "each has its figures"
    async with live_service(tmp_path / "data") as live:
        _, key = live.issue("management")
        path = f"/api/v1/management/organizations/{live.organization.id}/rules"
        saved = await live.client.put(path, json={"revision": 0, "rules": rules}, headers={"x-api-key": key})
        assert saved.status_code == 200, saved.text


def test_the_page_about_rules_says_how_many_patterns_over_a_tag_fit():
    words = re.search(r"patterns over `tag` with `\.\*`, of which at most (\w+) fit", (DOCS / "rules.md").read_text())
    assert words is not None
    fit = [BUDGET // compile_once(f'tag.matches("{pattern}")').units for pattern in (".*", "a.*b", "a.*b.*c")]
    assert (words[1], fit) == ("six", [6, 5, 3])


async def in_python(live: Live, secret: str, cases: list[dict[str, Any]]) -> list[str | None]:
    names: dict[str, Any] = {}
    exec(compile(block("backend.md", "python", "def read_event"), "docs/backend.md", "exec"), names)
    used: set[str] = set()

    def is_first_use(request_id: str) -> bool:
        is_new = request_id not in used
        used.add(request_id)
        return is_new

    said: list[str | None] = []
    for case in cases:
        given = {name: case[name] for name in ("now", "origin", "tag")}
        event = await trio.to_thread.run_sync(names["read_event"], live.url, secret, case["id"])
        said.append(names["what_is_wrong"](event, **given, is_first_use=is_first_use))
    return said
