"""The Helm chart of `ops/helm`: it renders what the manifests say, object by object, and refuses wrong values.

`helm` itself runs where it is installed; no cluster does.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from svc.kernel.config_loading import NOT_SETTINGS, load
from tests.test_deployment import OPS, image
from tools import chart, release

HELM = shutil.which("helm")
needs_helm = pytest.mark.skipif(HELM is None, reason="helm is not installed")
KUBERNETES = ("--kube-version", "1.30.0")
OF_HELM = {
    *("helm.sh/chart", "helm.sh/resource-policy"),
    *(f"app.kubernetes.io/{name}" for name in ("instance", "managed-by", "version")),
}
"""Labels and annotations that a release has beside those of the manifests."""
KINDS = {"StatefulSet", "Deployment"}


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    assert HELM is not None
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, timeout=60, check=False)


def rendered(*sets: str, release: str = "svc", values: Any = None) -> list[dict[str, Any]]:
    """The objects of a release; `sets` are those of `--set`, `values` those of a file."""
    arguments = [part for one in sets for part in ("--set", one)]
    command = ["template", release, str(chart.CHART), "--namespace", "svc", *KUBERNETES, *arguments]
    if values is not None:
        command += ["--set-json", ",".join(f"{name}={json.dumps(value)}" for name, value in values.items())]
    done = helm(*command)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def by_kind(documents: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = {document["kind"]: document for document in documents}
    assert len(found) == len(documents)
    return found


def pod(documents: list[dict[str, Any]]) -> dict[str, Any]:
    (template,) = [document["spec"]["template"] for document in documents if document["kind"] in KINDS]
    return template["spec"]


def environment(documents: list[dict[str, Any]]) -> dict[str, str]:
    (container,) = pod(documents)["containers"]
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}


def plain(tree: Any) -> Any:
    """Without what Helm adds; the order of variables is of no matter, and neither are empty maps."""
    if isinstance(tree, list):
        parts = [plain(part) for part in tree]
        if parts and all(isinstance(part, dict) and part.keys() == {"name", "value"} for part in parts):
            return {part["name"]: part["value"] for part in parts}
        return parts
    if isinstance(tree, dict):
        kept = {name: plain(part) for name, part in tree.items() if name not in OF_HELM}
        return {name: part for name, part in kept.items() if part != {} or name == "emptyDir"}
    return tree


@needs_helm
@pytest.mark.parametrize(
    ("folder", "sets"), [("kubernetes", ()), ("kubernetes-postgresql", ("postgresql.enabled=true",))]
)
def test_a_release_has_the_objects_of_the_manifests(folder: str, sets: tuple[str, ...]):
    files = [yaml.safe_load(file.read_text()) for file in sorted((OPS / folder).glob("*.yaml"))]
    wanted = {kind: plain(one) for kind, one in by_kind(files).items() if kind != "Kustomization"}
    found = rendered("namespace.create=true", "serviceMonitor.enabled=true", *sets)
    for document in found:
        if document["kind"] != "Namespace":
            assert document["metadata"].pop("namespace") == "svc"
        assert document["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    own_labels = {kind: document["metadata"].pop("labels") for kind, document in by_kind(found).items()}
    for kind, document in wanted.items():
        document["metadata"].pop("labels", None)
        assert own_labels[kind]["app.kubernetes.io/name"] == "svc"
    assert own_labels["Namespace"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert {kind: plain(document) for kind, document in by_kind(found).items()} == wanted
    assert wanted["ServiceMonitor"]["spec"]["jobLabel"] == "app.kubernetes.io/name", "the job that alerts name is svc"
    optional = {document["kind"] for document in found} - {document["kind"] for document in rendered(*sets)}
    assert optional == {"Namespace", "ServiceMonitor"}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart as a release has it."""
    path = tmp_path_factory.mktemp("chart") / "svc-chart.tgz"
    path.write_bytes(release.repacked(chart.packaged(), 1_767_225_600))
    return path


def test_a_release_has_the_chart_without_what_helm_leaves_out(package: Path):
    ignored = {".helmignore", "README.md"}
    files = {path.relative_to(chart.CHART).as_posix() for path in chart.CHART.rglob("*") if path.is_file()}
    with tarfile.open(package) as archive:
        assert {entry.name.removeprefix("svc/") for entry in archive} == files - ignored
        assert {(entry.uid, entry.uname, entry.mtime) for entry in archive} == {(0, "", 1_767_225_600)}


@needs_helm
def test_helm_finds_nothing_wrong(package: Path):
    for path in (chart.CHART, package):
        done = helm("lint", "--strict", str(path))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "WARNING" not in done.stdout
    rendered = [helm("template", "svc", str(path), *KUBERNETES).stdout for path in (chart.CHART, package)]
    assert rendered[0] == rendered[1] != ""


