"""Members of an organization, for tests: stored at once, or come in by an invitation as people do."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any

from svc.features.members.jobs import find_member, invite
from svc.kernel.access.credentials import digest
from svc.kernel.access.members import INVITATION_MS, MEMBER_PREFIX, Member
from svc.kernel.access.sessions import new_token
from svc.kernel.tenants.organization import Organization
from svc.world import twenty_characters
from tests.spec.console_browser import Browser
from tests.support.live import Live

INVITATIONS = "/console/invitations"
PASSWORD = "a horse that is correct"
_numbers = count(1)


def add_member(live: Live, role: str = "viewer", *, organization: Organization | None = None, **fields: Any) -> Member:
    """A member who was invited just now."""
    return invited(live, role, organization=organization, **fields)[0]


def invited(
    live: Live, role: str = "viewer", *, organization: Organization | None = None, **fields: Any
) -> tuple[Member, str]:
    """A member who was invited just now, and the token of the invitation."""
    of = organization or live.organization
    given = {"email": f"member{next(_numbers)}@shop.example", "name": "Ada", "status": "invited", **fields}
    member = Member(
        id=MEMBER_PREFIX + twenty_characters(live.world.entropy),
        role=role,  # pyright: ignore[reportArgumentType]
        created_at_ms=live.clock.now_ms,
        **given,
    )
    token = new_token("invitation", of.id, live.world.entropy(32))
    hashed, expires_at_ms = digest(live.found.pepper, token), live.clock.now_ms + INVITATION_MS
    job = partial(invite, number=of.number, member=member, digest=hashed, expires_at_ms=expires_at_ms)
    (made,) = live.found.store.write_now([job])
    assert isinstance(made, Member)
    return made, token


async def came_in(live: Live, role: str = "viewer", *, https: bool = False, **fields: Any) -> Browser:
    """A browser of a new member, who has just chosen `PASSWORD`."""
    live.clock.advance(seconds=1)  # one address may not try any number of times a second
    _, token = invited(live, role, **fields)
    browser = Browser(live, https=https)
    response = await browser("POST", INVITATIONS, {"token": token, "password": PASSWORD})
    assert response.status_code == 200, response.text
    return browser


def stored(live: Live, member_id: str, number: int | None = None) -> Member | None:
    with live.found.store.read() as snapshot:
        return find_member(snapshot, live.organization.number if number is None else number, member_id)
