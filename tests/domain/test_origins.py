import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.kernel.net.origins import normalize_origin, normalize_pattern, origin_allowed


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("https://shop.example", "https://shop.example"),
        ("HTTPS://Shop.Example:443", "https://shop.example"),
        ("http://shop.example:80", "http://shop.example"),
        ("http://shop.example:443", "http://shop.example:443"),
        ("https://shop.example:08443", "https://shop.example:8443"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ("capacitor://localhost", "capacitor://localhost"),
        ("app://-", "app://-"),
        ("app://.", "app://."),
        ("App://-My_App-", "app://-my_app-"),
        ("app://my%20App", "app://my%20app"),
        ("tauri://localhost:1420", "tauri://localhost:1420"),
        (
            "moz-extension://0d4b2a70-90c2-4c6e-9d3c-0f6f4c3e8a11",
            "moz-extension://0d4b2a70-90c2-4c6e-9d3c-0f6f4c3e8a11",
        ),
        ("vscode-webview://" + "a" * 80, "vscode-webview://" + "a" * 80),
        ("http://[0:0:0:0:0:0:0:1]:3000", "http://[::1]:3000"),
        ("http://127.0.0.1:5173", "http://127.0.0.1:5173"),
    ],
)
def test_an_origin_has_one_canonical_form(text: str, normal: str):
    assert normalize_origin(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "*", "https://", "shop.example", "https://shop.example/", "https://shop.example/path", "//shop",
        "https://user@shop.example", "https://shop.example:0", "https://shop.example:65536", "https://shop..example",
        "https://-shop.example", "https://shop.example?x", "https://shop.example#x", "https://sh op.example",
        "https://*", "https://[::zz]", "https://shop.example, https://other.example", "https://" + "a" * 300,
        "https://a.*.example", "javascript://x", "JavaScript://x.example", "data://x", "file://", "file://x", "blob:",
        "blob:https://shop.example", "blob://x", "about:blank", "about://blank", "vbscript://x",
        "https://-", "https://.", "wss://-", "app://", "app://*", "app://a*", "app://-/", "app://a,b", "app://my app", "app://%2",
        "app://-:0", "app://a@b", "app://*.-", "app://*..",
    ],
)  # fmt: skip
def test_an_invalid_origin_is_rejected(text: str):
    assert normalize_origin(text) is None
    assert normalize_pattern(text) is None


def test_only_patterns_may_contain_a_wildcard():
    assert normalize_pattern("https://*.Example.com:443") == "https://*.example.com"
    assert normalize_origin("https://*.example.com") is None
    assert normalize_pattern("https://*.com") is None


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://a.example.com", True),
        ("https://a.b.example.com", True),
        ("https://example.com", False),
        ("https://badexample.com", False),
        ("http://a.example.com", False),
        ("https://a.example.com:8443", False),
        ("https://a.example.com.evil.test", False),
    ],
)
def test_a_wildcard_matches_any_depth_below_and_not_the_apex(origin: str, allowed: bool):
    assert origin_allowed(origin, ("https://*.example.com",), "production") is allowed


def test_an_empty_list_accepts_nothing_outside_development():
    for environment in ("production", "staging"):
        assert not origin_allowed("https://shop.example", (), environment)
        assert not origin_allowed("http://localhost:3000", (), environment)


def test_development_accepts_only_loopback_and_on_any_port():
    for origin in ("http://localhost", "https://localhost:3000", "http://127.0.0.1:1", "http://[::1]:5173"):
        assert origin_allowed(origin, (), "development")
    for origin in ("http://localhost.evil.test", "http://127.0.0.2", "ftp://localhost", "capacitor://localhost"):
        assert not origin_allowed(origin, (), "development")


@given(st.text(max_size=80))
def test_no_text_makes_origins_raise_and_normalization_is_idempotent(text: str):
    for candidate in (text, "https://" + text):
        normal = normalize_origin(candidate)
        if normal is not None:
            assert normalize_origin(normal) == normal
            assert origin_allowed(normal, (normal,), "production")
