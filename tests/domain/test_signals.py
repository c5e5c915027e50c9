"""The catalog against docs/signals.md. The table is repeated on purpose: names and weights are a public contract."""

from __future__ import annotations

import json

from click.testing import CliRunner

from svc.cli.develop.signals import signals
from svc.identify.scoring.signals import CATALOG, CATALOG_ORDER, MAX_WEIGHT, default_weights, signal_names
from svc.kernel.values.fields import PLATFORMS
from tools.reference import signals as page

# group, signal, web, android, ios (None = not on that platform), in the order of the document.
DOCUMENTED: tuple[tuple[str, str, int | None, int | None, int | None], ...] = (
    ("bot", "automation", 40, 40, 40),
    ("bot", "headless", 30, None, None),
    ("bot", "bot_user_agent", 20, 20, 20),
    ("bot", "spoofed_crawler", 40, 40, 40),
    ("bot", "ai_agent", 10, 10, 10),
    ("bot", "search_crawler", 0, 0, 0),
    ("tampering", "anti_detect_browser", 30, None, None),
    ("tampering", "browser_tampering", 15, None, None),
    ("tampering", "os_mismatch", 12, 12, 12),
    ("tampering", "engine_mismatch", 12, None, None),
    ("tampering", "gpu_mismatch", 8, None, None),
    ("tampering", "developer_tools", 6, 6, None),
    ("tampering", "app_tampering", None, 25, 25),
    ("tampering", "forged_report", 25, None, None),
    ("tampering", "proof_failed", 20, None, None),
    ("tor", "tor", 25, 25, 25),
    ("vpn", "vpn_public", 8, 8, 8),
    ("vpn", "vpn_timezone_mismatch", 5, 5, 5),
    ("vpn", "vpn_os_mismatch", 5, 5, 5),
    ("vpn", "vpn_auxiliary_mobile", None, 10, 10),
    ("vpn", "vpn_relay", 3, 3, 3),
    ("vpn", "vpn_low", 4, 4, 4),
    ("vpn", "vpn_medium", 9, 9, 9),
    ("vpn", "vpn_high", 15, 15, 15),
    ("proxy", "public_proxy", 20, 20, 20),
    ("proxy", "hosting", 15, 15, 15),
    ("residential_proxy", "residential_proxy_listed", 15, 15, 15),
    ("residential_proxy", "residential_proxy_behavior", 10, 10, 10),
    ("residential_proxy", "residential_proxy_low", 5, 5, 5),
    ("residential_proxy", "residential_proxy_medium", 10, 10, 10),
    ("residential_proxy", "residential_proxy_high", 18, 18, 18),
    ("ip_reputation", "ip_attack_source", 20, 20, 20),
    ("ip_reputation", "ip_email_spam", 15, 15, 15),
    ("environment", "virtual_machine", 15, None, None),
    ("environment", "emulator", None, 25, None),
    ("environment", "simulator", None, None, 25),
    ("environment", "cloned_app", None, 20, None),
    ("integrity", "rooted", None, 15, None),
    ("integrity", "jailbroken", None, None, 15),
    ("integrity", "frida", None, 30, 30),
    ("integrity", "hooked", None, 25, 25),
    ("integrity", "debugger", None, 10, 10),
    ("integrity", "developer_options", None, 0, None),
    ("integrity", "unofficial_store", None, 0, None),
    ("integrity", "mitm_attack", None, 25, 25),
    ("integrity", "attestation_failed", None, 30, 30),
    ("integrity", "attestation_missing", None, 0, 0),
    ("integrity", "factory_reset", None, 5, 5),
    ("integrity", "clock_tampered", None, 0, 0),
    ("location", "location_spoofing", None, 20, 20),
    ("privacy", "incognito", 4, None, None),
    ("privacy", "privacy_settings", 6, None, None),
    ("velocity", "high_activity", 8, 8, 8),
    ("velocity", "velocity_ip", 8, 8, 8),
    ("velocity", "velocity_country", 15, 15, 15),
    ("velocity", "storage_renewed", 10, 10, 10),
    ("velocity", "new_visitor_burst", 15, 15, 15),
    ("velocity", "token_conflict", 15, 15, 15),
    ("velocity", "network_new_for_visitor", 0, 0, 0),
    ("replay", "replayed", 40, 40, 40),
    ("replay", "repeated_report", 15, 15, 15),
    ("replay", "repeated_rare_report", 10, 10, 10),
    ("replay", "key_shared", 30, None, None),
    ("rarity", "rare_device", 3, 3, 3),
    ("rarity", "unseen_rendering", 5, None, None),
    ("account", "multi_account", 10, 10, 10),
    ("account", "account_testing", 30, 30, 30),
    ("account", "account_sharing", 0, 0, 0),
    ("account", "account_new_device", 5, 5, 5),
)

