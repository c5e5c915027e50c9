"""The program `svc`. Output for people by default, one JSON object with `--json`.

Exit status: 0 done, 1 refused with one clear line, 2 usage (decisions 10).
"""

from __future__ import annotations

import sys

import click

import svc
from svc.cli.audit import audit
from svc.cli.backup import backup, restore
from svc.cli.data import check, data
from svc.cli.dev import dev
from svc.cli.documents import collection, openapi
from svc.cli.inspect import inspect
from svc.cli.keys import key
from svc.cli.logs import set_up_logging
from svc.cli.organizations import org
from svc.cli.output import Refused
from svc.cli.pepper import pepper
from svc.cli.reference import reference
from svc.cli.replay import replay
from svc.cli.serve import serve
from svc.cli.signals import signals
from svc.cli.visitors import visitor
from svc.cli.webhooks import webhook
from svc.config import ConfigError
from svc.store.codec import Corrupted
from svc.store.directory import Unusable
from svc.store.migrations import NewerStore, OlderStore
from svc.store.store import StoreFull


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(svc.__version__, prog_name="svc")
def program() -> None:
    """Visitor identification that you host yourself.

    \b
    Start here:    svc dev
    Production:    svc org create NAME --data DIR, svc key issue ..., svc serve --data DIR
    Back-testing:  svc replay FILE
    """  # noqa: D301  click reads \b as "leave these lines as they are"


for command in (
    dev,
    serve,
    replay,
    org,
    key,
    visitor,
    pepper,
    audit,
    data,
    check,
    inspect,
    backup,
    restore,
    signals,
    openapi,
    collection,
    webhook,
    reference,
):
    program.add_command(command)


def main() -> None:
    """Entry point: every log line goes to standard error; expected troubles become one line and status 1."""
    set_up_logging()
    try:
        program(prog_name="svc", standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.UsageError as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except (
        Refused,
        ConfigError,
        Unusable,
        NewerStore,
        OlderStore,
        StoreFull,
        click.ClickException,
    ) as error:
        click.echo(f"svc: {error}", err=True)
        sys.exit(1)
    except Corrupted as error:
        hint = "keep it to find the cause, and restore a sound backup (svc restore --help)"
        click.echo(f"svc: damaged: {error}; {hint}", err=True)
        sys.exit(1)
