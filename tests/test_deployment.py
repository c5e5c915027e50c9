"""The image, the compose file and the Kubernetes manifests of `ops/`, held against the program.

No container runs here: what the files say is read, and their very commands, variables and probes are tried on a real
`svc serve` whose directories and ports are those of the test.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from svc.cli import program as svc_program
from svc.kernel.config import Config
from svc.kernel.config_loading import NOT_SETTINGS, PREFIX, load
from svc.serve.service import DRAIN_MARGIN_S
from tests.spec.test_first_start import SERVICE_LINKS
from tests.support.process import PROGRAM
from tests.test_installation import instructions, pinned
from tools import docs

ROOT = Path(__file__).parents[1]
OPS = ROOT / "ops"
KUBERNETES = OPS / "kubernetes"
SETTINGS = Config()


# What the image is built of


PATTERNS = [
    (line.lstrip("!"), line.startswith("!"))
    for line in (ROOT / ".dockerignore").read_text().splitlines()
    if line and not line.startswith("#")
]


def is_in(path: str) -> bool:
    """Whether `.dockerignore` leaves a file or folder in the build context; the last pattern that matches decides."""
    ancestors = [path, *(str(parent) for parent in Path(path).parents if str(parent) != ".")]
    kept = True
    for pattern, back in PATTERNS:
        names = [pattern, pattern.removeprefix("**/")]
        if any(fnmatch.fnmatchcase(one, name) for one in ancestors for name in names) or (
            pattern.startswith("**/") and any(fnmatch.fnmatchcase(part, pattern[3:]) for part in Path(path).parts)
        ):
            kept = back
    return kept


@cache
def context() -> list[str]:
    """Files of the checkout that are in the build context. As Docker does, it looks into no folder that is left out,
    unless a pattern brings back what is in there.
    """

    def files(folder: Path) -> Iterator[str]:
        for each in folder.iterdir():
            path = each.relative_to(ROOT).as_posix()
            if not each.is_dir():
                yield from [path] if is_in(path) else []
            elif is_in(path) or any(back and pattern.startswith(f"{path}/") for pattern, back in PATTERNS):
                yield from files(each)

    return sorted(files(ROOT))


def copied() -> list[str]:
    """Files of the context that the image's first stage copies."""
    sources = [
        source
        for name, rest in instructions()
        if name == "COPY" and "--from" not in rest
        for source in rest.split()[:-1]
    ]
    files = context()
    for source in sources:
        assert any(file == source or file.startswith(source + "/") for file in files), f"{source} is not in the context"
    return [file for file in files if any(file == source or file.startswith(source + "/") for source in sources)]