ADDED = {
    "attestation_missing": "2",
    "hooked": "0.3.0",
    "debugger": "0.3.0",
    "developer_options": "0.3.0",
    "unofficial_store": "0.3.0",
    "clock_tampered": "0.3.0",
    "forged_report": "0.3.0",
    "network_new_for_visitor": "0.3.0",
    "repeated_report": "0.3.0",
    "repeated_rare_report": "0.3.0",
    "multi_account": "0.3.0",
    "account_testing": "0.3.0",
    "account_sharing": "0.3.0",
    "proof_failed": "0.3.0",
    "storage_renewed": "0.3.0",
    "new_visitor_burst": "0.3.0",
    "key_shared": "0.3.0",
    "unseen_rendering": "0.3.0",
    "account_new_device": "0.3.0",
}
"""Signal -> the version that introduced it. Profiles that were stored before count it as 0."""


def test_the_catalog_is_the_documented_table_in_its_order() -> None:
    built = tuple((signal.group, signal.name, *map(signal.weights.get, PLATFORMS)) for signal in CATALOG.values())
    assert PLATFORMS == ("web", "android", "ios")
    assert built == DOCUMENTED


def test_each_entry_is_stored_under_its_own_name_and_position() -> None:
    assert [signal.name for signal in CATALOG.values()] == list(CATALOG)
    assert [CATALOG_ORDER[name] for name in CATALOG] == list(range(len(CATALOG)))


def test_only_the_vpn_and_residential_proxy_families_have_modes() -> None:
    families = {signal.group for signal in CATALOG.values() if signal.mode is not None}
    assert families == {"vpn", "residential_proxy"}
    for signal in CATALOG.values():
        if signal.group in families:
            assert signal.mode == ("confidence" if signal.name.endswith(("_low", "_medium", "_high")) else "method")


def test_each_signal_is_described_in_one_sentence() -> None:
    for signal in CATALOG.values():
        assert signal.description.endswith(".")
        assert "\n" not in signal.description
        assert 20 <= len(signal.description) <= 140
        assert signal.since == ADDED.get(signal.name, "1")


def test_default_weights_are_valid_in_a_configuration() -> None:
    for platform in PLATFORMS:
        for weight in default_weights(platform).values():
            assert 0 <= weight <= MAX_WEIGHT


def test_names_and_weights_of_a_platform_agree() -> None:
    for platform in PLATFORMS:
        assert tuple(default_weights(platform)) == signal_names(platform)
    assert "emulator" in signal_names("android")
    assert "emulator" not in signal_names("web")


def test_changing_returned_default_weights_does_not_change_the_defaults() -> None:
    default_weights("web")["tor"] = 99
    assert default_weights("web")["tor"] == 25


def test_ordinary_privacy_behavior_together_stays_below_the_default_threshold() -> None:
    weights = default_weights("web")
    method = ("vpn_public", "vpn_timezone_mismatch", "vpn_os_mismatch", "incognito", "privacy_settings")
    confidence = ("vpn_high", "incognito", "privacy_settings")
    assert sum(weights[name] for name in method) == 28
    assert sum(weights[name] for name in confidence) == 25


def test_one_piece_of_hard_evidence_reaches_the_default_threshold_alone() -> None:
    weights = default_weights("web")
    for name in ("automation", "headless", "spoofed_crawler", "anti_detect_browser", "replayed"):
        assert weights[name] >= 30


def test_the_page_names_every_signal_with_its_weights() -> None:
    lines = page().splitlines()
    for signal in CATALOG.values():
        weights = " | ".join(str(signal.weights.get(platform, "")) for platform in PLATFORMS)
        assert sum(line.startswith(f"| `{signal.name}` | {weights} | ") for line in lines) == 1


def test_the_command_line_shows_the_catalog_as_text_and_as_json() -> None:
    shown = CliRunner().invoke(signals)
    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.output.splitlines()] == ["signal", *CATALOG]
    records = json.loads(CliRunner().invoke(signals, ["--json"]).output)["signals"]
    assert [record["name"] for record in records] == list(CATALOG)
    assert records[0]["default_weights"] == {"web": 40, "android": 40, "ios": 40}
