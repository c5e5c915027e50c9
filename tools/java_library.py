"""Builds the client library for Java with the JDK alone: `python -m tools.java_library FOLDER` puts it, its sources and
its documentation into the Maven repository `FOLDER/maven`. Says so, and does nothing, where there is no JDK. Two builds
with one JDK are equal byte by byte.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.archives import archive, below, of_maven, write
from tools.versions import version

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "clients" / "java"
ARTIFACT = "svc-client"
LEAST_JAVA = 11
_MANIFEST = b"Manifest-Version: 1.0\r\nAutomatic-Module-Name: svc.visitor.client\r\n\r\n"


def missing() -> str | None:
    """Why nothing can be built here; `None` where it can."""
    return next((f"there is no {name}" for name in ("javac", "javadoc", "java") if shutil.which(name) is None), None)


def sources(kind: str) -> list[Path]:
    """Those of `main` or of `test`."""
    return sorted((PACKAGE / "src" / kind / "java").rglob("*.java"))


def compile_to(folder: Path, *files: Path, classes: Path | None = None) -> None:
    """Compile sources into a folder, beside classes that are there. Raises `subprocess.CalledProcessError` where they
    are at fault.
    """
    command = ["javac", "--release", str(LEAST_JAVA), "-encoding", "UTF-8", "-Xlint:all", "-Werror", "-d", str(folder)]
    command += ["-cp", str(classes)] if classes else []
    subprocess.run([*command, *map(str, files)], check=True, capture_output=True, text=True)


def _documented(folder: Path) -> None:
    quiet = [
        "-quiet",
        "-notimestamp",
        "-Xdoclint:all,-missing",
        "-Werror",
        "-encoding",
        "UTF-8",
        "-docencoding",
        "UTF-8",
    ]
    command = ["javadoc", *quiet, "--release", str(LEAST_JAVA), "-d", str(folder), *map(str, sources("main"))]
    subprocess.run(command, check=True, capture_output=True, text=True)


def published() -> dict[str, bytes]:
    """Path in a Maven repository -> content, with their sums. Raises as `compile_to`."""
    texts = [("META-INF/LICENSE", (PACKAGE / "LICENSE").read_bytes()), ("META-INF/MANIFEST.MF", _MANIFEST)]
    with tempfile.TemporaryDirectory() as made:
        classes, pages = Path(made, "classes"), Path(made, "pages")
        compile_to(classes, *sources("main"))
        _documented(pages)
        files = {
            ".jar": archive([*below(classes), *texts]),
            "-sources.jar": archive([*below(PACKAGE / "src" / "main" / "java"), *texts]),
            "-javadoc.jar": archive([*below(pages), *texts]),
            ".pom": (PACKAGE / "pom.xml").read_bytes(),
        }
    found: dict[str, bytes] = {}
    for end, content in files.items():
        found |= of_maven(ARTIFACT, version(), end, content)
    return found


def main(folder: str) -> int:
    """Build; 0 also where that is impossible here, 1 where the sources are at fault."""
    reason = missing()
    if reason is not None:
        print(f"The client library for Java is left out: {reason}.")
        return 0
    try:
        made = published()
    except subprocess.CalledProcessError as error:
        print(error.stdout, error.stderr)
        return 1
    write(Path(folder) / "maven", made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
