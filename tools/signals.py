"""The page `docs/signals.md`: the catalog of signals and how their scores add up.

What may live here: the page. Its tables come from the catalog itself; `tools.reference` prints it.
"""

from __future__ import annotations

from itertools import groupby

from svc.identify.scoring.score import DEFAULT_THRESHOLD
from svc.identify.scoring.signals import CATALOG, EVIDENCE, MAX_WEIGHT, Signal
from svc.kernel.values.fields import PLATFORMS


def page() -> str:
    """The page `docs/signals.md`, whole."""
    parts = [_INTRODUCTION]
    for group, members in groupby(CATALOG.values(), key=lambda signal: signal.group):
        parts.append("\n".join([f"### {group}", "", *_table(list(members))]))
    return "\n\n".join([*parts, _RULES, _evidence()]) + "\n"


def _table(members: list[Signal]) -> list[str]:
    return [
        f"| signal | {' | '.join(PLATFORMS)} | means | fires on |",
        f"| --- |{' ---: |' * len(PLATFORMS)} --- | --- |",
        *[f"| `{signal.name}` | {_weights(signal)} | {_meaning(signal)} | {signal.fires_on} |" for signal in members],
    ]


def _meaning(signal: Signal) -> str:
    return signal.description if signal.mode is None else f"{signal.description} Mode `{signal.mode}`."


def _weights(signal: Signal) -> str:
    """A cell for the default weight on each platform; empty where the platform does not know the signal."""
    return " | ".join(str(signal.weights.get(platform, "")) for platform in PLATFORMS)


def _evidence() -> str:
    rows = [f"| `{name}` | {sentence} |" for name, sentence in sorted(EVIDENCE.items())]
    return "\n".join([_EVIDENCE, "", "| name | means |", "| --- | --- |", *rows])


_INTRODUCTION = f"""\
# Signals

This page is generated from the catalog of signals (`make reference`).

A signal is one observed risk indicator. It belongs to a group and has a weight from 0 to {MAX_WEIGHT} on each platform
that knows it. The identify response lists each signal that fired under `triggers`. Events and webhooks list signals
under `signals`, and their groups under `triggers`, with the weights of a group added and its highest confidence.

The suspect score is the sum of the weights. The level is `low` below the threshold T, `medium` from T and `high` from
2T; T is {DEFAULT_THRESHOLD} by default. One piece of hard evidence reaches it alone. Ordinary privacy measures stay
below, even a VPN, a private window and a hardened browser together. A signal with weight 0 does not fire.

The platform is `ios` or `android` if `sdk.platform` is or ends with that name, otherwise `web`. Names are permanent. A
stored configuration counts signals that are newer than itself as 0.

## Catalog"""

_RULES = """\
## Confidence of a trigger

Confidence tells how well a trigger is supported. It does not change its weight.

- `high`: conclusive evidence, such as a driver's flag, or two proofs from different sources.
- `medium`: one proof without an ordinary explanation.
- `low`: heuristics only.

Two findings from one source, such as the user agent in the header and in the page, are one proof.

## Suppressed signals

- `tor` suppresses the group `vpn`; `vpn_relay` suppresses `vpn_public`, even if their own weight is 0.
- Tor, VPN and relay suppress `hosting`, and so does a crawler at its own operator's address.
- `anonymity_network` on an event is the strongest of tor, vpn (including relays), proxy and hosting.

## Weighing VPNs and residential proxies

The groups `vpn` and `residential_proxy` have two sets of weights and a switch:

- `method` (default): by detection method. Several methods can fire, and their weights add up.
- `confidence`: by certainty. One of `low` (one indication), `medium` (one proof) and `high` (two proofs) fires.

The weights of the inactive set are stored but not used.

## Precedence of weights

For each platform as a whole: the configuration of the SDK key, then that of the organization, then the defaults on this
page.

## Observations that are not signals

Software rendering, a missing plugin, the time zone UTC and a Linux without fonts are too common to count. Automation
shows several of them. Values that a browser randomizes on purpose are not compared and count only as
`privacy_settings`."""

_EVIDENCE = """\
## Evidence

The single read of an event lists under `document.evidence` what each signal observed. The signal's confidence tells how
much follows from it. Names may be added and removed in any version."""
