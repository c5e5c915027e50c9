"""Decisions 17.1, ADR 185: what somebody else compares with a clock of their own goes by the machine's clock at once,
also in the hour in which a large step is not believed for what is stored.
"""

from __future__ import annotations

import pytest

from tests.spec.console_browser import SESSION, Browser
from tests.spec.responses import visit
from tests.spec.subscriber import Subscriber
from tests.spec.test_member_sign_in import code, with_codes, with_password
from tests.spec.test_openid import Scene, outcome, scene
from tests.spec.test_signed_verdicts import claims, published
from tests.support.live import Live
from tests.support.serving_postgresql import at_rest

__all__ = ["scene"]


@pytest.mark.parametrize("hours", [0, 2, 24 * 400])
async def test_a_webhook_is_signed_for_the_time_that_its_receiver_has(hooks: Subscriber, hours: int):
    await hooks.create()
    hooks.live.clock.jump(hours=hours)
    await visit(hooks.live, hooks.production)
    await at_rest()
    (post,) = hooks.receivers.posts
    assert int(post.headers["X-Svc-Timestamp"]) == hooks.live.clock.now_ms // 1000


@pytest.mark.parametrize("hours", [0, 2, 24 * 400])
async def test_a_verdict_is_issued_at_the_time_that_its_reader_has(live: Live, hours: int):
    keys = await published(live)
    live.clock.jump(hours=hours)
    answer = await visit(live, live.issue()[1], verdict=True)
    said = claims(answer.json()["verdict"], keys)
    assert (said["iat"], said["exp"]) == (live.clock.now_ms // 1000, live.clock.now_ms // 1000 + 300)


@pytest.mark.parametrize("hours", [2, 24 * 400])
@pytest.mark.slow(0.2)
async def test_an_authenticator_shows_the_code_of_the_time_that_it_is(live: Live, hours: int):
    _, member_id = await with_codes(live)
    live.clock.jump(hours=hours)
    body = with_password(totp=code(live, member_id))
    assert (await Browser(live)("POST", SESSION, body)).status_code == 200


@pytest.mark.parametrize("hours", [2, 24 * 400])
async def test_a_token_of_the_provider_is_of_the_time_that_it_is(scene: Scene, hours: int):
    scene.live.clock.jump(hours=hours)
    _, response = await scene.sign_in()
    assert outcome(response) == ""
