"""Compiles the package for code that was written for Fingerprint, by the compiler of `web/` and the web SDK's types.

What may live here: the two forms in which it is compiled. `tools.node_client` packs it with the others.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools.web import ROOT, WEB, Node

PACKAGE = ROOT / "clients" / "fingerprint-compat"
COMPILER = WEB / "node_modules" / "typescript" / "bin" / "tsc"
FORMS = {"esm": "tsconfig.json", "cjs": "tsconfig.cjs.json"}
"""Folder -> how it is compiled: ES modules, and CommonJS for `require`."""


def compile_to(node: Node, folder: Path) -> None:
    """Compile the package into a folder. Raises `subprocess.CalledProcessError` where the sources are at fault, or the
    web SDK was not built.
    """
    for name, described in FORMS.items():
        command = [node.node, COMPILER, "-p", PACKAGE / described, "--outDir", folder / name]
        subprocess.run(command, env=node.environment, check=True)
    (folder / "cjs" / "package.json").write_text('{ "type": "commonjs" }\n')
