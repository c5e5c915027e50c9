"""The names of this project's packages, in the namespace of each registry: decided here and nowhere else.

What may live here: the table. A test compares each package's own description with it.
"""

from __future__ import annotations

from typing import NamedTuple


class Package(NamedTuple):
    """One package that a developer installs."""

    registry: str
    """Whose namespace the name is in: `npm`, `pypi`, `maven` or `go`."""
    folder: str
    """Below the root."""
    name: str


NPM_SCOPE = "@svc"
"""One line of an `.npmrc` binds it to a registry, so that no other is asked for any name in it."""
MAVEN_GROUP = "svc.visitor"
"""Maven Central takes a group only from the owner of its domain, and there is no top-level domain `svc`."""
HOMEPAGE = "https://svc.example"
"""Stands in the packages' descriptions for where the project will be: `.example` belongs to nobody (RFC 2606)."""
GO_HOST = "svc.internal"
"""`.internal` is reserved for private networks: no public server has a module below it."""
PACKAGES = (
    Package("pypi", ".", "svc-visitor-id"),
    Package("pypi", "clients/python", "svc-client"),
    Package("npm", "clients/fingerprint-compat", f"{NPM_SCOPE}/fingerprint-compat"),
    Package("npm", "clients/node", f"{NPM_SCOPE}/client"),
    Package("npm", "clients/react-native", f"{NPM_SCOPE}/react-native"),
    Package("npm", "web/react", f"{NPM_SCOPE}/react"),
    Package("npm", "web/svelte", f"{NPM_SCOPE}/svelte"),
    Package("npm", "web/vue", f"{NPM_SCOPE}/vue"),
    Package("npm", "web/sdk", f"{NPM_SCOPE}/web"),
    Package("go", "clients/go", f"{GO_HOST}/svc"),
    Package("maven", "clients/android", f"{MAVEN_GROUP}:svc-android"),
    Package("maven", "clients/android/ktx", f"{MAVEN_GROUP}:svc-android-ktx"),
    Package("maven", "clients/android/ktx", f"{MAVEN_GROUP}:svc-android-okhttp"),
    Package("maven", "clients/android/ktx", f"{MAVEN_GROUP}:svc-android-testing"),
    Package("maven", "clients/java", f"{MAVEN_GROUP}:svc-client"),
)
"""PyPI has no namespaces: its two names are for files and addresses alone, and no text installs them from an index."""
