"""Builds the Android SDK: `python -m tools.android [FOLDER]` compiles and tests it with Maven, and puts into FOLDER a
Maven repository with the AAR, the coroutines' jar, sources and POMs. Says so, and does nothing, where Maven or Java is
missing.

What may live here: when Maven is called, and what an AAR is made of. Two builds of the same sources are equal byte by
byte.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from tools.archives import archive, below, of_maven, write
from tools.packages import HOMEPAGE, MAVEN_GROUP
from tools.versions import version

ROOT = Path(__file__).parents[1]
ANDROID = ROOT / "clients" / "android"
VERSION = version()
GROUP = MAVEN_GROUP
LEAST_API, COMPILED_API = 24, 35
KOTLIN, COROUTINES, OKHTTP = "2.0.21", "1.8.1", "4.12.0"
BUILT = ANDROID / "target" / "built"
"""Holds the digest of the sources that were compiled, and passed the tests that every change runs."""
SHRINKERS = ANDROID / "target" / "shrinkers"
"""R8 and ProGuard, each with its libraries, for the test of the rules in the package."""
LARGEST_AAR = 200_000
ABOUT = "Android SDK of svc, the open, self-hosted visitor identification service"
ABOUT_KTX = "Coroutines for the Android SDK of svc"
ABOUT_OKHTTP = "An interceptor for OkHttp that gives requests to your own server the request_id of svc"
ABOUT_TESTING = "A fake of the Android SDK of svc, for tests of apps"
_LICENSE = [("META-INF/LICENSE", (ANDROID / "LICENSE").read_bytes())]
_METADATA = f"""aarFormatVersion=1.0
aarMetadataVersion=1.0
minCompileSdk={LEAST_API}
minCompileSdkExtension=0
minAndroidGradlePluginVersion=7.0.0
"""


def missing() -> str | None:
    """Why nothing can be built here; `None` where it can."""
    for program in ("mvn", "java"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    return None


def digest() -> str:
    """Of the sources and vectors."""
    found = hashlib.sha256()
    bridge = ROOT / "clients" / "react-native" / "android"
    vectors = (ROOT / "clients" / "vectors").glob("*.json")
    for path in sorted([*_sources(ANDROID), *_sources(bridge), *vectors]):
        found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def _sources(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "target"]
        yield from (Path(place, name) for name in names)


def maven(*arguments: str, offline: bool) -> subprocess.CompletedProcess[str]:
    """One run, in one thread."""
    command = ["mvn", "--batch-mode", "--quiet", *(["--offline"] if offline else []), *arguments]
    return subprocess.run(command, cwd=ANDROID, capture_output=True, text=True, check=False)


def build(*, offline: bool, everything: bool) -> str | None:
    """Compile and test, unless that was done with these sources; without `everything` all but what takes long: tests on
    Android's own code, limits on real threads, dex. Returns why it failed.
    """
    wanted = f"{digest()} {'all' if everything else 'quick'}"
    if BUILT.exists() and BUILT.read_text() in (wanted, wanted.replace("quick", "all")):
        return None
    for part in ("core", "android", "ktx"):
        # A class that no source makes any more would be published.
        shutil.rmtree(ANDROID / part / "target", ignore_errors=True)
    left_out = ("PhoneTest", "BridgeTest", "ShrunkApp", "LimitsTest", "DexTest")
    named = f"-Dtest={','.join(f'!{name}' for name in left_out)}"
    chosen = () if everything else (named, "-Dsurefire.failIfNoSpecifiedTests=false")
    done = maven("test", *chosen, offline=offline)
    if done.returncode != 0:
        return done.stdout + done.stderr
    BUILT.parent.mkdir(exist_ok=True)
    BUILT.write_text(wanted)
    return None


def shrinkers(*, offline: bool) -> str | None:
    """Put what apps are shrunk with into `SHRINKERS`. Returns why that failed."""
    chosen = ("-f", "shrinkers/pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={SHRINKERS}")
    done = maven(*chosen, offline=offline)
    return None if done.returncode == 0 else done.stdout + done.stderr


def is_unresolved(reason: str) -> bool:
    """Whether a build without network failed since something was never fetched here."""
    return "in offline mode" in reason or "Cannot access" in reason


# What is published


def classes() -> bytes:
    """The classes of both parts, as the tests packed them and converted them to dex."""
    return archive(below(ANDROID / "android" / "target" / "packed"))


def aar() -> bytes:
    """The archive that an app depends on."""
    return archive(
        [
            ("AndroidManifest.xml", (ANDROID / "android" / "AndroidManifest.xml").read_bytes()),
            ("classes.jar", classes()),
            ("R.txt", b""),
            ("proguard.txt", (ANDROID / "android" / "proguard.txt").read_bytes()),
            ("LICENSE", (ANDROID / "LICENSE").read_bytes()),
            ("META-INF/com/android/build/gradle/aar-metadata.properties", _METADATA.encode()),
        ]
    )


def pom(artifact: str, packaging: str, description: str, dependencies: dict[str, str]) -> bytes:
    """`dependencies`: `group:artifact` -> version."""
    listed = "".join(
        f"    <dependency>\n      <groupId>{group}</groupId>\n      <artifactId>{name}</artifactId>\n"
        f"      <version>{version}</version>\n      <scope>compile</scope>\n{kind}    </dependency>\n"
        for coordinates, version in dependencies.items()
        for group, _, name in [coordinates.partition(":")]
        for kind in ["      <type>aar</type>\n" if group == GROUP else ""]
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{GROUP}</groupId>
  <artifactId>{artifact}</artifactId>
  <version>{VERSION}</version>
  <packaging>{packaging}</packaging>
  <name>{artifact}</name>
  <description>{escape(description)}</description>
  <url>{HOMEPAGE}</url>
  <licenses>
    <license>
      <name>Apache-2.0</name>
      <url>https://www.apache.org/licenses/LICENSE-2.0.txt</url>
      <distribution>repo</distribution>
    </license>
  </licenses>
  <developers>
    <developer>
      <name>The developers of svc</name>
      <url>{HOMEPAGE}</url>
    </developer>
  </developers>
  <scm>
    <connection>scm:git:{HOMEPAGE}/svc.git</connection>
    <url>{HOMEPAGE}</url>
  </scm>
  <dependencies>
{listed}  </dependencies>
</project>
""".encode()