@pytest.mark.slow
def test_the_documentation_of_the_image_links_to_nothing_that_the_image_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its site is made there, of these files alone."""
    for name in copied():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    monkeypatch.setattr(docs, "DOCS", tmp_path / "docs")
    site = tmp_path / "site"
    docs.Stage(site).fill()
    assert len(list(site.rglob("*.md"))) > 100


@pytest.mark.slow
def test_the_build_context_contains_the_sources_and_no_private_files():
    files = context()
    assert {file.partition("/")[0] for file in files} == {
        "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md", "docs", "examples", "ops",
        "pyproject.toml", "setup.py", "svc", "svc_replay", "tools", "web",
    }  # fmt: skip
    tools = {file for file in files if file.startswith("tools/") and not file.startswith("tools/site/")}
    assert tools == {"tools/__init__.py", "tools/docs.py", "tools/web.py"}
    assert not [file for file in files if "node_modules" in file or "/dist/" in file or "web_static" in file]
    assert not [file for file in files if "docs_site" in file or "/.env" in file or "/.venv" in file]
    assert not [file for file in files if "__pycache__" in file or "/swagger-ui" in file]
    assert set(files) == set(copied()), "the context has files that no step copies"


def secrets_of_recipes() -> list[str]:
    """Files, from the root of a checkout, that the compose files name as secrets or have people write."""
    found: set[str] = set()
    for file in OPS.glob("compose*.yaml"):
        named = yaml.safe_load(file.read_text()).get("secrets", {}).values()
        found.update(os.path.normpath(f"ops/{secret['file']}") for secret in named)
        found.update(re.findall(r"> (ops/[\w/.-]+)", file.read_text()))
    return sorted(found)


def test_no_secret_of_the_recipes_is_in_the_build_context():
    assert secrets_of_recipes() == ["ops/secrets/pepper", "ops/secrets/store-password"]
    kept_beside = [
        "pepper", "data/pepper", "ops/pepper", "ops/svc.toml", "svc.toml", "ops/kubernetes/secrets/ca.crt",
        "ops/first-keys.json", "ops/kubernetes/.env", "ops/kubernetes/.env.production", "ops/reverse-proxy/privkey.pem",
        "ops/tls.key", "ops/client.p12", "ops/proxy/.dev.vars", "ops/proxy/.dev.vars.production", "web/.npmrc",
        "examples/shop/.env.local", "docs/.netrc", ".git/config", "examples/shop/dev-keys.json",
    ]  # fmt: skip
    assert [file for file in [*secrets_of_recipes(), *kept_beside] if is_in(file)] == []
    assert is_in("ops/svc.toml.example")


@pytest.mark.slow(0.2)
def test_no_tracked_source_is_left_out_with_the_secrets():
    """Every file of these folders that git has, but for what the image is built without."""
    tracked = subprocess.run(
        ["git", "ls-files", "svc", "svc_replay", "ops", "docs"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert [file for file in tracked if not is_in(file)] == []


def test_the_image_is_built_with_pinned_tools():
    """`ops/build.lock` has what pyproject.toml builds with, and no other version of anything than development has."""
    tools, tested = pinned(OPS / "build.lock"), pinned(ROOT / "requirements.lock")
    assert all("--hash=sha256:" in entry for entry in tools.values())
    assert {name: entry for name, entry in tools.items() if name in tested and tested[name] != entry} == {}
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert {re.split("[=>]", text)[0] for text in required} <= set(tools)
    installs = [rest for name, rest in instructions() if name == "RUN" and " install " in rest]
    assert all(
        "--require-hashes" in part or "--no-index" in part
        for rest in installs
        for part in rest.split("&&")
        if "pip install" in part
    )


# What is started, and with which variables


class Deployment(NamedTuple):
    """How one of the files starts the service."""

    arguments: list[str]
    environment: dict[str, str]
    probes: list[str]
    """Paths that are asked over HTTP."""


def image() -> Deployment:
    lines = instructions()
    stages = [index for index, (name, _) in enumerate(lines) if name == "FROM"]
    (variables,) = [rest for name, rest in lines[stages[-1] :] if name == "ENV"]
    found = dict(pair.split("=", 1) for pair in variables.split())
    health = dict(lines)["HEALTHCHECK"]
    return Deployment(
        json.loads(dict(lines)["CMD"]),
        {name: text for name, text in found.items() if name != "PATH"},
        re.findall(r"http://127\.0\.0\.1:8080(/\w+)", health),
    )


def compose() -> Deployment:
    service = read(OPS / "compose.yaml")["services"]["svc"]
    base = image()
    return Deployment(base.arguments, base.environment | service["environment"], base.probes)


def pod() -> dict[str, Any]:
    return read(KUBERNETES / "statefulset.yaml")["spec"]["template"]["spec"]


def kubernetes() -> Deployment:
    (container,) = pod()["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    probes = [container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    return Deployment(container["args"], image().environment | variables | SERVICE_LINKS, probes)


def read(file: Path) -> dict[str, Any]:
    (document,) = yaml.safe_load_all(file.read_text())
    return document


DEPLOYMENTS = {"image": image, "compose": compose, "kubernetes": kubernetes}


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_every_variable_of_a_deployment_exists_in_the_program(name: str):
    environment = DEPLOYMENTS[name]().environment
    settings = load(None, environment)
    assert settings.bind == "0.0.0.0:8080"
    for variable in environment.keys() - NOT_SETTINGS - SERVICE_LINKS.keys():
        if variable.startswith(PREFIX):
            assert variable.removeprefix(PREFIX).lower() in Config.__struct_fields__, variable


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Where the process starts and may leave nothing: its home and its temporary folder."""
    folder = tmp_path / "read-only"
    folder.mkdir()
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_a_deployment_starts_from_an_empty_volume_becomes_ready_and_drains(name: str, tmp_path: Path, tree: Path):
    deployment = DEPLOYMENTS[name]()
    volume = tmp_path / "volume"
    volume.mkdir()
    pepper = tmp_path / "secret" / "pepper"
    pepper.parent.mkdir()
    pepper.write_bytes(os.urandom(32))
    pepper.chmod(0o400)
    here = {
        "/data": str(volume),
        "/etc/svc/pepper": str(pepper.parent),
        "0.0.0.0:8080": "127.0.0.1:0",
        "0.0.0.0:9464": "127.0.0.1:0",
    }
    environment = {variable: mapped(text, here) for variable, text in deployment.environment.items()}
    environment = {
        "SVC_METRICS_BIND": "127.0.0.1:0",
        **environment,
        "HOME": str(tree),
        "TMPDIR": str(tree),
        "PYTHONPATH": str(ROOT),
    }
    with subprocess.Popen(
        [*PROGRAM, *deployment.arguments],
        env=environment,
        cwd=tree,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        log: list[str] = []
        try:
            address = serving(process, log)
            for path in deployment.probes:
                with urllib.request.urlopen(f"http://{address}{path}", timeout=20) as answer:
                    assert answer.status == 200
            health = json.loads(dict(instructions())["HEALTHCHECK"].partition("CMD ")[2])
            asked = [part.replace("127.0.0.1:8080", address) for part in health[1:]]
            assert subprocess.run([sys.executable, *asked], check=False, timeout=30).returncode == 0
        finally:
            process.send_signal(signal.SIGTERM)
            printed, rest = process.communicate(timeout=30)
    assert process.returncode == 0, "".join(log) + rest
    keys = environment.get("SVC_INIT_KEYS_FILE")
    if keys is None:
        assert "svc_mk_" in printed
    else:
        assert printed == ""
        kinds = [key["kind"] for key in json.loads(Path(keys).read_text())["keys"]]
        assert kinds == ["management", "secret", "public"]
    assert list(tree.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"read-only", "secret", "volume"}


def mapped(text: str, here: dict[str, str]) -> str:
    for there, replaced in here.items():
        if text == there or text.startswith(there + "/"):
            return replaced + text.removeprefix(there)
    return text


def serving(process: subprocess.Popen[str], log: list[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        log.append(line)
        if '"serving"' in line:
            return json.loads(line)["addresses"][0]
    raise AssertionError("".join(log))


# What surrounds it


def test_compose_references_existing_files_and_allows_time_for_the_drain():
    document = read(OPS / "compose.yaml")
    service, caddy = document["services"]["svc"], document["services"]["caddy"]
    build = service["build"]
    assert (OPS / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert float(service["stop_grace_period"].removesuffix("s")) > SETTINGS.drain_limit_s + DRAIN_MARGIN_S
    assert service["volumes"] == ["data:/data"]
    mounted = [volume.split(":")[0] for one in (service, caddy) for volume in one["volumes"]]
    assert {volume for volume in mounted if not volume.startswith("./")} == set(document["volumes"])
    for volume in mounted:
        assert not volume.startswith("./") or (OPS / volume).is_file(), volume
    address = caddy["networks"]["outside"]["ipv4_address"]
    assert service["environment"]["SVC_TRUSTED_PROXIES"] == f"{address}/32"
    proxied = (OPS / "reverse-proxy" / "Caddyfile.compose").read_text()
    assert f"reverse_proxy {{$SVC_NODES:svc:{dict(instructions())['EXPOSE']}}} " in proxied
    assert lines_of(proxied) == lines_of((OPS / "reverse-proxy" / "Caddyfile").read_text())


def lines_of(caddyfile: str) -> list[str]:
    """What is set, without the site, its certificate and the address of the service."""
    own = ("#", "tls ", "id.example.com", "{$SVC_DOMAIN}", "reverse_proxy ")
    return [line for text in caddyfile.splitlines() if (line := text.strip()) and not line.startswith(own)]


def manifests() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted(KUBERNETES.glob("*.yaml")):
        yield file.name, read(file)


def test_the_manifests_are_all_applied_and_describe_the_same_pod():
    found = dict(manifests())
    listed = found.pop("kustomization.yaml")
    optional = {"servicemonitor.yaml"}
    assert set(listed["resources"]) == set(found) - optional
    assert {document["metadata"]["name"] for document in found.values()} == {"svc"}
    assert found["namespace.yaml"]["metadata"]["name"] == listed["namespace"]
    labels = {"app.kubernetes.io/name": "svc"}
    stateful, service = found["statefulset.yaml"]["spec"], found["service.yaml"]
    assert stateful["selector"]["matchLabels"] == stateful["template"]["metadata"]["labels"] == labels
    assert service["spec"]["selector"] == service["metadata"]["labels"] == labels
    assert found["networkpolicy.yaml"]["spec"]["podSelector"]["matchLabels"] == labels
    assert found["servicemonitor.yaml"]["spec"]["selector"]["matchLabels"] == labels
    assert stateful["serviceName"] == service["metadata"]["name"]
    assert stateful["replicas"] == 1


def test_every_port_in_a_manifest_is_one_where_the_service_listens():
    settings = load(None, kubernetes().environment)
    (container,) = pod()["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {
        "http": int(settings.bind.rpartition(":")[2]),
        "metrics": int(settings.metrics_bind.rpartition(":")[2]),
    }
    found = dict(manifests())
    policy = found["networkpolicy.yaml"]["spec"]
    named = [port["targetPort"] for port in found["service.yaml"]["spec"]["ports"]]
    named += [port["port"] for rule in policy["ingress"] for port in rule["ports"]]
    named += [endpoint["port"] for endpoint in found["servicemonitor.yaml"]["spec"]["endpoints"]]
    named += [container[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert set(named) == set(ports)
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"


def test_the_pod_is_restricted_and_writes_only_to_its_volume():
    spec = pod()
    (container,) = spec["containers"]
    context_of_pod, of_container = spec["securityContext"], container["securityContext"]
    user, group = dict(instructions())["USER"].split(":")
    assert context_of_pod["runAsNonRoot"]
    assert (context_of_pod["runAsUser"], context_of_pod["runAsGroup"]) == (int(user), int(group))
    assert context_of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert of_container == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert (spec["enableServiceLinks"], spec["automountServiceAccountToken"]) == (False, False)
    assert spec["terminationGracePeriodSeconds"] > SETTINGS.drain_limit_s + DRAIN_MARGIN_S
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    environment = kubernetes().environment
    for variable in ("SVC_DATA", "SVC_INIT_KEYS_FILE"):
        assert environment[variable].startswith(mounts["data"]["mountPath"] + "/")
    assert Path(environment["SVC_PEPPER_FILE"]).parent == Path(mounts["pepper"]["mountPath"])
    assert mounts["pepper"]["readOnly"]
    (claim,) = read(KUBERNETES / "statefulset.yaml")["spec"]["volumeClaimTemplates"]
    assert float(claim["spec"]["resources"]["requests"]["storage"].removesuffix("Gi")) > load(None, environment).map_gib


def test_the_guide_creates_what_the_manifests_require():
    guide = (ROOT / "docs" / "containers.md").read_text()
    (secret,) = [volume["secret"]["secretName"] for volume in pod()["volumes"]]
    file = Path(kubernetes().environment["SVC_PEPPER_FILE"]).name
    assert f"create secret generic {secret} --namespace svc --from-file={file}=" in guide
    assert kubernetes().environment["SVC_INIT_KEYS_FILE"] in guide
    assert "enableServiceLinks: false" in guide
    assert "docker compose -f ops/compose.yaml up" in guide
    assert set(image().arguments[1:]) <= {
        option for param in svc_program.commands["serve"].params for option in param.opts
    }
