"""Every reader of what strangers send, with some hundreds of made-up inputs. `make fuzz` goes on for longer."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz import TARGETS
from tests.support.effort import effort

EXAMPLES = effort(20, 200)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_no_input_breaks_its_reader(name: str):
    target = TARGETS[name]

    @settings(
        max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(target.inputs)
    def holds(sent: object) -> None:
        found = target.read(sent)
        assert found == target.read(sent)
        target.check(sent, found)

    holds()
