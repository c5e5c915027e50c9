"""`svc openapi` and `svc collection`: the published documents, without a running service."""

from __future__ import annotations

import click

from svc.command.help import examples
from svc.features.routes import API
from svc.http.openapi.collection import collection as request_collection
from svc.http.openapi.document import OF_API, OF_CONSOLE, emit, encode


@click.command(epilog=examples("svc openapi > openapi.json"))
@click.option("--console", is_flag=True, help="Print the document of what the console reads instead.")
def openapi(*, console: bool) -> None:
    """Print the OpenAPI 3.1 document of the API."""
    click.echo(encode(emit(API, OF_CONSOLE if console else OF_API)), nl=False)


@click.command(epilog=examples("svc collection > collection.json"))
def collection() -> None:
    """Print the request collection for API tools, in Postman's v2.1 format."""
    click.echo(encode(request_collection(emit(API))), nl=False)
