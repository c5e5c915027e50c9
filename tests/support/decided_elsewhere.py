"""Decisions 12.2 and 13.1 where several processes serve: a change by one counts on the other at the next request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Manage = Callable[[int, str, str, Any], Any]
"""(which of the two is asked, method, path below the organization's, body) -> the response as JSON; `None` for 204."""
ACCOUNT = "user-7"
RULE = {"name": "Everybody", "condition": "true", "action": "review"}


def assert_changes_are_in_force_on_the_other(manage: Manage, decided: Callable[[int], str | None]) -> None:
    """A block, its removal, a save of rules and the save that takes them back, each by either of the two. `decided` is
    the action that one of them decides of an identification for `ACCOUNT`.
    """
    listed = {found["name"]: found["id"] for found in manage(0, "GET", "/lists", None)["lists"]}
    entries = f"/lists/{listed['blocked_accounts']}/entries"
    start = manage(0, "GET", "/rules", None)
    rules = [{name: rule[name] for name in ("id", "name", "condition", "action")} for rule in start["rules"]]
    revision = start["revision"]

    def both() -> list[str | None]:
        return [decided(1), decided(0)]

    assert both() == [None, None]
    for one, other in ((0, 1), (1, 0)):
        assert manage(one, "POST", entries, {"entries": [{"value": ACCOUNT}]}) == {"added": 1, "replaced": 0}
        assert (decided(other), decided(one)) == ("block", "block")
        assert manage(other, "DELETE", entries, {"values": [ACCOUNT]}) is None
        assert (decided(one), decided(other)) == (None, None)
        revision = manage(one, "PUT", "/rules", {"revision": revision, "rules": [*rules, RULE]})["revision"]
        assert (decided(other), decided(one)) == ("review", "review")
        revision = manage(other, "PUT", "/rules", {"revision": revision, "rules": rules})["revision"]
        assert (decided(one), decided(other)) == (None, None)
