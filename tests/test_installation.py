"""What operators install the service with: unit, container, pinned libraries, and the page that says how."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
import tomllib
from importlib.metadata import requires
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from svc.cli import program
from svc.kernel.config import Config
from svc.kernel.config_loading import NOT_SETTINGS, SERVICE_LINK
from svc.serve.service import DRAIN_MARGIN_S
from tests.support.live import report
from tests.support.process import ENVIRONMENT, Started, run_json
from tests.test_docs import block

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "ops" / "svc.service"
TIMED_UNITS = [ROOT / "ops" / f"{name}.service" for name in ("svc-data-update", "svc-backup")]
CONTAINERFILE = ROOT / "ops" / "Containerfile"
GUIDES = [ROOT / "docs" / f"{name}.md" for name in ("install", "containers", "tls", "upgrading")]
SETTINGS = Config()
A_VISIT = {"sdk": {"platform": "web"}, "signals": report()}


class _Unit(configparser.RawConfigParser):
    def optionxform(self, optionstr: str) -> str:
        return optionstr


def unit() -> dict[str, str]:
    """[Service]; of a key that stands there twice, the last."""
    read = _Unit(strict=False, interpolation=None, comment_prefixes="#", delimiters="=")
    read.read(UNIT)
    return dict(read["Service"])


def test_the_unit_allows_time_for_the_drain_and_restarts_except_after_a_usage_error():
    service = unit()
    assert float(service["TimeoutStopSec"].removesuffix("s")) > SETTINGS.drain_limit_s + DRAIN_MARGIN_S
    assert (service["Restart"], service["RestartPreventExitStatus"]) == ("always", "2")
    assert "StartLimitIntervalSec=0" in UNIT.read_text()
    assert int(service["LimitNOFILE"]) > 4 * SETTINGS.max_connections


def test_no_unit_stores_a_core_though_its_program_may_set_no_limit():
    assert "@resources" in UNIT.read_text()
    for path in (UNIT, *TIMED_UNITS):
        assert "\nLimitCORE=0\n" in path.read_text()


def test_a_unit_that_is_always_restarted_never_gives_up():
    """One that fails is ended for good after five starts in ten seconds, as a follower whose disk is full would be."""
    pages = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    shown = re.findall(r"^```ini\n(.*?)^```", pages, re.MULTILINE | re.DOTALL)
    shipped = (path.read_text() for path in (ROOT / "ops").glob("*.service"))
    units = [text for text in (*shown, *shipped) if "Restart=always" in text]
    assert len(units) >= 2
    assert all("[Unit]" in text and "\nStartLimitIntervalSec=0\n" in text for text in units)


def test_the_unit_starts_an_existing_command():
    _, *arguments = shlex.split(unit()["ExecStart"])
    shown = CliRunner().invoke(program, [*arguments, "--help"])
    assert shown.exit_code == 0, shown.output
    assert "-HUP" in unit()["ExecReload"]


def test_the_unit_lets_the_service_write_only_in_its_own_directory():
    service = unit()
    assert (service["ProtectSystem"], service["StateDirectory"]) == ("strict", "svc")
    assert "ReadWritePaths" not in service
    assert "SVC_DATA=/var/lib/svc" in service["Environment"]
    assert service["User"] not in ("", "root")


@pytest.mark.slow
def test_systemd_accepts_the_unit_and_rates_its_exposure_low(tmp_path: Path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    copy = tmp_path / "svc.service"
    copy.write_text(UNIT.read_text().replace("/opt/svc/bin/svc", shutil.which("true") or "/bin/true"))
    verified = subprocess.run([analyze, "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False)
    assert (verified.returncode, [line for line in verified.stderr.splitlines() if "svc.service" in line]) == (
        0,
        [],
    )
    told = subprocess.run(
        [analyze, "security", "--offline=true", "--no-pager", str(UNIT)], capture_output=True, text=True, check=False
    )
    exposure = re.search(r"exposure level for svc\.service: ([0-9.]+)", told.stdout)
    assert exposure is not None, told.stdout + told.stderr
    assert float(exposure[1]) <= 1.5


@pytest.mark.parametrize("timed", TIMED_UNITS, ids=lambda path: path.stem)
def test_a_unit_with_a_timer_is_equally_confined_and_runs_an_existing_command(timed: Path):
    read = _Unit(strict=False, interpolation=None, comment_prefixes="#", delimiters="=")
    read.read(timed)
    update, service = dict(read["Service"]), unit()
    start = list(service).index("StateDirectory")
    assert {key: update[key] for key in list(service)[start:]} == dict(list(service.items())[start:])
    assert [update[key] for key in ("User", "Group", "Environment", "EnvironmentFile")] == [
        service[key] for key in ("User", "Group", "Environment", "EnvironmentFile")
    ]
    _, *arguments = shlex.split(update["ExecStart"])
    shown = CliRunner().invoke(program, [*arguments, "--help"])
    assert shown.exit_code == 0, shown.output
    assert timed.with_suffix(".timer").exists()


@pytest.mark.slow
@pytest.mark.parametrize("timed", TIMED_UNITS, ids=lambda path: path.stem)
def test_systemd_accepts_a_unit_and_its_timer(tmp_path: Path, timed: Path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    for file in (timed, timed.with_suffix(".timer")):
        (tmp_path / file.name).write_text(file.read_text().replace("/opt/svc/bin/svc", shutil.which("true") or ""))
    copies = [str(path) for path in tmp_path.iterdir()]
    done = subprocess.run([analyze, "verify", "--man=no", *copies], capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if timed.stem in line]) == (0, [])


def instructions() -> list[tuple[str, str]]:
    """(instruction, the rest of it) of the container file, lines joined."""
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", CONTAINERFILE.read_text(), flags=re.MULTILINE))
    pairs = [line.partition(" ") for line in text.splitlines() if line.strip()]
    return [(name, rest.strip()) for name, _, rest in pairs]


def test_the_container_runs_unprivileged_and_keeps_its_data_in_a_volume():
    lines = dict(instructions())  # of an instruction that stands in both stages, the last
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", lines["USER"])
    names = [name for name, _ in instructions()]
    assert names.index("USER") > max(index for index, name in enumerate(names) if name in ("RUN", "COPY"))
    assert lines["VOLUME"] == "/data"
    assert "SVC_DATA=/data" in lines["ENV"].split()
    assert f"install -d -o svc -g svc -m 0700 {lines['VOLUME']}" in CONTAINERFILE.read_text()


def test_the_container_uses_an_official_base_image():
    base = instructions()[0][1].removeprefix("BASE=")
    assert re.fullmatch(r"[a-z]+:[a-z0-9.-]+", base)
    stages = [rest for name, rest in instructions() if name == "FROM"]
    assert stages == ["${BASE} AS unpacked", "${BASE}"]
    assert base in (ROOT / "docs" / "containers.md").read_text()


def test_the_container_checks_readiness_where_the_service_listens():
    lines = dict(instructions())
    port = lines["EXPOSE"]
    assert f"SVC_BIND=0.0.0.0:{port}" in lines["ENV"]
    assert f"http://127.0.0.1:{port}/readyz" in lines["HEALTHCHECK"]
    shown = CliRunner().invoke(program, [*re.findall(r'"([^"]+)"', lines["CMD"]), "--help"])
    assert shown.exit_code == 0


def pinned(file: Path) -> dict[str, str]:
    """Version with its hashes, by name."""
    text = re.sub(r"^#.*\n", "", file.read_text(), flags=re.MULTILINE)
    entries = [entry.strip() for entry in re.split(r"\n(?=\S)", text)]
    return {canonicalize_name(entry.partition("==")[0]): entry.partition("==")[2] for entry in entries}


def test_the_installed_runtime_packages_are_those_that_were_tested():
    """`ops/requirements.lock` is all that the program needs, in the versions and with the hashes of development."""
    running, tested = pinned(ROOT / "ops" / "requirements.lock"), pinned(ROOT / "requirements.lock")
    assert running.items() <= tested.items()
    assert all("--hash=sha256:" in entry for entry in running.values())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    asked = [*project["dependencies"], *optional["postgresql"]]
    needed, left = set[str](), [Requirement(text) for text in asked]
    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        extras = sorted(requirement.extras) or [""]
        if name in needed and not requirement.extras:
            continue
        needed.add(name)
        for text in requires(name) or ():
            further = Requirement(text)
            if further.marker is None or any(further.marker.evaluate({"extra": extra}) for extra in extras):
                left.append(further)
    assert set(running) == needed


def test_the_guides_name_existing_files_and_commands():
    text = "\n".join(guide.read_text() for guide in GUIDES)
    for path in re.findall(r"\b(?:ops|docs)/[\w./-]+\w", text):
        assert (ROOT / path).exists(), path
    for link in re.findall(r"\]\(([\w./-]+)\)", text):
        assert (ROOT / "docs" / link).exists(), link
    for setting in re.findall(r"\bSVC_([A-Z_]+)\b", text):
        variable = f"SVC_{setting}"
        known = setting.lower() in Config.__struct_fields__ or variable in NOT_SETTINGS
        assert known or SERVICE_LINK.fullmatch(variable) or variable in ("SVC_INIT_", "SVC_DOMAIN"), setting
    commands = {*re.findall(r"\bsvc(?:-admin)? (serve|org|key|member|data|doctor|backup|restore|check|dev)\b", text)}
    assert commands <= set(program.commands)
    assert {"serve", "org", "key", "backup", "restore"} <= commands


@pytest.mark.slow
def test_the_install_guide_leads_to_keys_for_a_page_and_a_server_behind_a_reverse_proxy(tmp_path: Path):
    """Its commands of `svc-admin`, but for what needs the network, with its settings in the file that is installed."""
    guide = block("install.md", "sh", "svc-admin org create")
    lines = [shlex.split(line, comments=True)[1:] for line in guide.splitlines() if line.startswith("svc-admin ")]
    assert [line[0] for line in lines] == ["org", "key", "key", "member", "data", "doctor"]
    (trusted,) = re.findall(r"`(trusted_proxies = .*?)`", (ROOT / "docs" / "install.md").read_text())
    written = (ROOT / "ops" / "svc.toml.example").read_text()
    assert tomllib.loads(trusted) == {"trusted_proxies": ENVIRONMENT["SVC_TRUSTED_PROXIES"].split(",")}
    settings = written.replace("#trusted_proxies = []", trusted)
    assert settings != written
    file = tmp_path / "svc.toml"
    file.write_text(settings + '\npublic_url = "https://id.shop.example"\n')
    admin = {"SVC_CONFIG": str(file), "SVC_DATA": str(tmp_path / "data")}
    organization = run_json(*lines[0], **admin)["organization_id"]
    made = [
        run_json(*(organization if word == "ORG" else word for word in line), **admin)
        for line in lines
        if line[0] in ("key", "member")
    ]
    (public, secret), invited = (each["secret"] for each in made[:2]), made[2]
    assert invited["invitation_url"].startswith("https://id.shop.example/console#")
    with Started(tmp_path / "data", **admin) as service:
        page = {"x-api-key": public, "origin": "https://shop.example", "x-forwarded-for": "81.2.69.160"}
        api = f"http://127.0.0.1:{service.port}/api/v1"
        seen = httpx.post(f"{api}/identify", headers=page, json=A_VISIT)
        assert seen.status_code == 200, seen.text
        rows = httpx.get(f"{api}/events", headers={"x-api-key": secret}).json()["rows"]
        assert [(row["request_id"], row["ip_address"]) for row in rows] == [(seen.json()["request_id"], "81.2.69.160")]
