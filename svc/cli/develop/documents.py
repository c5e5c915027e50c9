"""`svc openapi` and `svc collection`: the published documents, without a running service."""

from __future__ import annotations

import click

from svc.command.help import examples
from svc.command.output import CommandError
from svc.features.routes import API
from svc.http.openapi.collection import BASE_URL
from svc.http.openapi.collection import collection as request_collection
from svc.http.openapi.document import OF_API, OF_CONSOLE, emit, encode
from svc.kernel.net.origins import normalize_origin


@click.command(epilog=examples("svc openapi > openapi.json"))
@click.option("--console", is_flag=True, help="Print the document of what the console reads instead.")
def openapi(*, console: bool) -> None:
    """Print the OpenAPI 3.1 document of the API."""
    click.echo(encode(emit(API, OF_CONSOLE if console else OF_API)), nl=False)


@click.command(epilog=examples("svc collection > collection.json", "svc collection --url https://svc.example.com"))
@click.option("--url", default=BASE_URL, show_default=True, help="Where the service is reached.")
def collection(*, url: str) -> None:
    """Print the request collection for API tools, in Postman's v2.1 format."""
    origin = normalize_origin(url.rstrip("/"))
    if origin is None:
        raise CommandError(f"--url {url}: expected an address such as https://svc.example.com")
    click.echo(encode(request_collection(emit(API), origin)), nl=False)
