"""Fuzzing: what is read of strangers, by name."""

from tests.fuzz import binary, reports, texts

TARGETS = {**texts.TARGETS, **reports.TARGETS, **binary.TARGETS}
