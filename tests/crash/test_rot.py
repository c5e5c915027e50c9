"""Bit rot: whatever bit of a store is flipped, nothing reads as what it is not (reliability R13).

The long form is `python -m bench.rot`, with and without `--where structure`.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from bench.rot import TURNS, examine, judge, make
from svc.identify.tables import EVENTS
from svc.kernel.store.directory import open_directory
from svc.kernel.store.snapshot import Transaction
from svc.world import World

NOTICED = ("refused at the start", "error instead of an answer", "told by the check")


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("intact")
    make(directory, days=1)
    return directory


@pytest.mark.slow(5)
@pytest.mark.one_case
@pytest.mark.parametrize("where", sorted(TURNS))
def test_no_bit_flip_causes_a_wrong_response(intact: Path, tmp_path: Path, where: str):
    outcome = judge(intact, 40, seed=1, scratch=tmp_path, turn=TURNS[where])
    assert outcome.untold == []
    assert sum(outcome.ways[way] for way in NOTICED) >= 10, f"too little was noticed to show anything: {outcome.ways}"


@pytest.mark.slow
def test_the_check_detects_a_silently_wrong_response(intact: Path, tmp_path: Path):
    """That this proof can fail: a row is another one, by its own rules and behind a checksum that is right."""
    corrupt = tmp_path / "corrupt"
    shutil.copytree(intact, corrupt)
    world = World.real()
    found = open_directory(corrupt, world.run_sync, world.entropy)

    def change(transaction: Transaction) -> None:
        key, event = next(transaction.scan(EVENTS))
        transaction.put(EVENTS, key, msgspec.structs.replace(event, origin="https://other.example"))

    assert found.store.write_now([change]) == [None]
    found.store.close()
    wrong, errors, told = examine(str(intact), str(corrupt))
    assert "events" in wrong[0]
    assert (errors, told) == ([], [])


@pytest.mark.slow
def test_an_intact_copy_responds_like_the_original(intact: Path, tmp_path: Path):
    outcome = judge(intact, 1, seed=1, scratch=tmp_path, turn=lambda file, _: file)
    assert outcome.ways == Counter({"harmless": 1})
