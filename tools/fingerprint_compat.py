"""Compiles the package for code that was written for Fingerprint, by the compiler of `web/` and the web SDK's types.

What may live here: where it is. `tools.node_client` packs it with the others.
"""

from __future__ import annotations

from pathlib import Path

from tools.npm_forms import compile_forms
from tools.web import ROOT, Node

PACKAGE = ROOT / "clients" / "fingerprint-compat"


def compile_to(node: Node, folder: Path) -> None:
    """Compile the package into a folder. Raises `subprocess.CalledProcessError` where the sources are at fault, or the
    web SDK was not built.
    """
    compile_forms(node, PACKAGE, folder)
