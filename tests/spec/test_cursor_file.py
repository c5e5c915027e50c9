"""`svc events tail --cursor-file`: whatever is in the file, nothing is printed that would be printed again."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from svc.features.feed.feed import HOLD_MS, feed_cursor
from svc.identify.events.listing import CursorScope, Position
from svc.kernel.values.encodings import cursors_key
from svc.world import World
from tests.spec.commands import Ran, run_beside
from tests.spec.responses import visit
from tests.support.live import Live, live_service

pytestmark = [pytest.mark.slow(2), pytest.mark.usefixtures("engine")]


async def tail(live: Live, file: Path, *options: str) -> Ran:
    command = ("events", "tail", live.organization.id, "--since", "1h", "--no-follow", "--json", *options)
    return await run_beside(*command, "--cursor-file", file, *live.options)


async def populate(live: Live) -> None:
    _, public = live.issue(environment="production")
    assert (await visit(live, public)).status_code == 200


async def test_what_a_cursor_file_may_not_have_is_refused_before_anything_is_printed(tmp_path: Path):
    async with live_service(tmp_path / "data", now_ms=World.real().now_ms() - HOLD_MS) as live:
        await populate(live)
        file = tmp_path / "cursor"
        key, number = cursors_key(live.found.pepper), live.organization.number
        here = Position(live.clock.now_ms, bytes(16))
        of_others = {
            "an organization": feed_cursor(here, CursorScope(key, number + 1, "production")),
            "an environment": feed_cursor(here, CursorScope(key, number, "staging")),
            "a store": feed_cursor(here, CursorScope(cursors_key(bytes(32)), number, "production")),
        }
        garbage = (b"", b"\n", b"\xff\x00\x80", b"\xc5\xbf" * 22, b"A" * 44, b"A" * 100_000)
        for content in (*garbage, *(text.encode() for text in of_others.values())):
            file.write_bytes(content)
            (await tail(live, file)).assert_refused("has no cursor of this feed")
            assert file.read_bytes() == content, "it is left as it was"
        file.write_text(feed_cursor(here, CursorScope(key, number, "production")))
        assert len((await tail(live, file)).out.splitlines()) == 1
        assert (await tail(live, file)).out == ""


async def test_a_cursor_file_that_cannot_be_used_is_refused_before_anything_is_printed(tmp_path: Path):
    async with live_service(tmp_path / "data", now_ms=World.real().now_ms() - HOLD_MS) as live:
        await populate(live)
        (await tail(live, tmp_path / "missing" / "cursor")).assert_refused("cannot write")
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        (await tail(live, tmp_path / "loop")).assert_refused("cannot be read")
        file = tmp_path / "cursor"
        with (tmp_path / "cursor.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (await tail(live, file)).assert_refused("another command keeps its cursor")
        (tmp_path / "cursor.lock").unlink()
        (tmp_path / "cursor.lock").symlink_to(tmp_path / "of-somebody")
        (await tail(live, file)).assert_refused("symbolic link")
        assert not (tmp_path / "of-somebody").exists()
        (tmp_path / "cursor.lock").unlink()
        assert len((await tail(live, file)).out.splitlines()) == 1
        assert (tmp_path / "cursor.lock").stat().st_mode & 0o777 == 0o600, "nobody else can hold it"
        (await tail(live, file, "--environment", "staging")).assert_refused("has no cursor of this feed")