def _part(path: str) -> str:
    """The artifact that a class of the last module is published in."""
    place = path.rpartition("/")[0]
    return {"svc/visitor/okhttp": "okhttp", "svc/visitor/testing": "testing"}.get(place, "ktx")


def published() -> dict[str, bytes]:
    """Path in a Maven repository -> content, with their sums."""
    stdlib = {"org.jetbrains.kotlin:kotlin-stdlib": KOTLIN}
    sdk = {**stdlib, f"{GROUP}:svc-android": VERSION}
    main = [ANDROID / part / "src" / "main" / "kotlin" for part in ("core", "android")]
    files = {
        ("svc-android", ".aar"): aar(),
        ("svc-android", "-sources.jar"): archive([*below(*main), *_LICENSE]),
        ("svc-android", ".pom"): pom("svc-android", "aar", ABOUT, stdlib),
    }
    added = list(below(ANDROID / "ktx" / "target" / "classes"))
    for part, about, more in (
        ("ktx", ABOUT_KTX, {"org.jetbrains.kotlinx:kotlinx-coroutines-core": COROUTINES}),
        ("okhttp", ABOUT_OKHTTP, {"com.squareup.okhttp3:okhttp": OKHTTP}),
        ("testing", ABOUT_TESTING, {}),
    ):
        artifact = f"svc-android-{part}"
        mine = [one for one in added if _part(one[0]) == part]
        files[artifact, ".jar"] = archive([*mine, *_LICENSE])
        files[artifact, "-sources.jar"] = archive([*below(ANDROID / part / "src" / "main" / "kotlin"), *_LICENSE])
        files[artifact, ".pom"] = pom(artifact, "jar", about, {**sdk, **more})
    found: dict[str, bytes] = {}
    for (artifact, end), content in files.items():
        found |= of_maven(artifact, VERSION, end, content)
    return found


def main(folder: str | None = None) -> int:
    """Build; 0 also where that is impossible here, 1 where the sources are at fault."""
    reason = missing()
    if reason is not None:
        print(f"The Android SDK is left out: {reason}.")
        return 0
    reason = build(offline=False, everything=True) or shrinkers(offline=False)
    if reason is not None:
        print(reason)
        return 1
    if folder is not None:
        write(Path(folder) / "maven", published())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
