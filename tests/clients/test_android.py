"""The Android SDK: compiled and tested by Maven, what is published of it, and its core against a running service."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from svc.identify.tables import DOCUMENTS
from tests.clients.vectors import cases
from tests.domain.attestation_world import chain, described, root
from tests.support.cutting_proxy import CuttingProxy
from tests.support.effort import LONG
from tests.support.live import Live, live_service
from tools import android
from tools.archives import write

pytestmark = pytest.mark.slow(45)

DEVICE = next(case for case in cases("report") if case["name"] == "android: a Pixel")["given"]["device"]
RESOURCES = Path("/usr/share/android-framework-res/framework-res.apk")
LIBRARIES = Path.home() / ".m2" / "repository" / "org" / "jetbrains" / "kotlin"
STDLIB = LIBRARIES / "kotlin-stdlib" / android.KOTLIN / f"kotlin-stdlib-{android.KOTLIN}.jar"


@pytest.fixture(scope="session", autouse=True)
def _built(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """Compiled, and its own tests have passed: by one of the processes that test."""
    reason = android.missing()
    if reason is not None:
        pytest.skip(f"the Android SDK cannot be built: {reason}")
    own = tmp_path_factory.getbasetemp()
    with ((own if worker_id == "master" else own.parent) / "android.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        failed = android.build(offline=True, everything=LONG)
    if failed is not None and android.is_unresolved(failed):
        pytest.skip("the Android SDK cannot be built: its libraries were not fetched, which `make android` does")
    assert failed is None, failed


# What is published


def test_the_archive_has_what_android_looks_for_and_is_small():
    made = android.aar()
    assert len(made) <= android.LARGEST_AAR
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        assert archive.namelist() == sorted(
            [
                "AndroidManifest.xml", "LICENSE", "META-INF/com/android/build/gradle/aar-metadata.properties",
                "R.txt", "classes.jar", "proguard.txt",
            ]
        )  # fmt: skip
        assert archive.read("AndroidManifest.xml") == (android.ANDROID / "android" / "AndroidManifest.xml").read_bytes()
        with zipfile.ZipFile(io.BytesIO(archive.read("classes.jar"))) as classes:
            names = classes.namelist()
            assert {"svc/visitor/SvcVisitor.class", "svc/visitor/core/Engine.class"} <= set(names)
            # Version 52 of class files is Java 8.
            assert {classes.read(name)[6:8] for name in names if name.endswith(".class")} == {b"\x00\x34"}


def test_the_manifest_has_the_expected_bytes():
    made = (android.ANDROID / "android" / "AndroidManifest.xml").read_bytes()
    assert hashlib.sha256(made).hexdigest() == "2323d0e49f4d6b53cf163e22e0ac719575b6abb861d6097a581061ef2d4714b1"


def test_aapt_finds_two_permissions_in_the_manifest(tmp_path: Path):
    if shutil.which("aapt") is None or not RESOURCES.exists():
        pytest.skip("there is no aapt with the framework's resources: Debian's aapt and android-framework-res")
    manifest, made = android.ANDROID / "android" / "AndroidManifest.xml", tmp_path / "made.apk"
    subprocess.run(["aapt", "package", "-M", manifest, "-I", RESOURCES, "-F", made], check=True)
    dumped = subprocess.run(["aapt", "dump", "permissions", made], check=True, capture_output=True, text=True).stdout
    assert dumped.count("uses-permission") == 2


def test_the_repository_has_the_archive_sources_and_descriptions(tmp_path: Path):
    write(tmp_path, android.published())
    folder = tmp_path / "svc" / "visitor"
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    version = android.VERSION
    kinds = {"": ".aar", "-ktx": ".jar", "-okhttp": ".jar", "-testing": ".jar"}
    wanted = [
        f"svc-android{part}/{version}/svc-android{part}-{version}{end}"
        for part, kind in kinds.items()
        for end in (kind, "-sources.jar", ".pom")
    ]
    assert names == sorted([*wanted, *(f"{one}.{name}" for one in wanted for name in ("sha1", "sha256"))])
    poms = {path.name: path.read_text() for path in folder.rglob("*.pom")}
    assert "<packaging>aar</packaging>" in poms[f"svc-android-{version}.pom"]
    dependencies = {"": 1, "-ktx": 3, "-okhttp": 3, "-testing": 2}
    for part, count in dependencies.items():
        text = poms[f"svc-android{part}-{version}.pom"]
        assert text.count("<dependency>") == count
        assert {f"<{name}>" for name in ("url", "licenses", "developers", "scm")} <= set(re.findall(r"<\w+>", text))
    contents = {
        "": "svc/visitor/SvcVisitor.kt", "-ktx": "svc/visitor/CoroutinesKt.class",
        "-okhttp": "svc/visitor/okhttp/SvcInterceptor.class", "-testing": "svc/visitor/testing/FakeSvcVisitor.class",
    }  # fmt: skip
    for part, content in contents.items():
        end = "-sources.jar" if part == "" else ".jar"
        with zipfile.ZipFile(folder / f"svc-android{part}" / version / f"svc-android{part}-{version}{end}") as archive:
            assert {content, "META-INF/LICENSE"} <= set(archive.namelist())
            others = {name for name in contents.values() if name.endswith(".class")} - {content}
            assert not others & set(archive.namelist())


def test_two_archives_of_the_same_classes_are_equal():
    assert android.published() == android.published()


@pytest.mark.skipif(not LONG, reason="compiles everything twice: make test-long")
def test_two_builds_are_equal_byte_by_byte():
    first = android.published()
    android.BUILT.unlink()
    assert android.build(offline=True, everything=False) is None
    assert android.published() == first


# Against a running service


class Phone:
    """A phone whose core is the SDK's, in a JVM of its own."""

    def __init__(self, url: str, key: str, folder: Path) -> None:
        parts = [*(android.ANDROID / "core" / "target" / name for name in ("classes", "test-classes")), STDLIB]
        command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dsun.net.http.retryPost=false"]
        command += ["-cp", os.pathsep.join(map(str, parts)), "svc.visitor.ProbeKt", url, key, str(folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(60) == 0

    def _say(self, value: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    async def identify(self, device: dict[str, Any] | None = None, **call: Any) -> dict[str, Any]:
        call |= {"device": device or DEVICE}
        return await trio.to_thread.run_sync(partial(self._say, call))

    async def say(self, value: Any) -> dict[str, Any]:
        return await trio.to_thread.run_sync(self._say, value)


def android_key(live: Live, **fields: Any) -> str:
    return live.issue(platforms=("android",), allowed_origins=(), **fields)[1]


@asynccontextmanager
async def phone(url: str, key: str, folder: Path) -> AsyncGenerator[Phone, None]:
    made = Phone(url, key, folder)
    try:
        yield made
    finally:
        made.close()


async def test_a_phone_is_identified_keeps_its_id_after_reinstallation_and_sends_its_second_report(tmp_path: Path):
    async with live_service(tmp_path / "data") as live:
        key = android_key(live)
        async with phone(live.url, key, tmp_path / "phone") as installed:
            first = (await installed.identify(tag="t"))["response"]
            again = (await installed.identify(tag="t"))["response"]
            secret = live.issue("secret")[1]
            with trio.fail_after(60):
                second = None
                while second is None:
                    second = await deferred_signals(live, secret, first["request_id"])
        assert second == {"sensors": "abc", "tier": "deferred", "version": 1}
        async with phone(live.url, key, tmp_path / "reinstalled") as installed:
            reinstalled = (await installed.identify(tag="t"))["response"]
        assert first["visitor_is_new"]
        assert {again["visitor_id"], reinstalled["visitor_id"]} == {first["visitor_id"]}
        assert again["visitor_confidence"] == 100
        assert "triggers" not in first
        event = live.events()[0][1]
        assert (event.sdk_platform, event.tag) == ("android", "t")


async def deferred_signals(live: Live, secret: str, request_id: str) -> Any:
    """The second report of an event, once it has come."""
    response = await live.client.get(f"/api/v1/events/{request_id}", headers={"x-api-key": secret})
    return response.json().get("deferred_signals")


async def test_the_service_responds_under_the_address_that_an_emulator_has_for_its_host(tmp_path: Path):
    async with live_service(tmp_path / "data") as live:
        headers = {"host": "10.0.2.2:8080", "x-api-key": android_key(live), "user-agent": "svc-android/0.1.0"}
        signals = {"platform": "android", "model": "Pixel 8", "os_version": "15", "cores": 8, "languages": ["en-GB"]}
        body = {"sdk": {"platform": "android", "version": "0.1.0"}, "signals": signals}
        assert (await live.client.post("/api/v1/identify", json=body, headers=headers)).status_code == 200


async def test_a_lost_response_is_one_identification_and_comes_back_whole(tmp_path: Path):
    async with live_service(tmp_path / "data") as live:
        with CuttingProxy(live.port) as proxy:
            proxy.cut_after("answered", 20, once=True)
            url = f"http://127.0.0.1:{proxy.port}"
            async with phone(url, android_key(live), tmp_path / "phone") as lossy:
                found = await lossy.identify(tag="t")
        assert (found["attempts"], found["response"]["duplicate"]) == (2, True)
        assert found["response"]["visitor_is_new"]
        assert [request_id for request_id, _ in live.events()] == [found["response"]["request_id"]]


async def test_what_the_service_refuses_has_its_own_words(tmp_path: Path):
    async with live_service(tmp_path / "data") as live:
        wrong = android_key(live)[:-1] + "!"
        web = live.issue()[1]
        for key in (wrong, web):
            async with phone(live.url, key, tmp_path / "phone") as stranger:
                error = (await stranger.identify())["error"]
            assert (error["code"], error["status"]) == ("unauthorized", 401)
            assert key not in error["message"]
        assert live.events() == []


async def test_a_rate_limit_reaches_the_app_as_its_code(tmp_path: Path):
    async with live_service(tmp_path / "data") as live:
        live.organization = live.new_organization(rate_limit=1)
        async with phone(live.url, android_key(live), tmp_path / "eager") as eager:
            assert "response" in await eager.identify(tag="1")
            error = (await eager.identify(tag="2"))["error"]
        # The service's clock stands still: what was used up does not come back.
        assert (error["code"], error["status"], error["retry_after_ms"]) == ("rate_limited", 429, 1_000)
        assert len(live.events()) == 1


async def test_what_a_phone_attests_is_verified_under_the_configured_root(tmp_path: Path):
    roots = tmp_path / "roots.pem"
    roots.write_bytes(x509.load_der_x509_certificate(root()).public_bytes(Encoding.PEM))
    async with live_service(tmp_path / "data", attestation_roots_file=str(roots)) as live:
        async with phone(live.url, android_key(live), tmp_path / "phone") as proven:
            seen: list[Any] = []
            for challenge in (None, bytes(32)):
                asked = base64.b64decode((await proven.identify(attest=True))["challenge"])
                certificates = chain(described(challenge=challenge or asked))
                await proven.say([base64.b64encode(one).decode() for one in certificates])
                seen.append(document(live))
        assert [(one.format, one.verified) for one in seen] == [("android-key", True), ("android-key", False)]


def document(live: Live) -> Any:
    """What the archived document of the last event says of attestation."""
    with live.found.store.read() as snapshot:
        *_, (_, found) = snapshot.scan(DOCUMENTS, live.organization.number)
    return found.attestation
