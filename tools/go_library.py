"""The client library for Go as a module proxy in a folder: `python -m tools.go_library FOLDER` writes `FOLDER/go`, from
which `GOPROXY=file://...` takes it. Needs no Go, and two builds are equal byte by byte.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from tools.archives import archive, write
from tools.packages import GO_HOST
from tools.versions import version

ROOT = Path(__file__).parents[1]
MODULE = ROOT / "clients" / "go"
PATH = f"{GO_HOST}/svc"
INSTALLED = Path("/usr/local/go/bin/go")
"""Where Go's own archive is unpacked."""


def find_go() -> str | None:
    """The machine's Go."""
    return shutil.which("go") or (str(INSTALLED) if INSTALLED.exists() else None)


def environment(proxy: str = "off") -> dict[str, str]:
    """For a Go that asks nothing of the network, and keeps what it compiles beside the virtual environment."""
    return {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOCACHE": str(ROOT / ".venv" / "go"),
        "GOFLAGS": "-mod=mod -modcacherw",
        "GONOSUMDB": GO_HOST,
        "GOPROXY": proxy,
        "GOTELEMETRY": "off",
        "GOTOOLCHAIN": "local",
    }


def tag() -> str:
    """The version as Go writes it, `v1.2.3`."""
    return f"v{version()}"


def published() -> dict[str, bytes]:
    """Path below the proxy -> content, for one version of the module."""
    sources = [path for path in MODULE.glob("*.go") if not path.name.endswith("_test.go")]
    texts = [MODULE / name for name in ("go.mod", "LICENSE", "README.md", "CHANGELOG.md")]
    name = tag()
    content = archive((f"{PATH}@{name}/{path.name}", path.read_bytes()) for path in (*sources, *texts))
    return {
        f"{PATH}/@v/list": f"{name}\n".encode(),
        f"{PATH}/@v/{name}.info": json.dumps({"Version": name, "Time": "2026-01-01T00:00:00Z"}).encode(),
        f"{PATH}/@v/{name}.mod": (MODULE / "go.mod").read_bytes(),
        f"{PATH}/@v/{name}.zip": content,
    }


if __name__ == "__main__":
    write(Path(sys.argv[1]) / "go", published())