@needs_helm
def test_two_releases_are_apart_and_each_object_has_a_name_of_its_own():
    found = rendered("postgresql.enabled=true", "service.type=LoadBalancer", release="shop")
    named = [(document["kind"], document["metadata"]["name"]) for document in found]
    assert len(named) == len(set(named))
    assert {name for _, name in named} == {"shop", "shop-db", "shop-metrics"}
    selectors = [document["spec"]["selector"] for document in found if document["kind"] == "Service"]
    assert [selector["app.kubernetes.io/instance"] for selector in selectors] == ["shop", "shop"]
    ports = {
        document["metadata"]["name"]: document["spec"]["ports"] for document in found if "ports" in document["spec"]
    }
    assert [port["name"] for port in ports["shop"]] == ["http"], "metrics are not reached from outside"
    assert "@shop-db-rw/svc?" in environment(found)["SVC_STORE"]


@needs_helm
def test_settings_arrive_as_the_program_reads_them():
    own = {"trusted_proxies": ["10.1.2.3", "fd00::3"], "network_interval_s": 1000000, "network_builtin": False}
    wanted = {"region": "eu", "store_share": None, "webhook_allow_ports": [444, 445], **own}
    variables = environment(rendered(values={"settings": wanted}))
    assert "SVC_STORE_SHARE" not in variables
    settings = load(None, {**image().environment, **variables})
    assert settings.region == "eu"
    assert settings.trusted_proxies == ("10.1.2.3", "fd00::3")
    assert (settings.network_interval_s, settings.network_builtin, settings.workers) == (1000000, False, 1)
    assert settings.webhook_allow_ports == (444, 445)
    assert "SVC_INIT_ORGANIZATION" in variables.keys() & NOT_SETTINGS
    without = rendered("init.enabled=false")
    assert not [name for name in environment(without) if name.startswith("SVC_INIT_")]
    assert pod(without)["containers"][0]["args"] == ["serve"]


@needs_helm
def test_a_database_that_is_there_already_is_named_by_the_values():
    database = {
        "enabled": True,
        "url": "postgresql://svc@db.example:5433/svc?sslmode=verify-full",
        "passwordSecret": {"name": "database", "key": "pw"},
        "peers": [{"ipBlock": {"cidr": "10.0.0.5/32"}}],
        "cluster": {"create": False},
        "nodes": 5,
    }
    found = rendered(values={"postgresql": database})
    objects = by_kind(found)
    assert "Cluster" not in objects
    assert objects["Deployment"]["spec"]["replicas"] == 5
    rule = {"to": database["peers"], "ports": [{"protocol": "TCP", "port": 5433}]}
    assert rule in objects["NetworkPolicy"]["spec"]["egress"]
    assert environment(found)["SVC_STORE"] == database["url"]
    volumes = {volume["name"]: volume for volume in pod(found)["volumes"]}
    assert volumes["database-user"]["secret"]["items"] == [{"key": "pw", "path": "password"}]
    assert "database" not in volumes, "no authority is named"
    assert objects["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1


@needs_helm
def test_what_surrounds_the_pod_is_as_the_values_say():
    secret = {"name": "SVC_TRY_KEY", "valueFrom": {"secretKeyRef": {"name": "svc-try", "key": "key"}}}
    found = rendered(
        values={
            "image": {
                "repository": "registry.example:5000/svc",
                "digest": "sha256:" + "a" * 64,
                "pullSecrets": ["pull"],
            },
            "ingress": {"enabled": True, "className": "nginx", "hosts": ["id.example.com"], "tlsSecret": "id-example"},
            "networkPolicy": {"ingressNamespace": "ingress-nginx", "egress": [{"ports": [{"port": 8443}]}]},
            "persistence": {"size": "1Ti", "storageClass": "fast"},
            "secretEnv": [secret],
            "extraVolumes": [{"name": "ca", "secret": {"secretName": "ca"}}],
            "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca", "readOnly": True}],
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "dedicated", "operator": "Exists"}],
            "podAnnotations": {"a": "b"},
            "podLabels": {"team": "risk"},
        }
    )
    objects = by_kind(found)
    (container,) = pod(found)["containers"]
    assert container["image"] == "registry.example:5000/svc@sha256:" + "a" * 64
    assert secret in container["env"]
    assert container["volumeMounts"][-1]["name"] == pod(found)["volumes"][-1]["name"] == "ca"
    assert (pod(found)["nodeSelector"], pod(found)["imagePullSecrets"]) == ({"disk": "ssd"}, [{"name": "pull"}])
    (rule,) = objects["Ingress"]["spec"]["rules"]
    assert rule["host"] == "id.example.com"
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert backend["name"] == objects["Service"]["metadata"]["name"]
    assert backend["port"]["name"] in {port["name"] for port in objects["Service"]["spec"]["ports"]}
    assert objects["Ingress"]["spec"]["tls"] == [{"secretName": "id-example", "hosts": ["id.example.com"]}]
    clients, _ = objects["NetworkPolicy"]["spec"]["ingress"]
    (peer,) = clients["from"]
    assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "ingress-nginx"}
    assert objects["NetworkPolicy"]["spec"]["egress"][-1] == {"ports": [{"port": 8443}]}
    (claim,) = objects["StatefulSet"]["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "fast"
    assert objects["StatefulSet"]["spec"]["template"]["metadata"]["labels"]["team"] == "risk"


@needs_helm
@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (("settings.regoin=eu",), "regoin"),
        (("settings.map_gib=20",), "the store has to be full before the disk is"),
        (("postgresql.enabled=true", "settings.workers=2"), "raise postgresql.nodes"),
        (("postgresql.enabled=true", "postgresql.cluster.create=false"), "postgresql.url: name the database"),
        (
            ("postgresql.enabled=true", "postgresql.url=postgresql://svc@db/svc"),
            "set postgresql.cluster.create to false",
        ),
        (("ingress.enabled=true",), "ingress.hosts: name the host"),
    ],
)
def test_helm_refuses_wrong_values_and_says_what_to_do(sets: tuple[str, ...], message: str):
    done = helm(*("template", "svc", str(chart.CHART), *KUBERNETES), *(f"--set={one}" for one in sets))
    assert done.returncode != 0
    assert message in done.stderr


