"""The page `docs/signals.md`: the catalogue of signals and how their scores add up.

What may live here: the page. Its tables come from the catalogue itself; `tools.reference` prints it.
"""

from __future__ import annotations

from itertools import groupby

from svc.domain.explanations import EVIDENCE
from svc.domain.model import PLATFORMS
from svc.domain.scoring import DEFAULT_THRESHOLD
from svc.domain.signals import CATALOGUE, MAX_WEIGHT, Signal


def page() -> str:
    """The page `docs/signals.md`, whole."""
    parts = [_INTRODUCTION]
    for group, members in groupby(CATALOGUE.values(), key=lambda signal: signal.group):
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
# Signals: what is suspicious, and how sure we are

This page is generated from the catalogue itself (`make reference`).

A signal is one kind of suspicious thing. Each belongs to a group, exists on the platforms for which it has a weight,
and weighs there between 0 and {MAX_WEIGHT}. Every signal that fires appears once among the triggers of an answer;
events and webhooks show its group, with the weights of the group added and the highest confidence.

The suspect score is the sum of the weights in force. The level is `low` below the threshold T, `medium` from T, `high`
from 2T; T is {DEFAULT_THRESHOLD} unless it is configured. One piece of hard evidence reaches it alone. What people
ordinarily do for their privacy does not, even together: a VPN, a private window and a browser that masks itself stay
below. A signal whose weight is 0 does not trigger.

The platform is that of the request's `sdk.platform`: `ios` and `android` themselves and bridges that end so, `web` for
all else. Names are permanent. A configuration that was stored before a signal existed counts it as 0.

## The catalogue"""

_RULES = """\
## How sure

The confidence of a trigger says how well it is founded, and does not change its weight.

- `high`: something that settles it, such as a driver's flag, or two proofs from different sources.
- `medium`: one proof, which has no ordinary explanation.
- `low`: rules of thumb only.

Two findings that were read from one thing, such as the user agent in the header and in the page, are one proof.

## What silences what

- `tor` silences the whole group `vpn`; `vpn_relay` silences `vpn_public`. This follows from what the address is, and
  holds also where `tor` or `vpn_relay` weigh nothing.
- `hosting` is silent where Tor, a VPN or a relay already explains the data centre, and for a crawler that comes from
  its own operator's addresses.
- On an event, `anonymity_network` names the strongest of what applies: tor, then vpn (relays included), then proxy,
  then hosting.

## Two ways to weigh a VPN or a residential proxy

The groups `vpn` and `residential_proxy` are in a configuration twice, and each has a switch for which half counts.

- `method` (the default): by how it was noticed. Several methods may fire side by side, and their weights add up.
- `confidence`: by how sure it is. One of `low` (one indication), `medium` (one proof) and `high` (two proofs) fires.

The weights of the other mode are kept, and count nothing until the switch is turned.

## Whose weights are in force

For each platform as a whole: the configuration of the SDK key, else that of the organization, else the defaults of this
page.

## What is no signal

Software rendering, a missing plugin, a zone of UTC, a Linux without fonts: many people have one of these, so that none
of them counts by itself. Drivers have several. What a browser garbles on purpose is neither compared nor suspicious
beyond `privacy_settings`."""

_EVIDENCE = """\
## Evidence

The single read of an event names under `document.evidence` what each signal saw. A name says what was seen and no more;
how much follows from it is the signal's confidence. Names may be added and removed in any version."""
