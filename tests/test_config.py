from pathlib import Path

import pytest
from msgspec.inspect import FloatType, IntType

from svc.cli.serve.config_check import mistakes
from svc.kernel.config import Config, ConfigError
from svc.kernel.config_loading import as_toml, load
from svc.kernel.values.fields import bare, fields_of


def test_without_a_file_and_variables_the_defaults_apply():
    assert load(None, {}) == Config()


def test_variables_take_precedence_over_the_file(tmp_path: Path):
    file = tmp_path / "svc.toml"
    file.write_text('region = "eu"\nmax_connections = 5\ntrusted_proxies = ["10.0.0.0/8"]\n')
    config = load(file, {"SVC_MAX_CONNECTIONS": "7", "PATH": "/bin"})
    assert (config.region, config.max_connections, config.trusted_proxies) == ("eu", 7, ("10.0.0.0/8",))


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path):
    file = tmp_path / "svc.toml"
    file.write_bytes(b'\xef\xbb\xbfregion = "eu"\r\n')
    assert load(file, {}).region == "eu"
    assert list(mistakes(file, {})) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('region = "eu"'.encode("utf-16"), "is UTF-16 or UTF-32 text"),
        (b'region = "eu"\n# \xff', "is not UTF-8 text (line 2): save it as UTF-8"),
        (b"\x1f\x8b\x08", "is compressed by gzip"),
    ],
)
def test_a_file_that_is_no_text_is_named_with_what_it_is(tmp_path: Path, content: bytes, said: str):
    file = tmp_path / "svc.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        load(file, {})
    assert str(refused.value).startswith(f"{file} {said}")
    (mistake,) = mistakes(file, {})
    assert mistake.problem.startswith(said)


def test_a_proxy_may_be_named_by_its_mapped_address():
    """As its own tools show it; the peer of such a connection is read as the IPv4 address."""
    networks = load(None, {"SVC_TRUSTED_PROXIES": "::ffff:10.0.0.1,::ffff:10.1.0.0/112,fd00::/8"}).networks()
    assert [str(network) for network in networks] == ["10.0.0.1/32", "10.1.0.0/16", "fd00::/8"]


