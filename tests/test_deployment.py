"""The image, the compose file and the Kubernetes manifests of `ops/`, held against the program.

No container runs here: what the files say is read, and their very commands, variables and probes are tried on a real
`svc serve` whose directories and ports are those of the test.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
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
from tests.test_installation import instructions

ROOT = Path(__file__).parents[1]
OPS = ROOT / "ops"
KUBERNETES = OPS / "kubernetes"
SETTINGS = Config()


# What the image is built of


def test_the_image_is_built_of_the_executable_alone():
    """No data directory, no secret and no virtual environment can get into it."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["*", "!dist/svc"]
    sources = [rest for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    assert sources == ["--chmod=0755 ${PROGRAM} /svc"]
    assert ("ARG", "PROGRAM=dist/svc") in instructions()


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


def test_a_deployment_as_it_is_refuses_no_production_traffic_for_money():
    """Decisions 5.2: who hosts for himself never meets `402`; credit is for who asks for it."""
    files = [*OPS.glob("*.yaml"), *OPS.glob("kubernetes*/*.yaml")]
    assert len(files) > 8, "they are looked for in vain"
    assert [file.name for file in files if "SVC_INIT_CREDIT_USD" in file.read_text()] == []
    assert read(OPS / "helm" / "svc" / "values.yaml")["init"]["creditUsd"] is None


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
            *_, options, asked = [part.replace("127.0.0.1:8080", address) for part in health]
            assert subprocess.run([sys.executable, options, asked], check=False, timeout=30).returncode == 0
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
    (secret,) = [volume["secret"]["secretName"] for volume in pod()["volumes"] if "secret" in volume]
    file = Path(kubernetes().environment["SVC_PEPPER_FILE"]).name
    assert f"create secret generic {secret} --namespace svc --from-file={file}=" in guide
    assert kubernetes().environment["SVC_INIT_KEYS_FILE"] in guide
    assert "enableServiceLinks: false" in guide
    assert "docker compose -f ops/compose.yaml up" in guide
    assert set(image().arguments[1:]) <= {
        option for param in svc_program.commands["serve"].params for option in param.opts
    }
