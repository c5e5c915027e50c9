"""Builds the client library for Node.js with the compiler of `web/`: `python -m tools.node_client [FOLDER]`.

It also builds the package for code that was written for Fingerprint, and puts the npm packages into FOLDER: these two,
those of the web SDK, which `tools.web` builds, and the React Native bridge, as `tools.react_native` stages it. Says so,
and does nothing, where there is no npm.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tools import react_native
from tools.web import INSTALLED, ROOT, WEB, Node, find_node, install

PACKAGE = ROOT / "clients" / "node"
FINGERPRINT_COMPAT = ROOT / "clients" / "fingerprint-compat"
WEB_PACKAGES = ("sdk", "react", "vue", "svelte")
"""Of the web SDK: folders of `web`."""
PACKAGES = (PACKAGE, FINGERPRINT_COMPAT, *(WEB / name for name in WEB_PACKAGES), react_native.PACKAGE)
"""What a developer installs."""
COMPILER = WEB / "node_modules" / "typescript" / "bin" / "tsc"
FORMS = {"esm": "tsconfig.json", "cjs": "tsconfig.cjs.json"}
"""Folder -> how it is compiled: ES modules, and CommonJS for `require`."""


def compiler() -> Node | str:
    """The node that can compile, or why there is none."""
    node = find_node()
    if node is None:
        return "there is no node with npm"
    return install(node, WEB, INSTALLED) or node


def compile_to(node: Node, folder: Path, package: Path = PACKAGE) -> None:
    """Compile a package into a folder, in every form. Raises `subprocess.CalledProcessError` where the sources are at
    fault, or the web SDK, whose types one package needs, was not built.
    """
    for name, described in FORMS.items():
        command = [node.node, COMPILER, "-p", package / described, "--outDir", folder / name]
        subprocess.run(command, env=node.environment, check=True)
    (folder / "cjs" / "package.json").write_text('{ "type": "commonjs" }\n')


def pack(node: Node, package: Path, folder: Path) -> None:
    """Put a built package into a folder. Raises `subprocess.CalledProcessError` where npm refuses it."""
    command = [*node.npm, "pack", "--silent", "--pack-destination", folder.resolve()]
    subprocess.run(command, cwd=package, env=node.environment, check=True, stdout=subprocess.DEVNULL)


def main(folder: str | None = None) -> int:
    """Build; 0 also where that is impossible here."""
    node = compiler()
    if isinstance(node, str):
        print(f"The client library for Node.js is left out: {node}.")
        return 0
    for package in (PACKAGE, FINGERPRINT_COMPAT):
        compile_to(node, package / "dist", package)
    if folder is not None:
        with tempfile.TemporaryDirectory() as made:
            staged = Path(made, "react-native")
            react_native.stage(node, staged)
            for package in PACKAGES:
                pack(node, staged if package == react_native.PACKAGE else package, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
