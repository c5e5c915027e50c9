"""Temporary files: where none can be written, as in a container whose root is read-only, a command says what to do, and
the deployments of `ops/` have a folder for them.
"""

from __future__ import annotations

import ast
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from svc.features.checks.invariants import repeated
from svc.kernel.values.errors import OperatorError

ROOT = Path(__file__).parents[1]
OPS = ROOT / "ops"
MAKERS = {
    *("NamedTemporaryFile", "SpooledTemporaryFile", "TemporaryDirectory", "TemporaryFile", "mkdtemp", "mkstemp"),
}


def calls() -> Iterator[tuple[str, ast.Call]]:
    """What makes a temporary file or folder: where, and how."""
    for package in ("svc", "svc_replay"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in MAKERS:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def test_every_temporary_file_has_its_folder_named():
    """`temporary_folder`, or a folder of whom it is for: Python's own error tells nobody what to do."""
    found = list(calls())
    assert found
    assert [where for where, call in found if not any(word.arg == "dir" for word in call.keywords)] == []


def test_where_no_temporary_file_can_be_written_the_line_names_the_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc/not-there"])
    with pytest.raises(OperatorError, match=r"\['/proc/not-there'\]; name one that may be written with TMPDIR$"):
        list(repeated([bytes(16)]))


def containers() -> Iterator[tuple[str, set[str]]]:
    """Each container of `ops/` whose root is read-only, with the folders that are memory or of its pod alone."""
    for file in OPS.glob("compose*.yaml"):
        for name, service in yaml.safe_load(file.read_text())["services"].items():
            if service.get("read_only"):
                yield f"{file.name}: {name}", {place.partition(":")[0] for place in service.get("tmpfs", [])}
    for file in OPS.glob("kubernetes*/*.yaml"):
        spec: dict[str, Any] = yaml.safe_load(file.read_text()).get("spec", {})
        pod = spec.get("template", {}).get("spec", {})
        empty = {volume["name"] for volume in pod.get("volumes", []) if "emptyDir" in volume}
        for container in pod.get("containers", []):
            if container["securityContext"]["readOnlyRootFilesystem"]:
                mounts = container["volumeMounts"]
                yield file.parent.name, {mount["mountPath"] for mount in mounts if mount["name"] in empty}
    guide = (ROOT / "docs" / "containers.md").read_text()
    for line in re.findall(r"^docker run .*--read-only.*$", guide, re.MULTILINE):
        yield "containers.md", set(re.findall(r"--tmpfs (\S+)", line))


def test_a_container_with_a_read_only_root_has_a_folder_for_temporary_files():
    """`svc doctor`, `svc check`, full verification of a backup and `svc replay` write some."""
    found = list(containers())
    assert len(found) == 7
    assert [name for name, folders in found if "/tmp" not in folders] == []
