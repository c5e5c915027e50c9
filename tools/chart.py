"""What of the Helm chart is generated: `python -m tools.chart` writes the table of values in its README from the
comments of `values.yaml`, and the settings of its schema from the program's.

What may live here: how the two are derived. What the values mean is in `values.yaml` and the templates.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from svc.kernel.config import Config
from svc.kernel.config_loading import LISTS

CHART = Path(__file__).parents[1] / "ops" / "helm" / "svc"
SET_BY_CHART = frozenset(
    {"bind", "metrics_bind", "store", "store_password_file", "pepper_file", "tls_certfile", "tls_keyfile"}
)
"""Settings that no value may have: what the templates say themselves, and TLS, which ends before the pods."""
_KEY = re.compile(r"( *)([A-Za-z_]+):(?: |$)")
_TABLE = re.compile(r"^\| value \|.*\Z", re.MULTILINE | re.DOTALL)
_SETTINGS = re.compile(r'^    "settings": \{.*?^    \},\n', re.MULTILINE | re.DOTALL)


class Value(NamedTuple):
    """One row of the table."""

    path: str
    """As `--set` has it, such as `image.tag`."""
    meaning: str
    default: Any


def packaged() -> bytes:
    """The chart as `helm install` takes it: a tar archive with one folder, without what `.helmignore` leaves out."""
    ignored = {".helmignore", *(CHART / ".helmignore").read_text().split()}
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for path in sorted(CHART.rglob("*")):
            name = path.relative_to(CHART)
            if path.is_file() and str(name) not in ignored:
                archive.add(path, f"{CHART.name}/{name}")
    return made.getvalue()


def values() -> list[Value]:
    """Those with a comment, in their order. What is below one without comments of its own is part of its default."""
    text = (CHART / "values.yaml").read_text()
    defaults, path, comment, found = yaml.safe_load(text), list[str](), list[str](), list[Value]()
    for line in text.splitlines():
        words = line.strip()
        key = _KEY.match(line)
        if words.startswith("#"):
            comment.append(words.removeprefix("#").strip())
        elif key is not None:
            path = [*path[: len(key[1]) // 2], key[2]]
            if comment:
                found.append(Value(".".join(path), " ".join(comment), reduce(getitem, path, defaults)))
            comment = []
        else:
            comment = []
    return found


def _table() -> str:
    rows, all_of_them = ["| value | default | |", "|---|---|---|"], values()
    for path, meaning, default in all_of_them:
        has_parts = any(other.path.startswith(path + ".") for other in all_of_them)
        shown = "" if has_parts else f"`{json.dumps(default)}`"
        rows.append(f"| `{path}` | {shown} | {meaning} |")
    return "\n".join(rows) + "\n"


def readme() -> str:
    """The README of the chart with its table as it should be."""
    return _TABLE.sub(lambda _: _table(), (CHART / "README.md").read_text(), count=1)


def schema() -> str:
    """The schema of the chart with the settings that a value may have."""
    names = {
        name: "list" if name in LISTS else "setting"
        for name in sorted(Config.__struct_fields__)
        if name not in SET_BY_CHART
    }
    lines = [f'        "{name}": {{"$ref": "#/definitions/{kind}"}}' for name, kind in names.items()]
    block = (
        '    "settings": {\n      "type": "object",\n      "additionalProperties": false,\n      "properties": {\n'
        + ",\n".join(lines)
        + "\n      }\n    },\n"
    )
    return _SETTINGS.sub(lambda _: block, (CHART / "values.schema.json").read_text(), count=1)


GENERATED = {"README.md": readme, "values.schema.json": schema}

if __name__ == "__main__":
    for name, made in GENERATED.items():
        (CHART / name).write_text(made())