def test_a_list_in_a_variable_is_separated_by_commas():
    assert load(None, {"SVC_TRUSTED_PROXIES": "10.0.0.0/8, fd00::/8"}).trusted_proxies == ("10.0.0.0/8", "fd00::/8")


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"SVC_MAX_CONECTIONS": "5"}, "SVC_MAX_CONECTIONS"),
        ({"SVC_MAX_CONNECTIONS": "many"}, "SVC_MAX_CONNECTIONS"),
        ({"SVC_MAX_CONNECTIONS": "0"}, "SVC_MAX_CONNECTIONS"),
        ({"SVC_REGION": "Somewhere Else"}, "SVC_REGION"),
        ({"SVC_TRUSTED_PROXIES": "10.0.0.0/99"}, "SVC_TRUSTED_PROXIES"),
        ({"SVC_WEBHOOK_ALLOW_NETWORKS": "10.0.0.0/99"}, "SVC_WEBHOOK_ALLOW_NETWORKS"),
        ({"SVC_WEBHOOK_ALLOW_NETWORKS": "10.0.0.1/8"}, "SVC_WEBHOOK_ALLOW_NETWORKS"),
        ({"SVC_WEBHOOK_CA_FILE": "/does/not/exist.pem"}, "SVC_WEBHOOK_CA_FILE"),
        ({"SVC_WEBHOOK_CA_FILE": __file__}, "SVC_WEBHOOK_CA_FILE"),
        ({"SVC_BIND": "localhost"}, "SVC_BIND"),
        ({"SVC_METRICS_BIND": "127.0.0.1:99999"}, "SVC_METRICS_BIND"),
        ({"SVC_METRICS_HOSTS": "metrics:9464"}, "SVC_METRICS_HOSTS"),
        ({"SVC_PUBLIC_URL": "https://[:::"}, "SVC_PUBLIC_URL"),
        ({"SVC_PUBLIC_URL": "https://shop.example:99999"}, "SVC_PUBLIC_URL"),
        ({"SVC_STORE": "postgresql://db/svc", "SVC_WORKERS": "auto"}, "SVC_WORKERS"),
        ({"SVC_CONNECTION_OS_HEADER": "x-os"}, "SVC_CONNECTION_OS_HEADER.* trusted_proxies is not set"),
        ({"SVC_CONNECTION_TLS_HEADER": "x-ja4"}, "SVC_CONNECTION_TLS_HEADER.* trusted_proxies is not set"),
    ],
)
def test_an_unusable_setting_is_rejected_by_name(variables: dict[str, str], says: str):
    with pytest.raises(ConfigError, match=says):
        load(None, variables)


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("SVC_WORKERS", "many", "SVC_WORKERS: 'many' is not 'auto' or a whole number"),
        ("SVC_LOG_FORMAT", "xml", "SVC_LOG_FORMAT: 'xml' is not 'auto' or 'console' or 'json'"),
        ("SVC_MAP_GIB", "inf", "SVC_MAP_GIB: Expected a number <= 131072"),
        ("SVC_TAKEOVER_WAIT_S", "inf", "SVC_TAKEOVER_WAIT_S: Expected a number <= 86400"),
        ("SVC_REGION", "US", "SVC_REGION: Expected a text like ^[a-z][a-z0-9]{0,15}$"),
        ("SVC_TRUSTED_PROXY", "::1", "did you mean SVC_TRUSTED_PROXIES?"),
        ("SVC_TRUSTED_PROXIES", "localhost", "name addresses or networks, such as 10.0.0.0/8"),
    ],
)
def test_a_mistake_is_explained_in_terms_of_the_settings(variable: str, value: str, says: str):
    with pytest.raises(ConfigError) as raised:
        load(None, {variable: value})
    assert says in str(raised.value)


AS_LONG = {"SVC_VISITOR_RETENTION_DAYS": "400"}
"""As events may be kept."""
NUMBERS = {field.name: bare(field.type) for field in fields_of(Config)}
"""What may be written for each setting; those that are numbers are judged here."""


@pytest.mark.parametrize("name", [name for name in NUMBERS if isinstance(NUMBERS[name], IntType | FloatType)])
def test_each_number_has_bounds_that_are_accepted_named_and_printed(name: str, tmp_path: Path):
    """What no bound holds back is stored, and fails later: where it meets 64 bits, a date, or TOML, which has no
    `null`.
    """
    kind = NUMBERS[name]
    assert isinstance(kind, IntType | FloatType)
    assert kind.le is not None, "no largest value"
    least, most = kind.ge if kind.gt is None else 0.01, kind.le
    assert least is not None, "no smallest value"
    file = tmp_path / "svc.toml"
    for value in (least, most):
        config = load(None, AS_LONG | {f"SVC_{name.upper()}": f"{value:.12g}"})
        assert getattr(config, name) == value
        file.write_text(as_toml(config))
        assert load(file, {}) == config
    for value in (least - 1, most * 1.01 + 1, "inf", "nan"):
        with pytest.raises(ConfigError, match=f"^SVC_{name.upper()}: Expected a "):
            load(None, {f"SVC_{name.upper()}": str(value)})


@pytest.mark.parametrize(
    "name", [field.name for field in fields_of(Config) if field.default is None or field.name == "region"]
)
def test_an_empty_variable_is_rejected_by_name(name: str):
    """An empty path is the folder that the program was started in, and an empty file of authorities is none."""
    with pytest.raises(ConfigError, match=f"^SVC_{name.upper()}: Expected a text"):
        load(None, {f"SVC_{name.upper()}": ""})


