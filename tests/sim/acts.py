"""What a plan's steps do: clients and customers that ask, an operator, and faults that begin and end.

A caller that orders something and does not hear of its end orders it again, so that in the end everybody knows how
things are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, singledispatchmethod
from typing import Any

import msgspec
import trio

from svc.features.organizations import jobs as organizations
from svc.identify.tables import EVENTS
from svc.kernel.access import jobs as keys
from svc.kernel.access.credentials import digest, new_key
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.store.store import StoreFullError
from svc.kernel.tenants import jobs as ledger
from svc.kernel.tenants.organization import Organization
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.timestamps import timestamp
from svc.workers.bus import announce
from svc.world import twenty_characters
from tests.sim import plan as steps
from tests.sim.afterwards import AGAIN_S, Afterwards, Owner
from tests.sim.client import Response, request, talk
from tests.sim.decisions import Decisions, account_id
from tests.sim.following import Following
from tests.sim.hooks import Hooks
from tests.sim.internet import Internet
from tests.sim.machine import Machine
from tests.sim.model import UNHEARD_S, Asked, Fact, Timeline, is_before_the_run, is_over
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, USER_AGENT, report

BOT = {"userAgent": USER_AGENT.replace("Chrome/", "HeadlessChrome/"), "webdriver": True}


class Key(msgspec.Struct):
    id: str
    secret: str
    usable: Timeline[bool]


class Account(msgspec.Struct):
    """An organization of the run."""

    number: int
    id: str
    credit_micros: int
    management: str
    keys: dict[tuple[bool, str], Key]
    """(production, kind) -> the one in use; kind `revoked` is the public one before."""
    status: Timeline[str]


class Acts:
    def __init__(self, plan: steps.Plan, machine: Machine, internet: Internet, trace: Callable[[str], None]) -> None:
        self.shops: list[Account] = []
        self.asked: list[Asked] = []
        self.facts: list[Fact] = []
        self.attested: list[list[int]] = []
        """For each challenge, the numbers of those who named it."""
        self.jumps: list[float] = []
        self.broken: list[str] = []
        """Answers that break a rule."""
        self.nursery: trio.Nursery
        self.afterwards = Afterwards(machine, self.asked, self._ask)
        self.decisions = Decisions(self.asked, self._ask)
        self.following = Following(plan.seed, self._ask)
        self.hooks = Hooks(machine, lambda shop: self.shops[shop].number, self._manage_webhooks)
        self._plan = plan
        self._machine = machine
        self._internet = internet
        self._trace = trace
        self._answered: list[Asked] = []
        for hook in sorted({step.hook for step in plan.steps if isinstance(step, steps.Register)}):
            internet.add(f"hook{hook}.example")

    def open_shops(self) -> None:
        for shop in self._plan.shops:
            now_ms = self._machine.now_ms()
            organization_id = "org_" + self._twenty()
            make = partial(
                organizations.create_organization,
                organization_id=organization_id,
                name="shop",
                now_ms=now_ms,
                rate_limit_per_s=shop.rate_limit,
            )
            number = self._operator(make).number
            keys = {
                (production, kind): self._issue(number, kind, "production" if production else "development")
                for production in (True, False)
                for kind in ("public", "secret")
            }
            management = self._issue(number, "management", None)
            self.shops.append(Account(number, organization_id, 0, management.secret, keys, Timeline("free")))
            self._credit(self.shops[-1], shop.credit_micros)
            for production in (True, False):
                self.following.begin(len(self.shops) - 1, production, keys[production, "secret"].secret)

    def _twenty(self) -> str:
        return twenty_characters(self._machine.chance.randbytes)

    def _issue(self, number: int, kind: Any, environment: Any) -> Key:
        now_ms, entropy = self._machine.now_ms(), self._machine.chance.randbytes(32)
        fields: dict[str, Any] = {"role": "admin"} if kind == "management" else {}
        if kind == "public":
            fields = {"platforms": ("web",), "allowed_origins": (ORIGIN,)}
        key, secret = new_key(
            key_id="key_" + self._twenty(),
            organization=number,
            kind=kind,
            name="",
            environment=environment,
            region="us",
            entropy=entropy,
            now_ms=now_ms,
            **fields,
        )
        self._operator(partial(keys.issue_key, key=key, digest=digest(self._machine.opened.pepper, secret)))
        return Key(key.id, secret, Timeline(True))

    def counts(self) -> dict[str, int]:
        statuses = [0 if asked.response is None else asked.response.status for asked in self.asked]
        counted = {f"answered {status}": statuses.count(status) for status in sorted(set(statuses))}
        return counted | {"facts": len(self.facts), "endpoints": len(self.hooks.listening)}

    def lost(self, snapshot: Snapshot) -> list[str]:
        """Acknowledged since the last look, and not there."""
        told, self._answered = self._answered, []
        missing = self.broken + self.afterwards.broken + self.decisions.broken + self.following.broken()
        self.broken, self.afterwards.broken, self.decisions.broken = [], [], []
        for asked in told:
            assert asked.request_id is not None
            event = snapshot.get(
                EVENTS, self.shops[asked.shop].number, bytes.fromhex(asked.request_id.replace("-", ""))
            )
            if event is None and (self.afterwards.is_erased(asked.request_id) or is_over(asked.request_id)):
                continue
            if event is None or (event.environment == "production") != asked.production:
                missing.append(f"request {asked.request_id} was acknowledged and is not stored")
        return missing

    def calm_down(self) -> None:
        """No more faults; paused endpoints listen again. Others are left alone: nothing but the outbox wakes them."""
        self._internet.be_good()
        self._machine.disk.slow_s = 0.02
        self._machine.disk.breaks.clear()
        self._machine.resume_reading()
        for hook in self.hooks.paused():
            self._start(partial(self.hooks.change, steps.Change(at=0, hook=hook, what="resume")))

    @singledispatchmethod
    def take(self, step: steps.Step) -> None:
        raise NotImplementedError(step)

    @take.register
    def _(self, step: steps.Supplement) -> None:
        self._start(partial(self.afterwards.supplement, step))

    @take.register
    def _(self, step: steps.Erase) -> None:
        shop = self.shops[step.org]
        self._start(partial(self.afterwards.erase, step, Owner(shop.id, shop.management)))

    @take.register
    def _(self, step: steps.Block) -> None:
        self._start(partial(self.decisions.block, step, *self._automation(step.org)))

    @take.register
    def _(self, step: steps.SaveRules) -> None:
        self._start(partial(self.decisions.save, step, *self._automation(step.org)))

    @take.register
    def _(self, step: steps.EraseAccount) -> None:
        self._start(partial(self.decisions.erase, step, *self._automation(step.org)))

    @take.register
    def _(self, step: steps.SetAccount) -> None:
        key = self.shops[step.org].keys[step.production, "secret"]
        self._start(partial(self.decisions.set_account, step, key.secret))

    def _automation(self, org: int) -> tuple[str, str]:
        """The path of an organization, and its management key."""
        return f"/management/organizations/{self.shops[org].id}", self.shops[org].management

    @take.register
    def _(self, step: steps.Identify) -> None:
        self._start(partial(self._identify, step))

    @take.register
    def _(self, step: steps.Attest) -> None:
        self._start(partial(self._attest, step))

    @take.register
    def _(self, step: steps.Register) -> None:
        self._start(partial(self.hooks.register, step))

    @take.register
    def _(self, step: steps.Change) -> None:
        self._start(partial(self.hooks.change, step))

    @take.register
    def _(self, step: steps.Rotate) -> None:
        self._start(partial(self.hooks.rotate, step))

    @take.register
    def _(self, step: steps.Receive) -> None:
        if (host := self._internet.hosts.get(f"hook{step.hook}.example")) is not None:
            host.manner = step.manner

    @take.register
    def _(self, step: steps.Name) -> None:
        if (host := self._internet.hosts.get(f"hook{step.hook}.example")) is not None:
            host.naming = step.naming

    @take.register
    def _(self, step: steps.Revoke) -> None:
        self._start(partial(self._revoke, step))

    @take.register
    def _(self, step: steps.Bill) -> None:
        if self._machine.up.is_set():
            self._bill(step)

    @take.register
    def _(self, step: steps.Credit) -> None:
        if self._machine.up.is_set():
            self._credit(self.shops[step.org], step.micros)

    @take.register
    def _(self, step: steps.Crash) -> None:
        self._start(partial(self._crash, step))

    @take.register
    def _(self, step: steps.Kill) -> None:
        self._start(partial(self._kill, step))

    @take.register
    def _(self, _: steps.Restart) -> None:
        self._machine.restart()

    @take.register
    def _(self, step: steps.Jump) -> None:
        self._set_clock(step.seconds)
        if step.back_after_s:
            self._start(partial(self._set_right, step))

    @take.register
    def _(self, step: steps.Slow) -> None:
        self._machine.disk.slow_s = step.seconds

    @take.register
    def _(self, step: steps.RefuseCommits) -> None:
        self._machine.disk.refusals += step.commits

    @take.register
    def _(self, step: steps.BreakCommit) -> None:
        self._machine.disk.breaks.append(step.when)

    @take.register
    def _(self, _: steps.Fill) -> None:
        self._machine.fill()

    @take.register
    def _(self, _: steps.FreeSpace) -> None:
        self._machine.resume_reading()

    async def _set_right(self, step: steps.Jump) -> None:
        await trio.sleep(step.back_after_s)
        self._set_clock(-step.seconds)
        await trio.sleep(5)  # the service has seen it by then
        self._machine.confirm_clock()

    def _set_clock(self, seconds: int) -> None:
        self._machine.offset_ms += seconds * 1000
        self.jumps.append(trio.current_time())

    def _start(self, act: Callable[[], Awaitable[None]]) -> None:
        self.nursery.start_soon(act)

    async def _crash(self, step: steps.Crash) -> None:
        for _ in range(step.turns):
            await trio.lowlevel.checkpoint()
        self._machine.crash(step.down_s)

    async def _kill(self, step: steps.Kill) -> None:
        for _ in range(step.turns):
            await trio.lowlevel.checkpoint()
        if step.victim == "parent":
            self._machine.restart(step.down_s)
        else:
            self._machine.kill(leader=step.victim == "leader")

    async def _ask(self, sent: bytes, client: steps.Client) -> Response | None:
        try:
            connection = self._machine.connect()
        except ConnectionRefusedError:
            return None
        return await talk(connection, sent, client)

    async def _identify(self, step: steps.Identify, **more: Any) -> int:
        """The number under which it was asked."""
        shop = self.shops[step.org]
        public = "revoked" if step.stale and (step.production, "revoked") in shop.keys else "public"
        key = shop.keys[step.production, "secret" if step.server else public]
        asked = Asked(len(self.asked), step.org, step.production, step.key, trio.current_time(), secret=key.secret)
        self.asked.append(asked)
        headers = {"x_api_key": key.secret, "x_forwarded_for": PUBLIC_ADDRESS, "user_agent": USER_AGENT}
        if not step.server:
            headers["origin"] = "https://elsewhere.example" if step.astray else ORIGIN
        if step.key is not None:
            headers["idempotency_key"] = f"key {step.key}"
        signals = report(step.device, canvas=f"{step.device * 7919 + step.changed:032x}", **(BOT if step.bot else {}))
        named = {"action": "sign_up"} if step.account is None else {"account_id": account_id(step.account)}
        body = {"sdk": {"platform": "web"}, "tag": str(asked.number), "signals": signals | more, **named}
        asked.response = await self._ask(request("POST", "/identify", body, **headers), step.client)
        now = trio.current_time()
        asked.until = now if asked.response is not None else now + UNHEARD_S
        said = "nothing" if asked.response is None else f"{asked.response.status} {asked.response.body!r}"
        self._trace(f"{asked.number} {said}")
        if asked.response is not None:
            self._judge(asked, asked.response, step, key, shop)
            self.decisions.judge(asked, step.account)
        return asked.number

    def _judge(self, asked: Asked, response: Response, step: steps.Identify, key: Key, shop: Account) -> None:
        if response.status == 200:
            self._answered.append(asked)
        told = response.status, "" if response.status == 200 else response.code
        usable = key.usable.sure(asked.since, asked.until)
        blocked = "blocked" in shop.status.possible(asked.since, asked.until) and step.production
        surely_blocked = blocked and shop.status.sure(asked.since, asked.until) is not None
        match told:
            case (200, _) if usable is False:
                wrong = "a revoked key was accepted"
            case (200, _) if step.astray and not step.server:
                wrong = "a wrong origin was accepted"
            case (200, _) if surely_blocked and "duplicate" not in response.json:
                wrong = "an organization that is blocked was served"
            case (401, _) if usable is True and not step.astray:
                wrong = "a good key was refused"
            case (402, "billing_blocked") if not blocked:
                wrong = "an organization that is not blocked was refused"
            case (200, _) | (401, _) | (402, _) | (408, _) | (429, _) | (503, _):
                return
            case _:
                wrong = "not an answer for this"
        self.broken.append(f"request {asked.number} was answered {told}: {wrong}")

    async def _attest(self, step: steps.Attest) -> None:
        key = self.shops[step.org].keys[True, "public"]
        headers = {"x_api_key": key.secret, "origin": ORIGIN}
        response = await self._ask(request("POST", "/attestation/challenge", **headers), steps.Client())
        if response is None or response.status != 200:
            return
        claim = {"challenge": response.json["challenge"], "format": "none"}
        numbers: list[int] = []
        self.attested.append(numbers)

        async def use(device: int) -> None:
            again = steps.Identify(at=step.at, org=step.org, device=device)
            numbers.append(await self._identify(again, attestation=claim))

        async with trio.open_nursery() as users:
            for device in range(step.uses):
                users.start_soon(use, device)

    async def _revoke(self, step: steps.Revoke) -> None:
        shop = self.shops[step.org]
        key = shop.keys[step.production, "public"]
        if key.usable.changes[-1].value is False:
            return
        change = key.usable.change(False)
        await self._manage(shop, "POST", f"/sdk-keys/{key.id}/revoke", None)
        change.settle(False)
        shop.keys[step.production, "revoked"] = key
        environment = "production" if step.production else "development"
        wanted = {"name": "next", "environment": environment, "kind": "public", "allowed_origins": [ORIGIN]}
        issued = await self._manage(shop, "POST", "/sdk-keys", wanted)
        shop.keys[step.production, "public"] = Key(issued.json["key"]["id"], issued.json["secret"], Timeline(True))

    async def _manage(self, shop: Account, method: str, path: str, body: Any) -> Response:
        """By the customer's automation, until it is answered."""
        sent = request(method, f"/management/organizations/{shop.id}{path}", body, x_api_key=shop.management)
        while True:
            response = await self._ask(sent, steps.Client())
            if response is not None and response.status < 500:
                return response
            await trio.sleep(AGAIN_S)

    async def _manage_webhooks(
        self, shop: int, method: str, path: str, body: Any, client: steps.Client
    ) -> Response | None:
        account = self.shops[shop]
        path = f"/management/organizations/{account.id}/webhooks{path}"
        response = await self._ask(request(method, path, body, x_api_key=account.management), client)
        self._trace(f"{method} {path} {None if response is None else (response.status, response.body)}")
        return response

    def _credit(self, shop: Account, micros: int) -> None:
        now_ms = self._machine.now_ms()
        entry_id = self._machine.operator.request_id(now_ms)
        add = partial(ledger.add_credit, number=shop.number, entry_id=entry_id, micros=micros)
        if self._operator(partial(add, now_ms=now_ms, note="credit")) is not None:
            shop.credit_micros += micros

    def _bill(self, step: steps.Bill) -> None:
        shop, now_ms = self.shops[step.org], self._machine.now_ms()
        before = shop.status.changes[-1].value
        author = organizations.Author(self._machine.operator.request_id(now_ms), now_ms, "operator")
        change = partial(organizations.set_billing_status, number=shop.number, status=step.status, author=author)
        changed = self._operator(change)
        if isinstance(changed, Organization) and step.status != before:
            shop.status.change(step.status).settle(step.status)
            now, name = trio.current_time(), f"{timestamp(now_ms)} {before} {step.status}"
            if not is_before_the_run(now_ms):
                self.facts.append(Fact("billing.status_changed", step.org, True, name, now, now))

    def _operator(self, job: Callable[..., Any]) -> Any:
        """At once, as from the command line; nothing where the store is full."""
        try:
            (outcome,) = self._machine.store.write_now([job])
        except StoreFullError:
            return None
        if isinstance(outcome, Exception):
            raise outcome
        announce(self._machine.directory)
        return None if isinstance(outcome, Refusal) else outcome
