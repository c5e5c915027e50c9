"""The running `svc dev` as other commands reach it: with the keys that it keeps in its data directory."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from svc.command.data_directory import reading
from svc.command.local_service import KEYS_FILE, DevelopmentKeys, read_keys
from svc.command.output import CommandError, directory_option
from svc.kernel.tenants import queries as lookups

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
                account.organization.id: account.organization.number
                for account in lookups.accounts(snapshot)
                if account.organization.name == NAME and account.organization.removed_at_ms is None
            }
        if not numbers:
            raise CommandError(f"{directory} has no organization named {NAME}: start `svc dev --data {directory}`")
        self.organization_id, self.number = next(iter(numbers.items()))

    def manage(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        """Return a request to the management API below the organization's own path; returns status and response. Raises
        `CommandError` if the service does not answer, or not as this service does.
        """
        connection = http.client.HTTPConnection(self.address, timeout=15)
        headers = {"x-api-key": self.keys.management, "content-type": "application/json"}
        try:
            with closing(connection):
                target = f"/api/v1/management/organizations/{self.organization_id}{path}"
                connection.request(method, target, None if body is None else json.dumps(body), headers)
                response = connection.getresponse()
                content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self.unreachable(error) from error
        try:
            return response.status, json.loads(content or b"{}")
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
