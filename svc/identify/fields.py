"""Published types of fields that say what an event turned out to be, and how sure a signal is."""

from __future__ import annotations

from typing import Annotated, get_args

from svc.identify.model import LABEL_REASONS, Label, Level
from svc.kernel.values.fields import about, open_to

Confidence = Annotated[Level, about("How well founded it is; it does not change the weight.", "high")]


EventLabel = Annotated[
    str,
    about("What the event turned out to be; left out where nobody has said.", "fraud", form=open_to(*get_args(Label))),
]


EventLabelReason = Annotated[str, about("Why it has that label.", "chargeback", form=open_to(*LABEL_REASONS))]
