"""Reports as collectors send them, through every step that needs no store."""

from __future__ import annotations

import json

import msgspec
from hypothesis import strategies as st

from svc.identify.events.archive import inflate
from svc.identify.identification import Assessment, Submission, assess
from svc.identify.model import RequestFacts
from svc.identify.report import fingerprintjs, fpscanner, native, plain, thumbmark
from svc.identify.scoring.signals import CATALOG, EVIDENCE
from tests.domain.test_report_hostile import APP, CONTEXT, PROBES, SECTIONS, TREE
from tests.fuzz.target import Target, json_values, scalars
from tests.fuzz.texts import AGENTS, NOW_MS, REQUEST_ID

Signals = dict[str, object]
COMMON = (
    "client_token",
    "client_token_is_new",
    "nonce",
    "tier",
    "incognito",
    "attestation",
    "platform",
    "userAgent",
    "extra",
)


BOTD = (
    "appVersion", "browserKind", "distinctiveProps", "documentElementKeys", "errorTrace", "evalLength", "functionBind",
    "languages", "pluginsLength", "process", "productSub", "userAgent", "webGL", "windowExternal", "windowSize",
)  # fmt: skip
SECTION_KEYS = (
    "automation", "webdriver", "selenium", "userAgent", "platform", "cpuCount", "memory", "language", "languages",
    "vendor", "renderer", "plugins", "highEntropyValues", "features", "canvas", "webGL", "screenResolution",
)  # fmt: skip


def _named(names: object, values: st.SearchStrategy[object] = json_values) -> st.SearchStrategy[Signals]:
    return st.dictionaries(st.sampled_from(sorted(names)) | st.text(max_size=6), values, max_size=8)  # type: ignore[call-overload]


@st.composite
def _changed(draw: st.DrawFn, whole: Signals) -> Signals:
    """A whole report with some of its members at any depth replaced or taken out."""

    def change(value: object) -> object:
        if draw(st.integers(0, 7)) == 0:
            return draw(json_values)
        if isinstance(value, dict):
            return {name: change(member) for name, member in value.items() if draw(st.integers(0, 15))}
        return [change(member) for member in value] if isinstance(value, list) else value

    changed = {name: change(member) for name, member in whole.items()}
    return {**changed, **draw(_named(COMMON, scalars))}


components = _named(fingerprintjs.KNOWN, json_values.map(lambda value: {"value": value, "duration": 1}) | json_values)
botd = _named(BOTD, json_values.map(lambda value: {"value": value, "state": 0}) | json_values)
common = _named(COMMON)

ADAPTERS: dict[str, st.SearchStrategy[Signals]] = {
    "fingerprintjs": st.one_of(components, components.map(lambda found: {"components": found})),
    "botd": st.tuples(botd, common).map(lambda both: {**both[1], "botd": both[0]}),
    "thumbmark": st.one_of(
        _changed(TREE),
        _changed(TREE).map(lambda tree: {"thumbmark": tree}),
        _named(thumbmark.KNOWN).map(lambda tree: {"thumbmark": {**TREE, **tree}}),
    ),
    "probes": st.tuples(_changed(PROBES), components, common).map(
        lambda parts: {**parts[2], "probes": {**parts[0], "version": 1}, "components": parts[1]}
    ),
    "fpscanner": st.one_of(
        _changed(SECTIONS),
        _named([*fpscanner.SECTIONS, *SECTION_KEYS, *CONTEXT]).map(lambda found: {"fpscanner": {**SECTIONS, **found}}),
        _changed(SECTIONS).map(lambda found: {"fpscanner": {"signals": found}}),
    ),
    "native": st.one_of(
        _changed(APP), _named(native.READ_HERE).map(lambda found: {**found, "platform": "android", "device": found})
    ),
    "plain": _named([*plain.READ_HERE, *COMMON]),
    "mixed": st.tuples(_changed({**TREE, **SECTIONS, **APP}), components, botd).map(
        lambda parts: {**parts[0], "components": parts[1], "botd": parts[2]}
    ),
}


def read(sent: tuple[Signals, str | None, str]) -> Assessment:
    signals, user_agent, sdk_platform = sent
    raw = json.dumps(signals).encode()
    return assess(
        Submission(
            request_id=REQUEST_ID,
            new_visitor_id="0" * 20,
            at_ms=NOW_MS,
            organization=1,
            key_id="key_" + "0" * 20,
            touched_key=None,
            environment="production",
            sdk_platform=sdk_platform,
            sdk_version=None,
            origin=None,
            tag=None,
            idempotency=None,
            facts=RequestFacts(ip="81.2.69.160", user_agent=user_agent, accept_language="de,en;q=0.5"),
            signals=msgspec.json.decode(raw),
            signals_json=raw,
        ),
        None,
    )


def check(sent: tuple[Signals, str | None, str], found: Assessment) -> None:
    platform = found.submission.platform
    report = found.report
    assert len(report.rest) <= 128
    assert all(len(value) < 128 for value in report.attributes.values())
    assert report.client_token is None or 16 <= len(report.client_token) <= 64
    assert all(platform in CATALOG[seen.signal].weights for seen in found.observations)
    assert len({seen.signal for seen in found.observations}) == len(found.observations)
    assert all(name in EVIDENCE for seen in found.observations for name in seen.evidence)
    assert len(msgspec.json.encode(found.observations)) < 32_768, "evidence is kept with every event"
    assert len(msgspec.msgpack.encode(found.history)) < 32_768
    assert inflate(found.archive) == found.submission.signals_json
    assert found.price in {0, 500, 3000}


TARGETS = {
    f"reports-{adapter}": Target(
        st.tuples(
            inputs, st.none() | st.sampled_from(AGENTS), st.sampled_from(["web", "android", "ios", "capacitor-ios"])
        ),
        read,
        check,
    )
    for adapter, inputs in ADAPTERS.items()
}
