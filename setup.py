"""Building the package: builds the web SDK, the pages and the documentation site, and lays the renderer of the API
reference beside the page's own files.

Swagger UI comes from a package of the registry that is pinned for building alone (docs/adr/0010). Its files are built
into the wheel, compressed, and are not in the repository. The web SDK is built where its sources are and npm can be had
(docs/adr/0034), the documentation where its pages are (docs/adr/0054).
"""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED_BY = "drf-spectacular-sidecar"
COMPRESSED = ("swagger-ui-bundle.js", "swagger-ui.css")
LICENSES = ("LICENSE", "swagger-ui-bundle.js.LICENSE.txt")
PAGE = Path("svc", "http", "page")


class BuildWithPages(build_py):
    """`build_py`, the web SDK with its pages, and the renderer: into the wheel. An editable installation gets the
    renderer in its checkout.
    """

    def run(self) -> None:
        """Build the package, then write the renderer's files, compressed ones with the same bytes at each build."""
        if not self.editable_mode and Path("web").is_dir():  # a checkout builds them by `make web`
            subprocess.run([sys.executable, "-m", "tools.web"], check=True)
        if not self.editable_mode and Path("docs").is_dir():  # by `make docs`
            subprocess.run([sys.executable, "-m", "tools.docs"], check=True)
        super().run()
        folder = PAGE if self.editable_mode else Path(self.build_lib) / PAGE
        folder.mkdir(parents=True, exist_ok=True)
        for name in COMPRESSED:
            content = shipped(f"swagger-ui-dist/{name}").read_bytes()
            (folder / f"{name}.gz").write_bytes(gzip.compress(content, mtime=0))
        (folder / "LICENSES.txt").write_text(licenses(), encoding="utf-8")


def shipped(ending: str) -> Path:
    """Where a file of the package is, found without importing it."""
    (found,) = [file for file in files(SHIPPED_BY) or () if file.as_posix().endswith(ending)]
    return Path(str(found.locate()))


def licenses() -> str:
    """The renderer with its version, and its licenses, in the form of those that `make web` writes."""
    bundle = shipped("swagger-ui-dist/swagger-ui-bundle.js").read_text(encoding="utf-8")
    (version,) = re.findall(r'\{PACKAGE_VERSION:"([0-9.]+)"', bundle)
    texts = [shipped(f"swagger-ui-dist/{name}").read_text(encoding="utf-8").strip() for name in LICENSES]
    head = f"The reference of the API is part of svc (Apache-2.0) and contains:\n\n{'-' * 78}\n"
    return "\n\n".join([head, f"swagger-ui-dist {version} (Apache-2.0)", *texts]) + "\n"


def alone(text: str) -> str:
    """A page in Markdown as it can be read without the files beside it: without their pictures, and with the texts of
    links to them.
    """
    text = re.sub(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n\n", "", text, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]*)\]\((?!https?:|#)[^)]*\)", r"\1", text)


setup(
    cmdclass={"build_py": BuildWithPages},
    long_description=alone(Path("README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
)
