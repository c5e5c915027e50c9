"""`svc config check`: every mistake at once, with its place and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.cli.serve.config_check import mistakes, usable
from svc.kernel.config import Config, ConfigError
from svc.kernel.config_loading import as_toml, load
from tests.spec.commands import Run

pytestmark = pytest.mark.only_on("lmdb", "it opens no store")

WRONG = """\
# a comment
bind = "localhost"
max_conections = 5
map_gib = "lots"
trusted_proxies = ["10.0.0.0/33"]
log_format = "xml"
webhook_allow_networks = ["169.254.0.0/16"]

[server]
x = 1
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "svc.toml"
    path.write_text(WRONG)
    return path


def test_every_error_in_a_file_is_reported_with_its_line_and_a_fix(file: Path):
    found = list(mistakes(file, {"SVC_DATTA": "x", "SVC_WEBHOOK_ALLOW_PORTS": "80,x"}))
    assert [(mistake.where, mistake.write) for mistake in found] == [
        (f"{file}:2", 'bind = "127.0.0.1:8080"'),
        (f"{file}:3", "max_connections = 1000"),
        (f"{file}:4", "map_gib = 64"),
        (f"{file}:5", 'trusted_proxies = ["10.0.0.0/8","fd00::/8"]'),
        (f"{file}:6", 'log_format = "auto"'),
        (f"{file}:7", 'webhook_allow_networks = ["10.20.0.0/16"]'),
        (f"{file}:9", "every setting without a [section]"),
        ("SVC_DATTA", "SVC_DATA=..."),
        ("SVC_WEBHOOK_ALLOW_PORTS", "SVC_WEBHOOK_ALLOW_PORTS=444"),
    ]
    assert found[4].problem == "log_format: 'xml' is not 'auto' or 'console' or 'json'", "each value once"
    assert "169.254.169.254" in found[5].problem


NOT_OF_THE_VALUE = ("No such file", "they belong together", "go together")


@pytest.mark.parametrize("name", Config.__struct_fields__)
def test_the_suggested_fix_is_accepted(name: str, tmp_path: Path):
    """A list for a number, a table for a text and so on: for each setting the example of the message is right."""
    file = tmp_path / "svc.toml"
    file.write_text(f"{name} = [[1]]\n")
    (mistake,) = mistakes(file, {})
    assert mistake.where == f"{file}:1"
    file.write_text(mistake.write + "\n")
    mine = [again for again in mistakes(file, {}) if again.where == f"{file}:1"]
    assert not [again for again in mine if not any(said in again.problem for said in NOT_OF_THE_VALUE)]


def test_a_file_that_is_not_toml_is_reported_with_its_line(tmp_path: Path):
    file = tmp_path / "svc.toml"
    file.write_text('bind = "127.0.0.1:1"\nregion = = "us"\n')
    (mistake,) = mistakes(file, {})
    assert mistake.where == f"{file}:2"
    file.write_bytes(b"\xff\xfe")
    (mistake,) = mistakes(file, {})
    assert "UTF-8" in mistake.problem


def test_files_named_in_settings_are_read(tmp_path: Path):
    (one,) = mistakes(None, {"SVC_TLS_CERTFILE": str(tmp_path / "none")})
    assert "tls_keyfile is not set" in one.problem
    (one,) = mistakes(None, {"SVC_ATTESTATION_ROOTS_FILE": str(tmp_path / "none")})
    assert (one.where, "No such file" in one.problem) == ("SVC_ATTESTATION_ROOTS_FILE", True)


def test_what_settings_name_or_need_is_listed_with_its_line_beside_every_other_mistake(tmp_path: Path):
    file = tmp_path / "svc.toml"
    text = f"""store = "mysql://db/svc"
tls_certfile = "{tmp_path}/certificate"
attestation_roots_file = "{tmp_path}/none"
"""
    file.write_text(f"{text}workers = 0\n")
    places = [(found.where, found.problem.partition(":")[0]) for found in mistakes(file, {})]
    assert places[0] == (f"{file}:4", "workers")
    assert {where for where, _ in places} == {f"{file}:{line}" for line in (1, 2, 3, 4)}
    file.write_text(f'{text}console_oidc_client_id = "x"\nevent_retention_days = 400\n')
    assert {found.where for found in mistakes(file, {})} == {f"{file}:{line}" for line in (1, 2, 3, 4, 5)}


OPENID = """console_oidc_issuer = "https://id.example.com/realms/shop"
console_oidc_client_id = "svc-console"
console_oidc_client_secret_file = "/etc/svc/secret"
console_oidc_organization = "org_Yv3kPq8sT1nB6wDx0hRz"
console_oidc_role_claim = "realm_access.roles"
console_oidc_roles = ["svc-admins=admin", "fraud-team=analyst"]
"""


def test_settings_that_belong_together_are_judged_together(tmp_path: Path):
    """Decisions 15.4: all of a provider, or none."""
    file = tmp_path / "svc.toml"
    file.write_text(OPENID)
    assert list(mistakes(file, {})) == []
    lines = OPENID.splitlines()
    for left_out in range(len(lines)):
        file.write_text("\n".join(lines[:left_out] + lines[left_out + 1 :]))
        (one,) = mistakes(file, {})
        assert "they belong together" in one.problem
        assert lines[left_out].split()[0] in one.problem
        with pytest.raises(ConfigError):
            load(file, {})


def test_of_settings_with_mistakes_those_that_can_be_used_are_known(tmp_path: Path):
    file = tmp_path / "svc.toml"
    file.write_text("region = 'eu'\nbatch_limit = 0\nnothing = 1\n[section]\n")
    known = usable(file, {"SVC_MAX_CONNECTIONS": "none", "SVC_RATE_LIMIT": "7"})
    assert (known.region, known.batch_limit, known.max_connections) == ("eu", Config().batch_limit, 1000)
    file.write_text("not TOML")
    assert usable(file, {}) == Config()


def test_config_check_accepts_exactly_what_the_service_accepts(tmp_path: Path):
    file = tmp_path / "svc.toml"
    file.write_text(as_toml(Config()))
    assert not list(mistakes(file, {}))
    for text in ("batch_limit = 0", "region = 'US'", "try_key = 1", "nothing = 1"):
        file.write_text(text)
        assert list(mistakes(file, {}))
        with pytest.raises(ConfigError):
            load(file, {})


def test_the_command_lists_errors_and_exits_with_status_1(run: Run, file: Path):
    ran = run("config", "check", file)
    assert (ran.status, ran.err) == (1, "svc: 7 mistakes in the settings\n")
    assert f"{file}:3: max_conections is not a setting\n    write: max_connections = 1000\n" in ran.out
    ran = run("config", "check", file, "--json")
    assert ran.status == 1
    assert '"valid":false' in ran.out
    file.write_text("")
    assert run("config", "check", file).out == f"the settings are valid ({file})\n"
    assert run("config", "check", file, "--json").json == {"file": str(file), "valid": True, "mistakes": []}
    run("config", "check", file.with_name("none")).assert_usage()


def test_the_file_of_the_variable_is_the_default(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SVC_CONFIG", str(file))
    assert run("config", "check").status == 1
