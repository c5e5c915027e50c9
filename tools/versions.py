"""One version for everything that a release is made of (ADR 165): `python -m tools.versions` lists the places that say
another one than `pyproject.toml`; with a version, as in `make version V=1.2.0`, it is written into all of them.

What may live here: where a version is written, and what a changelog says of one. What an older one means, as in
"before 0.2.0", is no such place.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_ANY = r"\d+\.\d+\.\d+"
_VERSION = re.compile(_ANY)
PLACES = {
    "pyproject.toml": ('\nversion = "{}"\n',),
    "web/sdk/package.json": ('"version": "{}"',),
    "web/react/package.json": ('"version": "{}"', '"@svc/web": "^{}"'),
    "web/vue/package.json": ('"version": "{}"', '"@svc/web": "^{}"'),
    "web/svelte/package.json": ('"version": "{}"', '"@svc/web": "^{}"'),
    "web/package-lock.json": (
        '"name": "@svc/web",\n      "version": "{}"',
        '"name": "@svc/react",\n      "version": "{}"',
        '"name": "@svc/vue",\n      "version": "{}"',
        '"name": "@svc/svelte",\n      "version": "{}"',
        '"@svc/web": "^{}"',
    ),
    "web/sdk/README.md": ("/sdk/{}/",),
    "web/sdk/test/client.test.ts": ('platform: "web", version: "{}"',),
    "clients/python/pyproject.toml": ('\nversion = "{}"\n',),
    "clients/node/package.json": ('"version": "{}"',),
    "clients/fingerprint-compat/package.json": ('"version": "{}"', '"@svc/web": "^{}"'),
    "clients/go/doc.go": ('const Version = "{}"',),
    "clients/java/pom.xml": ("<artifactId>svc-client</artifactId>\n  <version>{}</version>",),
    "clients/java/README.md": ("svc-client:{}",),
    "clients/java/src/main/java/svc/visitor/client/Client.java": ('String VERSION = "{}"',),
    "clients/android/pom.xml": ("<version>{}</version>\n  <packaging>pom</packaging>",),
    "clients/android/core/pom.xml": ("<artifactId>svc-android-parent</artifactId>\n    <version>{}</version>",),
    "clients/android/android/pom.xml": ("<artifactId>svc-android-parent</artifactId>\n    <version>{}</version>",),
    "clients/android/ktx/pom.xml": ("<artifactId>svc-android-parent</artifactId>\n    <version>{}</version>",),
    "clients/android/shrinkers/pom.xml": ("<artifactId>svc-android-shrinkers</artifactId>\n  <version>{}</version>",),
    "clients/android/sample/app/build.gradle.kts": ("svc.visitor:svc-android:{}",),
    "clients/android/android/src/main/kotlin/svc/visitor/SvcVisitor.kt": ('const val VERSION = "{}"',),
    "clients/react-native/package.json": ('"version": "{}"',),
    "clients/react-native/android/build.gradle": ("svc.visitor:svc-android:{}",),
    "clients/react-native/android/src/main/kotlin/svc/visitor/reactnative/SvcVisitorModule.kt": (
        'const val VERSION = "{}"',
    ),
    "clients/react-native/ios/SvcVisitorBridge.swift": ('static let version = "{}"',),
    "clients/ios/Sources/SvcVisitor/SvcVisitor.swift": ('static let version = "{}"',),
    "ops/helm/svc/Chart.yaml": ("\nversion: {}\n", 'appVersion: "{}"'),
    "ops/kubernetes/statefulset.yaml": ("image: svc:{}\n",),
    "ops/kubernetes-postgresql/deployment.yaml": ("image: svc:{}\n",),
    "docs/android.md": ("svc-android:{}", "svc-android-ktx:{}"),
    "docs/frontend.md": ("`/sdk/{}/...`",),
    "docs/server-libraries.md": ("svc-client:{}",),
}
"""File -> how it says the version; each form occurs at least once, and every time it does it is this one."""
CHANGELOGS = ("CHANGELOG.md", "clients/*/CHANGELOG.md", "web/*/CHANGELOG.md")
"""Those of the service and of each package, whose newest section is of this version."""


def version() -> str:
    """That of the service, by which everything else goes."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


class ChangelogError(Exception):
    """There is no section of that version."""


def section_of(text: str, wanted: str) -> str:
    """The section of a version in a changelog, without its heading. Raises `ChangelogError` where there is none."""
    found = re.search(rf"^## {re.escape(wanted)}(?: \([^)]*\))?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ChangelogError(f"CHANGELOG.md has no section {wanted}")
    return found[1].strip() + "\n"


def _said(root: Path) -> Iterator[tuple[Path, str, re.Match[str] | None]]:
    """(file, form, one time that it occurs); `None` where a form does not occur in its file."""
    for name, forms in PLACES.items():
        text = (root / name).read_text()
        for form in forms:
            found = list(re.finditer(re.escape(form).replace(r"\{\}", f"({_ANY})"), text))
            yield from ((root / name, form, one) for one in found or [None])


def differing(wanted: str, root: Path = ROOT) -> list[str]:
    """Return a line for each place that does not say this version, for each that is not there any more, and for each
    changelog that does not begin with it.
    """
    lines: list[str] = []
    for path, form, found in _said(root):
        where = path.relative_to(root)
        if found is None:
            lines.append(f"{where} has no {form.strip()!r}")
        elif found[1] != wanted:
            lines.append(f"{where} says {found[1]}")
    for path in sorted(path for pattern in CHANGELOGS for path in root.glob(pattern)):
        newest = re.search(rf"^## ({_ANY})", path.read_text(), re.MULTILINE)
        if newest is None or newest[1] != wanted:
            lines.append(f"{path.relative_to(root)} has no section of {wanted} at its top")
    return lines


def write(wanted: str, root: Path = ROOT) -> None:
    """Write this version into all places."""
    for path, form, found in list(_said(root)):
        if found is not None:
            path.write_text(path.read_text().replace(found[0], form.replace("{}", wanted)))


def main(wanted: str | None = None) -> int:
    """List the places that differ, or write a version into all of them; the status of the program."""
    if wanted is not None:
        if not _VERSION.fullmatch(wanted):
            print(f"{wanted!r} is not a version such as 1.2.0", file=sys.stderr)
            return 2
        write(wanted)
    lines = differing(wanted or version())
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
