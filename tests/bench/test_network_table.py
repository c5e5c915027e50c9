"""The table of labeled addresses: what it must show with the built-in ranges, and that databases are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.detection.network import LABELS, lists_table, network_table


def column(table, place: int) -> dict[str, float]:
    return {row[0]: float(row[place]) for row in table.rows if row[place] != "-"}


@pytest.mark.slow
def test_the_built_in_ranges_match_their_categories_and_no_residential_addresses(shared_data: Path, tmp_path: Path):
    (tmp_path / "hosting.txt").write_text("185.0.0.0/8\n")
    table = network_table(shared_data, tmp_path)
    assert tuple(row[0] for row in table.rows) == LABELS
    alone, with_a_list = column(table, 3), column(table, 5)
    assert alone["relay"] == 1
    assert alone["tor"] > 0.8
    assert alone["vpn"] > 0.6
    assert alone["hosting"] > 0.55
    assert alone["residential"] == 0
    assert with_a_list["hosting"] > alone["hosting"]
    assert "µs" in table.text()
    assert len(network_table(shared_data).header) == len(table.header) - 2


@pytest.mark.slow
def test_lists_independent_of_the_labels_find_vpns_and_no_residential_addresses(shared_data: Path):
    """Docs/adr/0028: without any database, and with the lists as `svc data update` would install them."""
    table = lists_table(shared_data)
    shares = {row[0]: dict(zip(table.header[1:], map(float, row[1:]), strict=True)) for row in table.rows}
    alone, listed, all_lists = (
        shares[title] for title in ("built-in ranges", "and all VPN lists, listed addresses only", "and all VPN lists")
    )
    assert alone["vpn named vpn"] < 0.35
    assert listed["vpn named vpn"] < 0.5
    assert all_lists["vpn named vpn"] >= 0.85
    assert all_lists["vpn"] >= 0.9
    assert all_lists["tor"] >= 0.93
    assert all_lists["relay"] == 1
    assert all_lists["hosting"] >= alone["hosting"]
    assert all(row["residential"] == 0 for row in shares.values())
    assert all_lists["others named vpn"] <= 3