def test_a_missing_invalid_or_unknown_setting_file_is_rejected(tmp_path: Path):
    with pytest.raises(ConfigError, match="cannot read"):
        load(tmp_path / "none.toml", {})
    file = tmp_path / "svc.toml"
    file.write_text("= nonsense")
    with pytest.raises(ConfigError, match="not TOML"):
        load(file, {})
    file.write_text("color = 1")
    with pytest.raises(ConfigError, match="color"):
        load(file, {})


def test_printed_settings_are_read_back_unchanged(tmp_path: Path):
    config = load(None, {"SVC_TRUSTED_PROXIES": "10.0.0.0/8", "SVC_DRAIN_LIMIT_S": "2.5"})
    file = tmp_path / "svc.toml"
    file.write_text(as_toml(config))
    assert load(file, {}) == config


@pytest.mark.parametrize(
    "network",
    [
        "169.254.169.254/32", "169.254.0.0/16", "0.0.0.0/0", "168.63.129.16/32", "100.64.0.0/10", "192.0.0.0/24",
        "fd00:ec2::254/128", "fd00:ec2::/32", "fd00::/8", "fc00::/7", "::/0", "::ffff:169.254.0.0/112", "64:ff9b::/96",
        "64:ff9b:1::/48", "2002::/16", "::/96",
    ],
)  # fmt: skip
def test_networks_with_a_cloud_metadata_address_cannot_be_opened_to_webhooks(network: str):
    with pytest.raises(ConfigError, match=r"SVC_WEBHOOK_ALLOW_NETWORKS would open .* credentials"):
        load(None, {"SVC_WEBHOOK_ALLOW_NETWORKS": f"10.0.0.0/8,{network}"})


def test_private_networks_can_be_opened_to_webhooks():
    config = load(None, {"SVC_WEBHOOK_ALLOW_NETWORKS": "10.0.0.0/8, 127.0.0.0/8,::1/128,fd12:3456::/32"})
    assert [str(network) for network in config.webhook_networks()] == [
        "10.0.0.0/8",
        "127.0.0.0/8",
        "::1/128",
        "fd12:3456::/32",
    ]


PROVIDER = {
    "SVC_CONSOLE_OIDC_ISSUER": "https://id.shop.example",
    "SVC_CONSOLE_OIDC_CLIENT_ID": "svc",
    "SVC_CONSOLE_OIDC_CLIENT_SECRET_FILE": "/run/secrets/svc-oidc",
    "SVC_CONSOLE_OIDC_ORGANIZATION": "org_" + 20 * "a",
    "SVC_CONSOLE_OIDC_ROLE_CLAIM": "groups",
    "SVC_CONSOLE_OIDC_ROLES": "svc-admins=admin,a=b=viewer",
}


def test_a_provider_has_all_its_settings_or_none():
    assert load(None, PROVIDER).console_oidc_roles == ("svc-admins=admin", "a=b=viewer")
    for missing in PROVIDER:
        left = {name: value for name, value in PROVIDER.items() if name != missing}
        with pytest.raises(ConfigError, match=missing.removeprefix("SVC_").lower()):
            load(None, left)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("ISSUER", "http://id.shop.example"),
        ("ISSUER", "https://id.shop.example#x"),
        ("ISSUER", "https://user@id.shop.example"),
        ("ISSUER", "id.shop.example"),
        ("ORGANIZATION", "shop"),
        ("ROLES", "svc-admins"),
        ("ROLES", "svc-admins=owner"),
        ("ROLES", "=admin"),
        ("ROLES", "a=admin,a=viewer"),
    ],
)
def test_a_wrong_setting_of_a_provider_is_named(setting: str, value: str):
    with pytest.raises(ConfigError, match=f"SVC_CONSOLE_OIDC_{setting}"):
        load(None, PROVIDER | {f"SVC_CONSOLE_OIDC_{setting}": value})


def test_a_provider_on_this_machine_may_do_without_tls():
    assert load(None, PROVIDER | {"SVC_CONSOLE_OIDC_ISSUER": "http://localhost:9400"})
