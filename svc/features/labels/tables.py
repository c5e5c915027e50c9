"""The tables of labels: outcomes with their counts, and labels of visitors and accounts."""

from __future__ import annotations

import msgspec

from svc.features.labels.outcomes import OUTCOME_MS, OutcomeSegment
from svc.features.labels.performance import DayOutcomes, LabelCounts
from svc.identify.model import SUBJECTS
from svc.identify.velocity.counts import KINDS
from svc.kernel.store.schema.codec import Key, Layout, Record, Signed
from svc.kernel.store.schema.key_parts import (
    DAY,
    U32,
    U64,
    UUID_V7,
    index_of,
)
from svc.kernel.store.schema.table import (
    WITH_ORGANIZATION,
    ErasedBy,
    KeptFor,
    NotPersonal,
    Swept,
    Table,
    With,
)
from svc.kernel.values.fields import ENVIRONMENTS


class NumberedAccount(msgspec.Struct, frozen=True, array_like=True):
    """An account that outcomes know by a number. Append fields with defaults, never move them."""

    digest: int
    """As of `velocity.account_digest`."""
    last_day: int
    """The latest UTC day of an outcome that names it."""


OUTCOMES = Table(
    "outcomes",
    Key(organization=U32, request_id=UUID_V7),
    Layout(OutcomeSegment.pack, OutcomeSegment.unpack),
    KeptFor(OUTCOME_MS),
    NotPersonal("visitors and accounts stand in it by numbers, which lead nowhere once they are erased"),
    invariants=("labels",),
    since=6,
)
"""Outcomes of events that are deleted: up to 512 of one UTC day in a row, by the request id of its newest (ADR 119)."""
OUTCOME_DAYS = Table(
    "outcome_days",
    Key(organization=U32, environment=index_of(ENVIRONMENTS), day=DAY),
    Layout(DayOutcomes.pack, DayOutcomes.unpack),
    With("outcomes"),
    NotPersonal("counts of a day, which stay when a visitor is erased (decisions 14.1)"),
    invariants=("labels",),
    since=6,
)
"""Always what the archived outcomes and all labels of a day add up to; a day without any has no row."""
ACCOUNT_NUMBERS = Table(
    "account_numbers",
    Key(organization=U32, account=U64),
    Signed("number"),
    With("numbered_accounts"),
    ErasedBy("forget_labels"),
    invariants=("labels",),
    since=6,
)
"""By the digest of an account: the number by which outcomes know it."""
NUMBERED_ACCOUNTS = Table(
    "numbered_accounts",
    Key(organization=U32, account=U32),
    Record(NumberedAccount),
    Swept("when no outcome names it any more"),
    ErasedBy("forget_labels"),
    invariants=("labels",),
    since=6,
)
"""By that number."""
ACCOUNT_NUMBER_COUNTS = Table(
    "account_number_counts",
    Key(organization=U32),
    Signed("given"),
    WITH_ORGANIZATION,
    NotPersonal("a count"),
    since=6,
)
"""The highest number that was given to an account. None is given twice."""
SUBJECT_LABELS = Table(
    "subject_labels",
    Key(organization=U32, kind=index_of(KINDS), subject=index_of(SUBJECTS), id=U32),
    Record(LabelCounts),
    With("outcomes"),
    ErasedBy("forget_labels"),
    invariants=("labels",),
    since=6,
)
"""By the number of a visitor or an account: its labeled events, stored and archived. One without any has no row."""
