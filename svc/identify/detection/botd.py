"""BotD's eighteen detectors, run again here over the components that the report carries.

What may live here: the published rules of BotD 2.0 as pure functions, under BotD's own names, and which signal each
one fires. The library's own verdict travels in the report but decides nothing: forged components come with a forged
verdict, and a rule that is re-run can be explained. Components come from the visitor: any value may be of any
type, so each rule asks for the type it needs and is silent about every other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import msgspec

from svc.identify.detection.findings import Findings, Strength
from svc.identify.report.values import entries_of, members

Components = Mapping[str, Any]
"""Components that BotD could read: name -> value."""

_TEXT_LIMIT = 2048
_ITEM_LIMIT = 256


def rerun(components: Components) -> dict[str, str]:
    """Run all eighteen detectors of BotD; return the kind of bot by the name of each detector that fires."""
    fired: dict[str, str] = {}
    for name, rule in DETECTORS.items():
        kind = rule.detect(components)
        if kind is not None:
            fired[name] = kind
    return fired


def detect_botd(components: Components, findings: Findings) -> None:
    """Add a finding for each BotD detector that fires; one that also fires on people adds none."""
    for name, kind in rerun(components).items():
        rule = DETECTORS[name]
        signal = rule.signal
        if signal is None:
            continue
        if rule.subject == "user_agent" and kind != _HEADLESS:
            signal = "automation"
        if signal == "engine_mismatch":
            findings.contradict("engine", signal, rule.evidence, rule.strength)
        else:
            findings.add(signal, rule.evidence, rule.strength, rule.subject)


_HEADLESS = "headless_chrome"
_PROGRAMS = ("headless", "electron", "slimerjs")

_Rule = Callable[[Components], str | None]
"""The kind of bot that these components show."""


def _names(component: str, *words: str) -> _Rule:
    """Return the rule that a text contains one of these words. The first that it contains is the kind of bot."""

    def detect(components: Components) -> str | None:
        value = components.get(component)
        text = value[:_TEXT_LIMIT].lower() if isinstance(value, str) else ""
        found = next((word for word in words if word in text), None)
        return _HEADLESS if found == "headless" else found

    return detect


def _is(component: str, expected: Any, kind: str = _HEADLESS) -> _Rule:
    """Return the rule that a component was read and equals this value, in type, too."""

    def detect(components: Components) -> str | None:
        value = components.get(component, _MISSING)
        return kind if type(value) is type(expected) and value == expected else None

    return detect


_MISSING = object()
_OFF_SCREEN = {"vendor": "Brian Paul", "renderer": "Mesa OffScreen"}


def _is_number(value: Any, number: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == number


def _detect_document_attributes(components: Components) -> str | None:
    keys = entries_of(components.get("documentElementKeys"))[:_ITEM_LIMIT]
    return "selenium" if any(key in ("selenium", "webdriver", "driver") for key in keys) else None


def _detect_eval_length(components: Components) -> str | None:
    length, browser, engine = (components.get(name) for name in ("evalLength", "browserKind", "browserEngineKind"))
    if not isinstance(browser, str) or not isinstance(engine, str) or engine == "unknown":
        return None
    impossible = (
        (_is_number(length, 37) and engine not in ("webkit", "gecko"))
        or (_is_number(length, 39) and browser != "internet_explorer")
        or (_is_number(length, 33) and engine != "chromium")
    )
    return "unknown" if impossible else None


def _detect_notification_permissions(components: Components) -> str | None:
    inconsistent = components.get("browserKind") == "chrome" and components.get("notificationPermissions") is True
    return _HEADLESS if inconsistent else None


def _detect_plugins_length(components: Components) -> str | None:
    desktop_chromium = (
        components.get("android") is False
        and components.get("browserKind") == "chrome"
        and components.get("browserEngineKind") == "chromium"
    )
    return _HEADLESS if desktop_chromium and _is_number(components.get("pluginsLength"), 0) else None


def _detect_process(components: Components) -> str | None:
    process = members(components.get("process"))
    electron = members(process.get("versions")).get("electron") is not None
    return "electron" if electron or process.get("type") == "renderer" else None


def _detect_product_sub(components: Components) -> str | None:
    if components.get("browserKind") not in ("chrome", "safari", "opera", "wechat"):
        return None
    product = components.get("productSub")
    return "unknown" if isinstance(product, str) and product != "20030107" else None


def _detect_window_size(components: Components) -> str | None:
    # A tab that was opened in the background has no outer size either, until it is looked at.
    if components.get("documentFocus") is not True:
        return None
    sides = members(components.get("windowSize"))
    return _HEADLESS if _is_number(sides.get("outerWidth"), 0) and _is_number(sides.get("outerHeight"), 0) else None


def _detect_distinctive_properties(components: Components) -> str | None:
    pairs = islice(members(components.get("distinctiveProps")).items(), _ITEM_LIMIT)
    return next((name for name, value in pairs if value is True), None)


class _Detector(msgspec.Struct, frozen=True):
    detect: _Rule
    signal: str | None
    """`None`: it also fires on people."""
    evidence: str = ""
    strength: Strength = "definitive"
    subject: str | None = None


DETECTORS = {
    "detectAppVersion": _Detector(
        _names("appVersion", *_PROGRAMS), "headless", "botd_app_version", subject="user_agent"
    ),
    "detectDocumentAttributes": _Detector(_detect_document_attributes, "automation", "botd_document_attributes"),
    "detectErrorTrace": _Detector(_names("errorTrace", "phantomjs"), "automation", "botd_error_trace"),
    # A person whose Firefox calls itself Chrome trips the two rules about the engine: that alone is not a driver.
    "detectEvalLengthInconsistency": _Detector(_detect_eval_length, "engine_mismatch", "botd_eval_length", "proof"),
    # BotD reports a `bind` that is not a function as a state without a value; readers hand it on as null.
    "detectFunctionBind": _Detector(_is("functionBind", None, "phantomjs"), "automation", "botd_function_bind"),
    "detectLanguagesLengthInconsistency": _Detector(_is("languages", []), "headless", "botd_languages_length", "proof"),
    "detectNotificationPermissions": _Detector(
        _detect_notification_permissions, "headless", "botd_notification_permissions", "proof"
    ),
    "detectPluginsArray": _Detector(_is("pluginsArray", False), "automation", "botd_plugins_array", "proof"),
    # People who let Chromium download documents instead of showing them have no plugins: what else is missing decides.
    "detectPluginsLengthInconsistency": _Detector(_detect_plugins_length, None),
    "detectProcess": _Detector(_detect_process, "automation", "botd_process"),
    "detectUserAgent": _Detector(
        _names("userAgent", "phantomjs", *_PROGRAMS), "headless", "botd_user_agent", subject="user_agent"
    ),
    "detectWebDriver": _Detector(_is("webDriver", True), "automation", "botd_webdriver"),
    "detectWebGL": _Detector(_is("webGL", _OFF_SCREEN), "headless", "botd_webgl", "proof"),
    "detectWindowExternal": _Detector(_names("windowExternal", "sequentum"), "automation", "botd_window_external"),
    "detectWindowSize": _Detector(_detect_window_size, "headless", "botd_window_size", "proof"),
    "detectMimeTypesConsistent": _Detector(
        _is("mimeTypesConsistent", False, "unknown"), "automation", "botd_mime_types", "proof"
    ),
    "detectProductSub": _Detector(_detect_product_sub, "engine_mismatch", "botd_product_sub", "proof"),
    "detectDistinctiveProperties": _Detector(
        _detect_distinctive_properties, "automation", "botd_distinctive_properties"
    ),
}
"""BotD's name of each rule -> the rule, and what fires where it does."""
