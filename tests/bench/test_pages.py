"""Pages that a commit wrote, against what LMDB itself says of its trees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

from bench.page_changes import PageChanges, Tree, Written, trees

ROWS = 20_000
NOTHING = Written(0, 0, 0)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[lmdb.Environment]:
    with lmdb.open(str(tmp_path), max_dbs=4, map_size=1 << 28, sync=False) as opened:
        yield opened


def _commit(environment: lmdb.Environment, rows: dict[bytes, bytes]) -> Written:
    """What one commit wrote for the table `rows`."""
    table = environment.open_db(b"rows")
    changes = PageChanges(environment)
    with environment.begin() as before:
        with environment.begin(write=True) as handle:
            for key, value in rows.items():
                handle.put(key, value, db=table)
        with environment.begin() as after:
            written = changes.written(trees(before)["rows"], trees(after)["rows"])
    changes.close()
    return written


def _key(number: int) -> bytes:
    return number.to_bytes(30)


def test_the_first_commit_writes_every_page_of_the_tree(environment: lmdb.Environment):
    written = _commit(environment, {_key(2 * number): b"v" * (7 * number % 5000) for number in range(ROWS // 10)})
    with environment.begin() as handle:
        stat = handle.stat(environment.open_db(b"rows"))
    assert written == Written(stat["branch_pages"], stat["leaf_pages"], stat["overflow_pages"])
    assert min(written) > 0


def test_a_row_among_many_writes_its_leaf_and_the_branches_above_it(environment: lmdb.Environment):
    _commit(environment, {_key(2 * number): b"value" for number in range(ROWS)})
    with environment.begin() as handle:
        depth = trees(handle)["rows"].depth
    assert depth == 3
    assert _commit(environment, {}) == NOTHING
    assert _commit(environment, {_key(ROWS): b"other"}) == Written(depth - 1, 1, 0)
    assert _commit(environment, {_key(1): b"v", _key(2 * ROWS - 1): b"v"}) == Written(1 + 2 * (depth - 2), 2, 0)
    assert _commit(environment, {_key(ROWS): b"v" * 5000}) == Written(depth - 1, 1, 2)


def test_a_tree_that_grows_in_depth_writes_its_new_root(environment: lmdb.Environment):
    assert _commit(environment, {_key(1): b"v"}) == Written(0, 1, 0)
    written = _commit(environment, {_key(number): b"v" for number in range(2, 120)})
    with environment.begin() as handle:
        assert trees(handle)["rows"].depth == 2
    assert written.branches == 1
    assert written.leaves > 1
    changes = PageChanges(environment)
    assert changes.written(Tree(0, 0), Tree(0, 0)) == NOTHING
    changes.close()
