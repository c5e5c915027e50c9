"""The program as a person runs it: dev, serve and its end. The administrative commands stand in tests/spec."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from svc.cli import program
from tests.support.ports import free_port
from tests.support.process import ENVIRONMENT, PROGRAM, Served, read_until, run, run_json, start

pytestmark = pytest.mark.slow(6)


def test_the_top_level_help_loads_no_service_code_and_truncates_no_line():
    code = """
import sys, svc.cli
sys.argv = ["svc", "--help"]
try:
    svc.cli.main()
finally:
    print(*sorted({"trio", "lmdb", "quart", "structlog", "msgspec"} & set(sys.modules)))
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout
    *help_lines, loaded = shown.splitlines()
    assert loaded == ""
    assert not [line for line in help_lines[1:] if line.endswith("...")], "the first line is the usage"
    for name, command in program.commands.items():
        assert command.name == name
        assert any(line.split()[:1] == [name] and line.endswith(".") for line in help_lines), name


def test_commands_load_no_server_modules_and_a_service_on_lmdb_no_driver():
    code = """
import sys
import svc.cli.serve.config_check, svc.cli.store.data, svc.cli.develop.signals
print(*sorted({"trio", "lmdb", "httpcore", "svc.features.tables"} & set(sys.modules)))
from svc.features.audit import command
from svc.features.keys import command
from svc.features.organizations import command
from svc.cli.store import store
print(*sorted({"quart", "hypercorn", "cryptography.x509", "ua_parser", "svc.serve.service"} & set(sys.modules)))
import svc.cli.serve.processes
print(*sorted({"psycopg"} & set(sys.modules)))
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True, timeout=60) == "\n\n\n"


def test_no_crash_writes_a_core_which_would_have_the_pepper():
    code = """
import resource, sys, svc.cli
of = resource.RLIMIT_CORE
most = resource.getrlimit(of)[1]
resource.setrlimit(of, (most, most))
sys.argv = ["svc", "--version"]
try:
    svc.cli.main()
finally:
    print(*(now == then for now, then in zip(resource.getrlimit(of), (0, most))))
