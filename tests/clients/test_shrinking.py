"""The rules for shrinkers that the Android SDK brings: an app that R8 or ProGuard shrank together with the SDK runs on
Android's code and identifies at a running service, and public classes keep their names.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.support.live import live_service
from tools import android

pytestmark = [pytest.mark.slow(60), pytest.mark.long]

BUILT = android.ANDROID / "android" / "target"
APP = "com/example/shop/Till"
KEPT = "-keep class com.example.shop.Till { public *; }\n-dontnote **\n"
"""What an app's own build keeps of it."""
RULES = android.ANDROID / "android" / "proguard.txt"
SHRINKERS = ("r8", "proguard")


@pytest.fixture(scope="module")
def class_path() -> list[str]:
    """Of the tests on Android's code, without the SDK's own classes."""
    failed = android.missing() or android.build(offline=True, everything=False) or android.shrinkers(offline=True)
    if failed is not None and ("there is no" in failed or android.is_unresolved(failed)):
        pytest.skip("nothing can be shrunk here: `make android` fetches what it takes, with Maven and Java")
    assert failed is None, failed
    paths = (BUILT / "classpath.txt").read_text().split(os.pathsep)
    return [path for path in paths if not path.rstrip("/").endswith("target/classes")]


def named(class_path: list[str], start: str) -> str:
    (path,) = (path for path in class_path if Path(path).name.startswith(start))
    return path


def shrunk(shrinker: str, class_path: list[str], folder: Path, rules: str) -> Path:
    """The app, the SDK and Kotlin's library in one archive."""
    sdk, app, made, written = (folder / name for name in ("sdk.jar", "app.jar", "made.jar", "rules.txt"))
    sdk.write_bytes(android.classes())
    with zipfile.ZipFile(app, "w") as archive:
        for path in (BUILT / "test-classes" / APP).parent.glob("Till*.class"):
            archive.write(path, f"{APP.rpartition('/')[0]}/{path.name}")
    kotlin, notes = named(class_path, "kotlin-stdlib-"), named(class_path, "annotations-13.")
    system, home = named(class_path, "android-all-"), Path(shutil.which("java") or "").resolve().parents[1]
    given = [str(sdk), str(app), kotlin, notes]
    if shrinker == "r8":
        written.write_text(KEPT + rules)
        tool = [str(next(android.SHRINKERS.glob("r8-*.jar")))]
        command = ["com.android.tools.r8.R8", "--classfile", "--release", "--lib", system, "--lib", str(home)]
        command += ["--pg-conf", str(written), "--output", str(made), *given]
    else:
        tool = [str(path) for path in android.SHRINKERS.glob("*.jar") if not path.name.startswith("r8-")]
        jars = "".join(f"-injars '{path}'(!META-INF/**)\n" for path in given)
        libraries = f"-libraryjars '{system}'\n-libraryjars '{home}/jmods/java.base.jmod'(!**.jar;!module-info.class)\n"
        written.write_text(f"{jars}{libraries}-outjars '{made}'\n-dontwarn kotlin.**\n{KEPT}{rules}")
        command = ["proguard.ProGuard", f"@{written}"]
    java = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx2g", "-cp", os.pathsep.join(tool)]
    done = subprocess.run([*java, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def public_names(archive: Path) -> set[str]:
    """Of the SDK's classes that apps name."""
    with zipfile.ZipFile(archive) as opened:
        return {name for name in opened.namelist() if name.startswith("svc/visitor/Svc") and "$Companion" not in name}


async def identified(archives: list[Path], class_path: list[str], folder: Path) -> tuple[bool, set[str]]:
    """Whether an app in these archives was identified as the call said, and the names of all fields of its report."""
    async with live_service(folder / "data") as live:
        key = live.issue(platforms=("android",), allowed_origins=())[1]
        reported = folder / "reported"
        given = [f"-Dendpoint={live.url}", f"-Dkey={key}", f"-Dreported={reported}"]
        path = os.pathsep.join([*map(str, archives), *class_path])
        command = ["java", "-XX:TieredStopAtLevel=1", *given, "-cp", path, "org.junit.runner.JUnitCore"]
        done = await trio.run_process(
            [*command, "svc.visitor.ShrunkApp"], capture_stdout=True, capture_stderr=True, check=False, cwd=folder
        )
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
        seen = json.loads(reported.read_text())
        ((request_id, event),) = live.events()
        headers = {"x-api-key": live.issue("secret")[1]}
        document = (await live.client.get(f"/api/v1/events/{request_id}", headers=headers)).json()["document"]
    is_right = (seen["request_id"], event.sdk_platform, event.action) == (str(request_id), "android", "log_in")
    return is_right, set(names(document["signals"]))


def names(part: Any, prefix: str = "") -> Iterator[str]:
    """Of members, with those that they are in."""
    for name, value in part.items():
        yield from names(value, f"{prefix}{name}.") if isinstance(value, dict) else (prefix + name,)


@pytest.mark.parametrize("shrinker", SHRINKERS)
async def test_an_app_that_was_shrunk_identifies_and_its_report_has_every_field(
    shrinker: str, class_path: list[str], tmp_path: Path
):
    made = shrunk(shrinker, class_path, tmp_path, RULES.read_text())
    assert public_names(made) == public_names(tmp_path / "sdk.jar")
    with zipfile.ZipFile(made) as opened:
        assert "svc/visitor/core/Engine.class" not in opened.namelist(), "it was not shrunk"
    (tmp_path / "whole").mkdir()
    whole = await identified([tmp_path / "sdk.jar", tmp_path / "app.jar"], class_path, tmp_path / "whole")
    assert whole[0]
    assert whole[1] >= {"android_id", "client_token", "model", "app.package", "screen.width", "settings.clock_24"}
    assert await identified([made], class_path, tmp_path) == whole


@pytest.mark.parametrize("shrinker", SHRINKERS)
def test_without_the_rules_public_classes_have_other_names(shrinker: str, class_path: list[str], tmp_path: Path):
    """What a bridge asks for by name, and what a trace of a crash names, would not be found."""
    assert public_names(shrunk(shrinker, class_path, tmp_path, "")) == set()
