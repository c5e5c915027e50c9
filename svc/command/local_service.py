"""A service on this machine, as commands find it and send to it: its address, the keys of `svc dev`, the sample
reports.
"""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import msgspec

from svc.command.data_directory import reading
from svc.command.output import CommandError, directory_option
from svc.kernel.config import Config
from svc.kernel.store.files.serve_lock import is_held_by
from svc.kernel.tenants import queries as lookups

KEYS_FILE = "dev-keys.json"
"""In the data directory."""


class DevelopmentKeys(msgspec.Struct, frozen=True):
    """The development keys, and the address at which they are used; empty fields are unknown."""

    url: str = ""
    """Of the service, as of its last start, without a slash at the end."""
    organization_id: str = ""
    public: str = ""
    secret: str = ""
    management: str = ""


def read_keys(directory: Path) -> DevelopmentKeys:
    """Return the keys in the file; empty if there is none, or if it cannot be understood."""
    try:
        return msgspec.json.decode((directory / KEYS_FILE).read_bytes(), type=DevelopmentKeys)
    except (FileNotFoundError, msgspec.DecodeError):
        return DevelopmentKeys()


def local_url(config: Config, directory: Path) -> str:
    """Return the URL of the service of a data directory on this machine, without a trailing slash. For a running `svc
    dev`, whose address is given on the command line, it is the one written beside its keys.
    """
    if is_held_by(directory, "svc dev") and (url := read_keys(directory).url):
        return url
    return f"{'http' if config.tls_certfile is None else 'https'}://{reachable(config.bind)[0]}"


def reachable(bind: str) -> tuple[str, str | None]:
    """Return the HOST:PORT to open on this machine, and the one for other devices if the service listens on all
    addresses. `0.0.0.0`, `[::]` and an empty host stand for every address, and browsers cannot open them.
    """
    host, _, port = bind.rpartition(":")
    if host == "[::]":
        family, loopback, outside = socket.AF_INET6, "[::1]", "2001:db8::1"
    elif host in ("", "0.0.0.0"):  # noqa: S104  compared, not listened on
        family, loopback, outside = socket.AF_INET, "127.0.0.1", "192.0.2.1"
    else:
        return bind, None
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((outside, 9))  # sends nothing: asks which address packets to elsewhere leave from
            address = probe.getsockname()[0]
    except OSError:
        return f"{loopback}:{port}", None
    return f"{loopback}:{port}", f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


SAMPLE_ADDRESS = "81.2.69.160"
"""A public address for the samples: this machine's own is private, and so has no network facts."""
AUTOMATED = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/126.0.0.0 Safari/537.36"
)
"""The user agent of an automated browser."""


def identify_sample(address: str, secret: str, sample: str, *, automated: bool = False) -> dict[str, Any]:
    """Send a bundled sample report with a secret key to the service at HOST:PORT, the visitor's details forwarded;
    returns the response. `automated` sends it as a browser that a program drives. Raises `CommandError` if it is
    refused, and `OSError` where nothing answers.
    """
    report = json.loads(files("svc.identify.samples").joinpath(f"{sample}.json").read_bytes())
    signals = report["signals"]
    if automated:
        signals = {**signals, "webdriver": True}
    body = {"sdk": {"platform": "web", "version": "0.1.0"}, "signals": signals}
    status, response = post(address, secret, body, AUTOMATED if automated else report["user_agent"])
    if status != http.HTTPStatus.OK:
        raise CommandError(f"the sample report was refused: {response['error']['message']}")
    return response


def post(address: str, secret: str, body: Any, user_agent: str) -> tuple[int, dict[str, Any]]:
    """Send a body to identify as a customer's server does; return the status and the response."""
    headers = {
        "content-type": "application/json",
        "x-api-key": secret,
        "x-svc-visitor-ip": SAMPLE_ADDRESS,
        "x-svc-visitor-user-agent": user_agent,
        "x-svc-visitor-origin": "https://shop.example",
    }
    status, content = _sent(address, "POST", "/api/v1/identify", body, headers, timeout_s=10)
    return status, json.loads(content)


def _sent(
    address: str, method: str, target: str, body: Any, headers: dict[str, str], timeout_s: float
) -> tuple[int, bytes]:
    """Send a request, whose body is JSON where there is one; return status and content of the response."""
    with closing(http.client.HTTPConnection(address, timeout=timeout_s)) as connection:
        connection.request(method, target, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read()


NAME = "development"
"""Of the organization of `svc dev`."""

SERVICE = "http://127.0.0.1:8080"
"""Where `svc dev` listens by default."""
dev_data_option = directory_option("The data directory of `svc dev`.", default=Path("data"), show_default=True)
service_option = click.option(
    "--service", metavar="URL", help="Where `svc dev` listens, instead of where it wrote that it does."
)


class DevService:
    """A running `svc dev`: its address, its keys and its organization. `url`: the address it listens on; `None` = the
    one in its file of keys. Raises `CommandError` if that is not an HTTP URL or the directory has no development keys,
    and `DirectoryError` if it has no store.
    """

    def __init__(self, directory: Path, url: str | None) -> None:
        self.keys: DevelopmentKeys = read_keys(directory)
        url = url or self.keys.url or SERVICE
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise CommandError(f"{url} is not where `svc dev` listens: write --service {SERVICE}")
        self.url, self.address = url, parts.netloc
        if not self.keys.management:
            raise CommandError(
                f"{directory / KEYS_FILE} has no development keys: start `svc dev --data {directory}`, or name its "
                "directory"
            )
        with reading(directory) as store, store.read() as snapshot:
            numbers = {
                found.id: found.number
                for found in lookups.all_organizations(snapshot)
                if found.name == NAME and found.removed_at_ms is None
            }
        if not numbers:
            raise CommandError(f"{directory} has no organization named {NAME}: start `svc dev --data {directory}`")
        self.organization_id, self.number = next(iter(numbers.items()))

    def manage(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        """Send a request to the management API below the organization's own path; return status and response. Raises
        `CommandError` if the service does not answer, or not as this service does.
        """
        headers = {"x-api-key": self.keys.management, "content-type": "application/json"}
        target = f"/api/v1/management/organizations/{self.organization_id}{path}"
        try:
            status, content = _sent(self.address, method, target, body, headers, timeout_s=15)
        except (OSError, http.client.HTTPException) as error:
            raise self.unreachable(error) from error
        try:
            return status, json.loads(content or b"{}")
        except ValueError as error:
            raise CommandError(f"what listens at {self.url} is not this service") from error

    def managed(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Send a management request as `manage` does; raise `CommandError` with the message of a refusal."""
        status, response = self.manage(method, path, body)
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise CommandError(_refusal(response))
        return response

    def unreachable(self, error: Exception) -> CommandError:
        """Return the error to raise where the service does not answer."""
        return CommandError(f"no service listens at {self.url} ({error}): start `svc dev`, or name it with --service")


def _refusal(response: dict[str, Any]) -> str:
    error = response.get("error", {})
    details = "; ".join(f"{detail['field']}: {detail['issue']}" for detail in error.get("details", ()))
    return f"the service refused: {error.get('message', response)}" + (f" ({details})" if details else "")
