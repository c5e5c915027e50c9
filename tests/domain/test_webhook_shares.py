"""Shares: each endpoint in one of them, and all of them divided among however many processes there are."""

from __future__ import annotations

from collections import Counter

import pytest

from svc.features.webhooks.queues import ENDPOINT_SLOTS, ORGANIZATION_SLOTS, organization_slots
from svc.kernel.values.partitions import PARTITIONS, EndpointKey, above_part, part_of, partition_of


def test_the_share_of_an_endpoint_never_changes():
    """It is agreed between processes, of other versions too."""
    keys = [EndpointKey(1, 1), EndpointKey(1, 2), EndpointKey(7, 1), EndpointKey(0x7FFFFFFF, 0xFFFFFFFF)]
    assert [partition_of(key) for key in keys] == [38, 13, 49, 10]


@pytest.mark.parametrize("living", [1, 2, 3, 5, 7, 63, 64, 65, 200])
def test_the_parts_of_all_processes_add_up_and_differ_by_one_at_most(living: int):
    parts = [part_of(rank, living) for rank in range(living)]
    assert sum(parts) == PARTITIONS
    assert max(parts) - min(parts) <= 1


@pytest.mark.parametrize("nodes", [2, 3])
def test_ten_endpoints_of_any_organization_are_spread(nodes: int):
    for organization in range(1, 200):
        of_nodes = Counter(
            partition_of(EndpointKey(organization, endpoint)) * nodes // PARTITIONS for endpoint in range(1, 11)
        )
        assert max(of_nodes.values()) <= 10 // nodes + 2


def test_many_organizations_use_the_shares_evenly():
    used = Counter(partition_of(EndpointKey(organization, 1)) for organization in range(1, 6401))
    assert len(used) == PARTITIONS
    assert max(used.values()) < 2 * 100


def test_excess_shares_are_released_highest_number_first():
    assert above_part({5, 1, 9, 3}, 2) == {5, 9}
    assert above_part({5, 1}, 2) == frozenset()
    assert above_part(range(64), 0) == frozenset(range(64))


def test_slots_of_an_organization_are_divided_between_nodes_but_suffice_for_one_endpoint():
    assert [organization_slots(senders) for senders in (1, 2, 3, 4, 64)] == [32, 16, 11, 8, 8]
    assert organization_slots(1) == ORGANIZATION_SLOTS
    assert organization_slots(1000) == ENDPOINT_SLOTS
