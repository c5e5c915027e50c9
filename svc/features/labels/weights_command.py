"""`svc weights`: what labels suggest (decisions 14.3)."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from svc.command.help import examples
from svc.command.operation import Operation, OrganizationGroup
from svc.command.output import CommandError, ShownTable, kind_option
from svc.identify.queries.weights import weights_in_force
from svc.identify.velocity.counts import EnvironmentKind
from svc.kernel.values.fields import PLATFORMS, Platform

_SUGGESTION = ("platform", "fraud", "legitimate", "suspect_threshold", "before", "after", "weights")
"""Of the response of the API."""


@click.group(cls=OrganizationGroup)
def weights() -> None:
    """Show which weights the labels of events suggest."""


@weights.command(
    "suggest",
    reads=True,
    epilog=examples(
        "svc weights suggest ORG",
        "svc weights suggest ORG --output weights.json",
        "svc weights suggest ORG --platform android --environment test --json",
    ),
)
@click.option("--platform", type=click.Choice(PLATFORMS), default="web", show_default=True, help="Of the weights.")
@kind_option
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the suggested weights here.")
def suggest_(operation: Operation, platform: Platform, kind: EnvironmentKind, output: Path | None) -> None:
    """Suggest weights from the labels of an organization, beside today's. Nothing is changed.

    At least 50 events of each label are needed. Precision and recall are by cross-validation. --output writes what
    `svc replay --weights` reads; the object under the platform is what PUT risk-weights takes.
    """
    route = "labels.routes.getWeightsSuggestion"
    found = operation.call(route, platform=platform, query={"environment": kind})
    if "before" not in found:
        raise CommandError(
            f"{operation.organization_id} has {found['fraud']} events labeled as fraud and {found['legitimate']} as "
            f"legitimate ({kind}, {platform}); weights are suggested from {found['needed']} of each on"
        )
    if output is not None:
        with operation.store.read() as snapshot:
            in_force = weights_in_force(snapshot, operation.number, None, platform).weights
        chosen = in_force | {one["signal"]: one["after"] for one in found["weights"]}
        body = {platform: {"suspect_threshold": found["suspect_threshold"], "weights": chosen}}
        output.write_bytes(msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n")
    if operation.as_json:
        operation.show({name: found[name] for name in _SUGGESTION})
        return
    operation.show(
        {
            "platform": platform,
            "labeled": f"{found['fraud']} fraud, {found['legitimate']} legitimate",
            "threshold": found["suspect_threshold"],
            "today": _said(found["before"]),
            "suggested": _said(found["after"]),
        },
        ShownTable("weights", found["weights"], ("signal", "before", "after", "events", "fraud")),
    )


def _said(quality: dict[str, float | None]) -> str:
    precision, recall = ("none" if value is None else f"{value:.1%}" for value in quality.values())
    return f"precision {precision}, recall {recall}"
