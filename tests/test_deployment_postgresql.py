"""The compose file and the manifests of several nodes on PostgreSQL, held against the program and a real database.

No container runs here, as in test_deployment.py: their variables and arguments are tried on real processes, three of
them on one database.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from svc.command.data_directory import database_of
from svc.kernel.config import Config
from svc.kernel.config_loading import NOT_SETTINGS, PREFIX, load
from tests.spec.test_first_start import SERVICE_LINKS
from tests.support.postgresql import Cluster
from tests.support.process import PROGRAM
from tests.test_deployment import Deployment, image, mapped, read, serving

OPS = Path(__file__).parents[1] / "ops"
KUBERNETES = OPS / "kubernetes-postgresql"
NODES = 3


def compose() -> list[Deployment]:
    services = read(OPS / "compose-postgresql.yaml")["services"]
    base = image()
    nodes = [service for name, service in services.items() if name.startswith("svc-")]
    return [
        Deployment(node.get("command", base.arguments), base.environment | node["environment"], base.probes)
        for node in nodes
    ]


def kubernetes() -> list[Deployment]:
    document = read(KUBERNETES / "deployment.yaml")
    (container,) = document["spec"]["template"]["spec"]["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    probes = [container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    pod = Deployment(container["args"], image().environment | variables | SERVICE_LINKS, probes)
    return [pod] * document["spec"]["replicas"]


both = pytest.mark.parametrize("nodes", [compose, kubernetes], ids=["compose", "kubernetes"])


@both
def test_every_variable_exists_in_the_program_and_all_nodes_name_one_database(nodes: Any, tmp_path: Path):
    deployments = nodes()
    assert len(deployments) == NODES
    for deployment in deployments:
        settings = load(None, deployment.environment)
        for variable in deployment.environment.keys() - NOT_SETTINGS - SERVICE_LINKS.keys():
            if variable.startswith(PREFIX):
                assert variable.removeprefix(PREFIX).lower() in Config.__struct_fields__, variable
        assert settings.bind == "0.0.0.0:8080"
        assert settings.workers == 1
        (tmp_path / "password").write_text("secret")
        environment = deployment.environment | {"SVC_STORE_PASSWORD_FILE": str(tmp_path / "password")}
        assert database_of(load(None, environment)) is not None, "libpq reads the URL"
    assert len({deployment.environment["SVC_STORE"] for deployment in deployments}) == 1
    assert sum("--init" in deployment.arguments for deployment in deployments) in (1, NODES)


@pytest.mark.slow(6)
@pytest.mark.one_case
@both
def test_three_nodes_start_on_an_empty_database_and_become_ready(
    nodes: Any, cluster: Cluster, database: str, tmp_path: Path
):
    (tmp_path / "pepper").write_bytes(os.urandom(32))
    (tmp_path / "password").write_text("unused: loopback is trusted here\n")
    with ExitStack() as stack:
        started: list[tuple[subprocess.Popen[str], str]] = []
        for number, deployment in enumerate(nodes()):
            volume = tmp_path / f"node-{number}"
            volume.mkdir()
            here = {"/data": str(volume), "0.0.0.0:8080": "127.0.0.1:0", "0.0.0.0:9464": "127.0.0.1:0"}
            environment = {name: mapped(text, here) for name, text in deployment.environment.items()} | {
                "SVC_STORE": str(cluster.url(database)),
                "SVC_STORE_PASSWORD_FILE": str(tmp_path / "password"),
                "SVC_PEPPER_FILE": str(tmp_path / "pepper"),
                "PYTHONPATH": str(OPS.parent),
            }
            process = stack.enter_context(
                subprocess.Popen(
                    [*PROGRAM, *deployment.arguments], env=environment, stderr=subprocess.PIPE, text=True, cwd=volume
                )
            )
            stack.callback(process.kill)
            log: list[str] = []
            address = serving(process, log)
            assert json.loads(log[-2] if '"serving"' in log[-1] else log[-1])["event"] in ("node", "serving")
            started.append((process, address))
            for path in deployment.probes:
                with urllib.request.urlopen(f"http://{address}{path}", timeout=20) as answer:
                    assert answer.status == 200
        files = list(tmp_path.rglob("first-keys.json"))
        assert len(files) == 1, "the first node made the keys, and no other"
        assert cluster.execute("select count(*) from svc.nodes", database) == [(str(NODES),)]
        for process, _ in started:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
            assert process.returncode == 0
    assert cluster.execute("select count(*) from svc.nodes", database) == [("0",)]


def test_compose_references_only_what_it_defines():
    document = read(OPS / "compose-postgresql.yaml")
    services = document["services"]
    secrets, volumes, networks = (set(document[part]) for part in ("secrets", "volumes", "networks"))
    for name, service in services.items():
        assert set(service.get("secrets", ())) <= secrets, name
        assert set(service["networks"]) <= networks, name
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in volumes or (OPS / source).is_file(), volume
        assert set(service.get("depends_on", ())) <= set(services), name
    proxied = services["caddy"]["environment"]["SVC_NODES"].split()
    assert proxied == [f"{name}:8080" for name in services if name.startswith("svc-")]
    address = services["caddy"]["networks"]["outside"]["ipv4_address"]
    assert services["svc-1"]["environment"]["SVC_TRUSTED_PROXIES"] == f"{address}/32"
    assert (OPS.parent / ".gitignore").read_text().count("/ops/secrets/") == 1


def test_the_manifests_are_all_applied_and_consistent():
    found = {file.name: read(file) for file in sorted(KUBERNETES.glob("*.yaml"))}
    listed = found.pop("kustomization.yaml")
    assert set(listed["resources"]) == set(found) - {"servicemonitor.yaml"}
    labels = {"app.kubernetes.io/name": "svc"}
    deployment = found["deployment.yaml"]["spec"]
    pod = deployment["template"]["spec"]
    assert deployment["selector"]["matchLabels"] == deployment["template"]["metadata"]["labels"] == labels
    for name in ("service.yaml", "disruption.yaml", "networkpolicy.yaml"):
        spec = found[name]["spec"]
        selector = spec.get("selector") or spec["podSelector"]
        assert selector.get("matchLabels", selector) == labels, name
    (container,) = pod["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in pod["volumes"]}
    environment = kubernetes()[0].environment
    for variable, mount in (
        ("SVC_PEPPER_FILE", "pepper"),
        ("SVC_STORE_PASSWORD_FILE", "database-user"),
        ("SVC_DATA", "data"),
    ):
        assert environment[variable].startswith(mounts[mount] + "/"), variable
    database = found["database.yaml"]
    name = database["metadata"]["name"]
    assert f"@{name}-rw/" in environment["SVC_STORE"]
    assert f"sslrootcert={mounts['database']}/ca.crt" in environment["SVC_STORE"]
    assert {volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume} == {
        "svc-pepper",
        f"{name}-ca",
        f"{name}-app",
    }
    assert database["spec"]["bootstrap"]["initdb"]["owner"] == "svc"
    egress = yaml.safe_dump(found["networkpolicy.yaml"]["spec"]["egress"])
    assert f"cnpg.io/cluster: {name}" in egress


def test_the_guide_names_these_files_and_their_requirements():
    guide = (OPS.parent / "docs" / "postgresql.md").read_text()
    for named in ("ops/compose-postgresql.yaml", "ops/kubernetes-postgresql", "svc-pepper", "first-keys.json"):
        assert named in guide, named
