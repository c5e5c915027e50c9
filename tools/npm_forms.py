"""Compiles a package for npm in two forms, ES modules and CommonJS, by the compiler of `web/`.

What may live here: the forms. Which packages there are, `tools.node_client` says.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools.web import WEB, Node

COMPILER = WEB / "node_modules" / "typescript" / "bin" / "tsc"
FORMS = {"esm": "tsconfig.json", "cjs": "tsconfig.cjs.json"}
"""Folder -> how it is compiled: ES modules, and CommonJS for `require`."""


def compile_forms(node: Node, package: Path, folder: Path) -> None:
    """Compile a package into a folder. Raises `subprocess.CalledProcessError` where the sources are at fault."""
    for name, described in FORMS.items():
        command = [node.node, COMPILER, "-p", package / described, "--outDir", folder / name]
        subprocess.run(command, env=node.environment, check=True)
    (folder / "cjs" / "package.json").write_text('{ "type": "commonjs" }\n')