# What needs no helm

DEFAULTS = yaml.safe_load((chart.CHART / "values.yaml").read_text())
SCHEMA = json.loads((chart.CHART / "values.schema.json").read_text())


@pytest.mark.parametrize("name", chart.GENERATED)
def test_what_is_generated_of_the_chart_is_up_to_date(name: str):
    assert (chart.CHART / name).read_text() == chart.GENERATED[name](), "it is out of date: make reference"


def leaves(tree: dict[str, Any], path: str = "") -> list[str]:
    found: list[str] = []
    for name, part in tree.items():
        found += leaves(part, f"{path}{name}.") if isinstance(part, dict) and part else [path + name]
    return found


def test_every_value_has_a_comment_and_is_in_the_schema():
    explained = {value.path for value in chart.values()}
    whole = {"postgresql.cluster.parameters", "postgresql.cluster.resources", "resources"}
    for leaf in leaves(DEFAULTS):
        assert leaf in explained or any(leaf.startswith(path + ".") for path in whole & explained), leaf
        at = SCHEMA
        for name in leaf.split("."):
            at = at.get("properties", {}).get(name, {})
            assert at, f"{leaf} is not in the schema"
            if leaf.startswith(tuple(whole)):
                break
    jsonschema.validate(DEFAULTS, SCHEMA)


def test_the_values_of_the_readme_are_valid():
    for block in (chart.CHART / "README.md").read_text().split("```yaml\n")[1:]:
        jsonschema.validate(yaml.safe_load(block.partition("```")[0]), SCHEMA)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"replicaCount": 2}, "'replicaCount' was unexpected"),
        ({"settings": {"regoin": "eu"}}, "'regoin' was unexpected"),
        ({"settings": {"store": "postgresql://db/svc"}}, "'store' was unexpected"),
        ({"settings": {"trusted_proxies": [{"a": 1}]}}, "is not of type"),
        ({"postgresql": {"url": "postgresql://svc:secret@db/svc"}}, "does not match"),
        ({"postgresql": {"nodes": 0}}, "less than the minimum"),
        ({"secretEnv": [{"name": "SVC_TRY_KEY", "value": "secret"}]}, "'valueFrom' is a required property"),
        ({"persistence": {"size": "20"}}, "does not match"),
        ({"terminationGracePeriodSeconds": 10}, "less than the minimum"),
        ({"init": {"keysFile": "/tmp/keys.json"}}, "does not match"),
        ({"image": {"digest": "latest"}}, "does not match"),
        ({"service": {"type": "External"}}, "is not one of"),
    ],
)
def test_the_schema_refuses_wrong_values(values: dict[str, Any], message: str):
    problems = [error.message for error in jsonschema.Draft7Validator(SCHEMA).iter_errors(values)]
    assert any(message in problem for problem in problems), problems