"""
    said = subprocess.check_output([sys.executable, "-c", code], text=True, timeout=60)
    assert said.splitlines()[1:] == ["True True"], "the limit itself may be raised again"
    refused = code.replace("try:", "def refuse(*_): raise PermissionError\nresource.setrlimit = refuse\ntry:", 1)
    said = subprocess.check_output([sys.executable, "-c", refused], text=True, timeout=60)
    assert len(said.splitlines()) == 2, "a sandbox may not permit it"


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "svc", "--version"], capture_output=True, timeout=60, check=True)
    assert done.stdout.decode().strip() == subprocess.check_output([*PROGRAM, "--version"], text=True).strip()
    unknown = subprocess.run([sys.executable, "-m", "svc", "nothing"], capture_output=True, timeout=60, check=False)
    assert unknown.returncode == 2
    assert unknown.stderr.startswith(b"Usage: svc ")


def test_replay_says_what_to_install_where_its_package_is_missing():
    """It is beside `svc` in the wheel; everything else works without it (docs/adr/0198)."""
    without = "import sys; sys.modules['svc_replay'] = None; import svc.cli; svc.cli.main()"

    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", without, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=ENVIRONMENT)

    refused = ran("replay", "traffic.jsonl")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "svc: `svc replay` is in the package svc_replay, which is not installed beside svc: "
        "install svc-visitor-id again, which has both\n"
    )
    assert "replay" in ran("--help").stdout
    assert ran("signals").returncode == 0


def test_no_command_needs_the_driver_of_postgresql_where_the_store_is_a_directory(tmp_path: Path):
    """It is an extra: without it everything else works, and a URL of a database is refused with what to install."""
    without = "import sys; sys.modules['psycopg'] = None; import svc.cli; svc.cli.main()"

    def ran(*arguments: object, **settings: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", without, *map(str, arguments), "--data", str(tmp_path)]
        environment = {**ENVIRONMENT, **settings}
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)

    for command in (("org", "create", "Shop"), ("org", "list"), ("doctor",), ("check",)):
        done = ran(*command)
        assert "psycopg" not in done.stderr, done.stderr
    database = {"SVC_STORE": "postgresql://svc@127.0.0.1:1/svc"}
    for command in (("org", "list"), ("serve",)):
        refused = ran(*command, **database)
        assert refused.returncode == 1
        assert "pip install 'psycopg[binary]'" in refused.stderr, "no package by the name of ours is on an index"
        assert len(refused.stderr.splitlines()) == 1


def test_dev_starts_from_nothing_and_prints_commands_that_work(tmp_path: Path):
    """Also where it listens at the setting `bind`, and keeps its data elsewhere than by default."""
    port, data = free_port(), tmp_path / "my data"
    environment = {**ENVIRONMENT, "SVC_BIND": f"127.0.0.1:{port}"}
    process = subprocess.Popen(
        [*PROGRAM, "dev", "--data", data], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    try:
        shown = read_until(process, "Ctrl-C")
        assert f"  http://127.0.0.1:{port}/try " in shown.split("\n\n")[1], "the page to begin with comes first"
        assert re.search(r"on its first visit +a new visitor, (\w+);", shown)
        assert re.search(r"after a browser update.* known visitor (\w+), \d+ % sure; suspect score 0 \(low\)", shown)
        assert '"visitor_is_new": false' in shown
        curl = next(line for line in shown.splitlines() if line.startswith("curl "))
        first, again = (json.loads(subprocess.check_output(shlex.split(curl), timeout=20)) for _ in range(2))
        assert again["visitor_id"] == first["visitor_id"]
        assert again["visitor_confidence"] == 100
        listen = next(line for line in shown.splitlines() if line.startswith("Receive its webhooks: "))
        words = shlex.split(listen.partition(": ")[2])
        options = ["--data", str(data)]
        assert words == ["svc", "webhook", "listen", "--forward-to", "http://localhost:3000/hook", *options]
        assert f"To fetch free ones: svc data update --data '{data}'" in shown
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_dev_ends_quietly_when_the_reader_of_what_it_prints_has_left(tmp_path: Path):
    command = ("dev", "--data", tmp_path, "--bind", f"127.0.0.1:{free_port()}")
    process = start(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
    assert process.stdout is not None
    process.stdout.close()
    _, said = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "serving" in said
    assert "Traceback" not in said


def test_dev_says_that_it_cannot_be_reached_where_it_listens(tmp_path: Path):
    """In a network of its own, whose loopback interface is down."""
    command = ["unshare", "-r", "-n", *PROGRAM, "dev", "--data", str(tmp_path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=ENVIRONMENT, check=False)
    except OSError:
        pytest.skip("there is no unshare")
    if "unshare failed" in done.stderr or "Operation not permitted" in done.stderr:
        pytest.skip("this machine lets nobody make a network namespace")
    assert done.returncode == 1
    line = next(line for line in done.stderr.splitlines() if line.startswith("svc: "))
    assert (
        line == "svc: this service serves at http://127.0.0.1:8080, and cannot be reached there: Network is unreachable"
    )
    assert "Traceback" not in done.stderr


def test_a_second_dev_start_recognizes_the_sample_and_keeps_its_keys(tmp_path: Path):
    """Also where it listens on every address, which is none that a link can name."""
    origin = "http://192.168.1.20:3000"
    printed: list[list[str]] = []
    for place, more in enumerate(((), ("--origin", origin))):
        port = free_port()
        command = ("dev", "--data", tmp_path, "--bind", f"0.0.0.0:{port}", *more)
        process = start(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        shown = read_until(process, "Ctrl-C")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert ("a new visitor" in shown) == (place == 0)
        assert ("100 % sure" in shown) == (place == 1)
        assert ("on its first visit" in shown) == (place == 0)
        assert f"http://127.0.0.1:{port}/docs" in shown
        assert "0.0.0.0" not in shown
        printed.append(re.findall(r"\bsvc_[psm]k_\w+", shown)[:3])
    assert printed[0] == printed[1]
    (organization,) = run_json("org", "list", "--data", str(tmp_path))["organizations"]
    keys = run_json("key", "list", organization["organization_id"], "--data", str(tmp_path))["keys"]
    assert [key["status"] for key in keys] == ["active"] * 3
    (origins,) = [key["allowed_origins"] for key in keys if key["kind"] == "public"]
    assert origins[-1] == origin
    assert len(origins) <= 3, "beside the service's own, once for each start where it has an address"
    assert organization["name"] == "development"
    run("check", "--data", str(tmp_path))


def test_serve_drains_on_sigterm_and_exits_with_0(tmp_path: Path):
    run_json("org", "create", "shop", "--data", str(tmp_path))
    served = Served(tmp_path)
    assert served.terminate() == 0
    assert any('"stopped"' in line for line in served.log)


def test_serve_logs_text_on_a_terminal(tmp_path: Path):
    run("org", "create", "Shop", "--data", str(tmp_path / "data"))
    terminal, of_process = pty.openpty()
    command = [*PROGRAM, "serve", "--data", str(tmp_path / "data"), "--bind", "127.0.0.1:0"]
    process = subprocess.Popen(command, stderr=of_process, env=ENVIRONMENT)
    os.close(of_process)
    with os.fdopen(terminal) as lines:
        line = next(line for line in lines if "serving" in line)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert "\x1b[" in line, "it has colors"
    assert not line.startswith("{")


def test_serve_rejects_unusable_settings_in_one_line(tmp_path: Path):
    assert "svc org create" in run("serve", "--data", str(tmp_path / "none"), status=2).stderr
    run_json("org", "create", "shop", "--data", str(tmp_path))
    run_json("org", "create", "shop", "--data", str(tmp_path / "other"))
    unknown = run("serve", "--data", str(tmp_path), status=1, SVC_COLOUR="red").stderr
    assert unknown.count("\n") == 1
    assert "SVC_COLOUR" in unknown
    served = Served(tmp_path)
    try:
        bind = f"127.0.0.1:{served.port}"
        taken = run("serve", "--data", str(tmp_path / "other"), "--bind", bind, status=1).stderr
        assert taken.count("\n") == 1
        assert str(served.port) in taken
    finally:
        served.terminate()
    (tmp_path / "pepper").rename(tmp_path / "hidden")
    assert "SVC_PEPPER_FILE" in run("serve", "--data", str(tmp_path), status=1).stderr
    (tmp_path / "pepper").write_bytes(os.urandom(32))
    assert "is not the pepper" in run("serve", "--data", str(tmp_path), status=1).stderr


def test_the_pepper_is_readable_by_its_owner_only_and_no_secret_is_in_the_store(tmp_path: Path):
    organization = run_json("org", "create", "shop", "--data", str(tmp_path))["organization_id"]
    secret = run_json(
        "key", "issue", organization, "--kind", "secret", "--environment", "production", "--data", str(tmp_path)
    )["secret"]
    assert (tmp_path / "pepper").stat().st_mode & 0o077 == 0
    stored = (tmp_path / "store" / "data.mdb").read_bytes()
    assert secret.encode() not in stored
    assert secret.rsplit("_", 1)[1][:43].encode() not in stored
    assert (tmp_path / "pepper").read_bytes() not in stored


def test_serve_rejects_a_corrupt_store_with_what_to_do(tmp_path: Path):
    """The number of the first page after those of the commits is another by one bit."""
    data = tmp_path / "data"
    run("org", "create", "shop", "--data", str(data))
    with (data / "store" / "data.mdb").open("r+b") as file:
        pages = file.read()
        place = next(
            at for at in range(2 * 4096, len(pages), 4096) if pages[at : at + 8] == (at // 4096).to_bytes(8, "little")
        )
        file.seek(place)
        file.write(bytes([pages[place] ^ 64]))
    for command in (("serve", "--bind", "127.0.0.1:0"), ("backup", str(tmp_path / "backup"))):
        refused = run(*command, "--data", str(data), status=1)
        assert refused.stderr.startswith("svc: corrupt: ")
        assert "svc restore" in refused.stderr


def test_a_change_whose_output_is_lost_is_no_refusal_that_a_script_would_repeat(tmp_path: Path):
    """A refusal is status 1, and who tries again after one gives no credit twice (docs/adr/0255)."""
    organization = run_json("org", "create", "shop", "--data", str(tmp_path))["organization_id"]
    credit = ("org", "credit", organization, "--usd", "25", "--json", "--data", str(tmp_path))
    read, nobody_reads = os.pipe()
    os.close(read)

    def ran(output: IO[str], *arguments: str) -> subprocess.CompletedProcess[str]:
        words = [*PROGRAM, *arguments]
        return subprocess.run(words, stdout=output, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True, check=False)

    with Path("/dev/full").open("w") as full, os.fdopen(nobody_reads, "w") as closed:
        for output, reason in ((full, "No space left on device"), (closed, "Broken pipe")):
            lost = ran(output, *credit)
            assert lost.returncode == 3
            assert lost.stderr == (
                f"svc: the change is made, but not all of its output could be written ({reason}): do not repeat it; "
                "`svc audit` shows it\n"
            )
            assert ran(output, "org", "show", organization, "--data", str(tmp_path)).returncode == 1
    assert run_json("org", "show", organization, "--data", str(tmp_path))["balance_usd"] == "50"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("org", "credit", "ORG", "--usd", "-1"), 3),
        (("org", "show", "nobody"), 1),
        (("config", "check"), 0),
        (("org", "nothing"), 2),
    ],
)
def test_the_exit_status_holds_where_standard_error_is_a_file_on_a_full_disk(
    tmp_path: Path, words: tuple[str, ...], status: int
):
    organization = run_json("org", "create", "shop", "--data", str(tmp_path))["organization_id"]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [*PROGRAM, *(organization if word == "ORG" else word for word in words)],
            stdout=subprocess.DEVNULL,
            stderr=full,
            env={**ENVIRONMENT, "SVC_DATA": str(tmp_path)},
            check=False,
        )
    assert ran.returncode == status


def test_output_to_a_full_disk_is_one_line_and_status_1():
    with Path("/dev/full").open("w") as full:
        told = subprocess.run(
            [*PROGRAM, "config", "check"], stdout=full, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True, check=False
        )
    assert told.returncode == 1
    assert "No space left on device; free some space" in told.stderr
    assert told.stderr.count("\n") == 1
