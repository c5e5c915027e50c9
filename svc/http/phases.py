"""The phases of a connection and the steps between them: one table, and one function that takes a step."""

from __future__ import annotations

import enum


class Phase(enum.IntEnum):  # of which a hash, unlike that of `Enum`, costs next to nothing
    """Where a connection is in its present request: it decides which deadline holds."""

    IDLE = enum.auto()
    HEAD = enum.auto()
    """The first byte is there, the head is not complete."""
    BODY = enum.auto()
    """A handler runs and the body is not complete."""
    RESPONSE = enum.auto()
    """All has been read, or a response has begun. The handler's time is its own, each write has its limit."""
    CLOSING = enum.auto()
    """The first of those in which nothing is read any more, and no request follows."""
    LINGERING = enum.auto()
    """Closing, and what still comes is dropped, so that no reset is sent."""
    CUT = enum.auto()
    """Nothing more reaches the client."""


IDLE, HEAD, BODY, RESPONSE, CLOSING, LINGERING, CUT = Phase
# By these names, since the name of a member within its class is looked up by Python code: ten times the cost.


class Step(enum.IntEnum):
    """What moves a connection from one phase to the next."""

    INPUT = enum.auto()
    """The first bytes of a request."""
    HEAD_READ = enum.auto()
    REQUEST_READ = enum.auto()
    RESPONSE_BEGUN = enum.auto()
    RESPONSE_SENT = enum.auto()
    """The response is complete, and the connection is kept for another request."""
    CLOSE = enum.auto()
    LINGER = enum.auto()
    """Close, but drop input first."""
    CUT = enum.auto()


_END = {Step.CLOSE: Phase.CLOSING, Step.LINGER: Phase.LINGERING, Step.CUT: Phase.CUT}

TRANSITIONS: dict[Phase, dict[Step, Phase]] = {
    Phase.IDLE: {Step.INPUT: Phase.HEAD, **_END},
    Phase.HEAD: {Step.HEAD_READ: Phase.BODY, **_END},
    Phase.BODY: {Step.REQUEST_READ: Phase.RESPONSE, Step.RESPONSE_BEGUN: Phase.RESPONSE, **_END},
    Phase.RESPONSE: {
        Step.REQUEST_READ: Phase.RESPONSE,
        Step.RESPONSE_BEGUN: Phase.RESPONSE,
        Step.RESPONSE_SENT: Phase.IDLE,
        **_END,
    },
    # What is still under way when the connection closes takes its steps and changes nothing.
    Phase.CLOSING: {**dict.fromkeys(Step, Phase.CLOSING), **_END},
    Phase.LINGERING: {**dict.fromkeys(Step, Phase.LINGERING), Step.CUT: Phase.CUT},
    Phase.CUT: dict.fromkeys(Step, Phase.CUT),
}
"""Every step that can be taken, by the phase in which it is taken."""


def advance(phase: Phase, step: Step) -> Phase:
    """The phase after a step. Raises `RuntimeError` for a step that `TRANSITIONS` does not have."""
    following = TRANSITIONS[phase].get(step)
    if following is None:
        raise RuntimeError(f"no {step.name} in the phase {phase.name}")
    return following
