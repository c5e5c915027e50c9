"""Where the CPU of an identification goes, stage by stage.

The functions of the service in their order, over groups as large as a busy service commits; one thread, no network, no
fsync. Printed is the CPU (user and system) of that thread per identification, the median over rounds. In each round
every device visits once: in the first as a new visitor, in the others with its token, without it from its own network,
or without it from elsewhere, where it may be taken for another. Neither HTTP is in it (`bench.identify`), nor what the
mailboxes and the loop add.

Garbage is looked for as rarely as in the service. What the interpreter was built with counts as much as any change of
the code, so the output names it. `proof` is nothing without `--signed`, as which a page over HTTPS sends its report.

A group is written in two phases (ADR 41). `transaction` are the jobs, and `first phase` is what recording and keeping
apart what they read and write adds: both are on the loop. `commit` is the second phase, for which the service has a
thread: the lock, the rows, the commit.

`--profile full`: returns with a token of organizations that use one more feature of `bench.profile` each, beside the
bare one, in turn within each round.

    python -m bench.stages [--report small|large|made-up] [--profile bare|full] [--signed] [--rounds 4] [--devices 1000]

Which reports there are, `bench.reports.Kind` says.
"""

from __future__ import annotations

import os
import statistics
import sys
import sysconfig
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import msgspec
import trio

from bench import profile, reports
from bench.reports import device_report, sdk_report
from bench.usage import read_options
from svc.cli.serve.processes import tune_garbage_collection
from svc.command.logs import set_up_logging
from svc.features.identification.pipeline.frequencies import ClassKey, Frequencies
from svc.features.identification.routes import IDENTIFY, read_submission
from svc.features.identification.transaction import Recorded, identify
from svc.features.keys.command import issue_key
from svc.features.organizations.command import create_organization
from svc.http.body import decode, sdk_platform, unpack
from svc.http.callers.caller import Caller, ConnectionHeaders
from svc.http.callers.visitor_facts import own_facts
from svc.http.route import Call
from svc.http.schema import IdentifyBody, identify_response
from svc.http.traffic import Traffic
from svc.identify.attestation.claim import missing, read_attestation
from svc.identify.attestation.trust import published_trust
from svc.identify.detection import detect
from svc.identify.events.archive import deflate
from svc.identify.history.evidence import history_evidence
from svc.identify.identification import Assessment, Identified, Submission
from svc.identify.keys import deferred
from svc.identify.keys.proof import Subject, examine
from svc.identify.matching import Features, extract
from svc.identify.model import RequestFacts
from svc.identify.network.facts import read_network
from svc.identify.network.request_headers import archived_headers
from svc.identify.queries.learned import PRODUCTION
from svc.identify.report import read_report
from svc.identify.useragent import read_agent
from svc.kernel.config import Config
from svc.kernel.store.directory import Opened, open_directory
from svc.kernel.store.local import LocalStore
from svc.kernel.store.snapshot import Late, Transaction
from svc.kernel.values.refusals import Refusal
from svc.serve.service import Service
from svc.world import World
from tests.support.proofs import BrowserKey, compact
from tests.support.writes import writes

T = TypeVar("T")

GROUP = 22
"""Identifications per commit, as measured with 32 clients."""
ORIGIN = "https://shop.example"
SDK = {"platform": "web", "version": "0.1.0"}
KINDS = ("token", "network", "elsewhere")
"""Ways to come back."""


class Visit(msgspec.Struct, frozen=True):
    """One request: its body, and who sends it."""

    body: bytes
    caller: Caller
    idempotency_key: str


class Stages:
    """The stages of a service, each run for a group of requests and timed."""

    def __init__(self, found: Opened, world: World) -> None:
        self._services = Service(Config(), world, found).services
        self._world = world
        self._store = LocalStore(found.store.engine, self._second_phase, world.now_ms)
        self._frequencies = Frequencies(self._store)
        self._traffic = Traffic()
        self._trust = published_trust()
        self.cpu_s: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def _timed(self, stage: str) -> Generator[None]:
        began = time.thread_time()
        yield
        self.cpu_s[stage] += time.thread_time() - began

    def _each(self, stage: str, function: Callable[..., T], *columns: Sequence[Any]) -> list[T]:
        with self._timed(stage):
            return [function(*row) for row in zip(*columns, strict=True)]

    async def identify(self, visits: Sequence[Visit]) -> None:
        """Identify a group in one transaction. Raises `AssertionError` where one is refused."""
        at_ms = self._world.now_ms()
        ids = self._each("request id", self._world.request_id, [at_ms] * len(visits))
        began = [self._traffic.began(request_id, at_ms) for request_id in ids]
        submissions = self._each("body", self._read, visits, ids)
        assessments = self._assess(submissions)
        classes = [ClassKey(one.submission.organization, PRODUCTION, one.features.family) for one in assessments]
        jobs = [
            partial(identify, assessment=assessment, statistics=await self._frequencies.of(key))
            for key, assessment in zip(classes, assessments, strict=True)
        ]
        with self._timed("first phase"):
            outcomes = await self._store.write(writes([partial(self._run, job) for job in jobs]), urgent=True)
        recorded = [outcome for outcome in outcomes if isinstance(outcome, Recorded)]
        with self._timed("learn"):
            for key, one in zip(classes, recorded, strict=True):
                await self._frequencies.learn(key, one)
        self._each("response", self._respond, submissions, recorded)
        for request, visit in zip(began, visits, strict=True):
            request.operation_id, request.caller = "identify", visit.caller
        self._each("count and log", self._traffic.ended, began, [200] * len(began))

    def _read(self, visit: Visit, request_id: UUID) -> Submission:
        text = unpack(visit.body, "application/json", None)
        assert isinstance(text, bytes)
        body = decode(text, IdentifyBody)
        platform = sdk_platform(text, body)
        assert not isinstance(body, Refusal)
        headers = {"idempotency-key": visit.idempotency_key}
        call = Call(
            request_id=request_id,
            route=IDENTIFY,
            at_ms=self._world.now_ms(),
            headers=headers,
            caller=visit.caller,
            platform=platform,
            body=body,
        )
        submission = read_submission(self._services, call, visit.caller, body)
        assert isinstance(submission, Submission)
        return submission

    def _assess(self, submissions: list[Submission]) -> list[Assessment]:
        """As `svc.identify.identification.assess`, one stage after the other."""
        facts = [one.facts for one in submissions]
        signals, times = [one.signals for one in submissions], [one.at_ms for one in submissions]
        texts, platforms = [one.signals_json for one in submissions], [one.platform for one in submissions]
        reports = self._each("report", read_report, signals, facts)
        agents = self._each("user agent", read_agent, facts, reports)
        addresses = [one.ip for one in facts]
        networks = self._each("network", read_network, addresses, [None] * len(facts))
        origins = [one.origin for one in submissions]
        subjects = [Subject(one.account_id, one.action, one.tag) for one in submissions]
        proofs = self._each("proof", examine, reports, texts, origins, times, subjects)
        keys = [None if proof is None else proof.key for proof in proofs]
        features = self._each("features", _features, reports, agents, facts, networks, origins, keys)
        versions = [one.sdk_version for one in submissions]
        observations = self._each("detection", detect, reports, facts, agents, networks, platforms, times, versions)
        absent = self._each("detection", missing, signals, platforms)
        wide = [one.wide_network for one in features]
        traces = self._each("trace", history_evidence, reports, networks, addresses, texts, times, wide)
        trusts = [self._trust] * len(facts)
        attestations = self._each("attestation", read_attestation, signals, platforms, trusts, times)
        archives = self._each("archive", deflate, texts)
        headers = self._each("headers", archived_headers, facts)
        return [
            Assessment(
                submission=submission,
                report=report,
                proof_version=None if proof is None else proof.version,
                agent=agent,
                network=network,
                features=extracted,
                observations=observed + unattested,
                history=traced,
                attestation=attestation,
                scored=True,
                archive=archive,
                headers=kept,
            )
            for submission, report, agent, network, proof, extracted, observed, unattested, traced, attestation,
            archive, kept in zip(
                submissions, reports, agents, networks, proofs, features, observations, absent, traces, attestations,
                archives, headers, strict=True,
            )
        ]  # fmt: skip

    def _run(self, job: Callable[[Transaction], Late[Recorded]], transaction: Transaction) -> Late[Recorded]:
        with self._within("transaction"):
            return job(transaction)

    async def _second_phase(self, function: Callable[[], T], /, **_: Any) -> T:
        with self._within("commit"):
            return function()

    @contextmanager
    def _within(self, stage: str) -> Generator[None]:
        """A stage of its own, and none of the first phase around it."""
        began = time.thread_time()
        yield
        took = time.thread_time() - began
        self.cpu_s[stage] += took
        self.cpu_s["first phase"] -= took

    def _respond(self, submission: Submission, recorded: Recorded) -> bytes:
        assert isinstance(recorded.outcome, Identified)
        token = deferred.issue_token(
            self._services.deferred_key, submission.request_id, submission.key_id, submission.origin, submission.at_ms
        )
        return msgspec.json.encode(identify_response(recorded.outcome.verdict, submission.request_id, token))


def caller(found: Opened, world: World, features: Collection[str] = ()) -> Caller:
    """A production key with enough credit, so that billing is part of the job, of an organization with features."""
    organization = create_organization(found, world, "bench", credit=10**12, rate_limit=0)
    if features:
        found.store.write_one_now(
            partial(profile.install, number=organization.number, features=features, now_ms=world.now_ms())
        )
    key, _ = issue_key(
        found, world, organization=organization.number, region=Config().region, kind="public", name="bench",
        environment="production", allowed_origins=(ORIGIN,),
    )  # fmt: skip
    return Caller(
        key=msgspec.structs.replace(key, last_used_at_ms=world.now_ms()),
        digest=b"",
        applied=key,
        applied_digest=b"",
        organization=organization,
        origin=ORIGIN,
        facts=RequestFacts(ip=""),
    )


def _features(report: Any, agent: Any, facts: Any, network: Any, origin: str | None, key: bytes | None) -> Features:
    return extract(report, agent, facts, network, origin=origin, key=key)


def visits(
    sender: Caller,
    devices: int,
    round_number: int,
    *,
    report: reports.Kind,
    features: Collection[str] = (),
    at_ms: int = 0,
) -> list[Visit]:
    """One visit of each device, of the round's kind. `features`: those of `profile.FEATURES` that a visit shows; with
    `proof` it is signed, at `at_ms`, by the key that belongs to its token.
    """
    kind, signed = kind_of(round_number), "proof" in features
    found: list[Visit] = []
    for number in range(devices):
        signals, headers = plain_report(number) if report == "made-up" else sdk_report(number, report)
        if "nonce" in signals:
            signals["nonce"] = f"{round_number:016x}{number:016x}"
        if signed:
            signals |= {"nonce": f"{round_number:016x}{number:016x}", "collected_at": at_ms}
        about = {"account_id": f"user-{number}", "action": "log_in"} if "account" in features else {}
        text = compact(signals)
        if kind in ("new", "token"):
            signals |= {"client_token": f"{number:032x}", "client_token_is_new": kind == "new"}
            subject = Subject(**about)
            text = BrowserKey(number).signed(signals, ORIGIN, subject) if signed else compact(signals)
        body = compact({"sdk": SDK, **about})[:-1] + b',"signals":' + text + b"}"
        network = 82 + round_number if kind == "elsewhere" else 81
        ip = f"{network}.{number >> 8 & 255}.{number & 255}.7"
        facts = own_facts(headers, ip, (), ConnectionHeaders())
        found.append(Visit(body, msgspec.structs.replace(sender, facts=facts), f"{round_number}-{number}"))
    return found


def kind_of(round_number: int) -> str:
    """How the devices of a round come."""
    return KINDS[(round_number - 1) % len(KINDS)] if round_number else "new"


def plain_report(number: int) -> tuple[dict[str, Any], dict[str, str]]:
    """A made-up report and its headers."""
    report = device_report(number)
    return report, {"user-agent": report["userAgent"], "accept-language": "en-GB,en;q=0.9"}


async def measure(
    rounds: int, devices: int, report: reports.Kind, profiles: Sequence[Collection[str]]
) -> list[dict[str, list[dict[str, float]]]]:
    """For each profile, by kind of visit, microseconds of CPU per identification by stage, for each round. Of several
    profiles devices return with their tokens alone.
    """
    world = World.real()
    measured = [defaultdict[str, list[dict[str, float]]](list) for _ in profiles]
    with ExitStack() as stack:
        services: list[tuple[Stages, partial[list[Visit]]]] = []
        for features in profiles:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="svc-bench-"))
            found = open_directory(Path(directory), world.run_sync, world.entropy, durable=False)
            stack.callback(found.store.close)
            made = partial(visits, caller(found, world, features), report=report, features=features)
            services.append((Stages(found, world), made))
            # What is made once: patterns, tables of names.
            await services[-1][0].identify(made(devices + 1, 0, at_ms=world.now_ms())[-1:])
        for number in range(rounds * len(KINDS) + 1):
            kind = kind_of(number)
            for (stages, made), rows in zip(services, measured, strict=True):
                if len(profiles) > 1 and kind not in ("new", "token"):
                    continue
                stages.cpu_s.clear()
                todo = made(devices, number, at_ms=world.now_ms())
                tune_garbage_collection()
                for first in range(0, devices, GROUP):
                    await stages.identify(todo[first : first + GROUP])
                rows[kind].append({stage: 1e6 * cpu_s / devices for stage, cpu_s in stages.cpu_s.items()})
    return [*measured]


def interpreter() -> str:
    """Its version, and whether it says that it was built by a profile: Debian's was, and does not say so."""
    is_optimized = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    return (
        f"CPython {sys.version.split()[0]}, CONFIG_ARGS {'with' if is_optimized else 'without'} --enable-optimizations"
    )


def main() -> None:
    options = read_options(__doc__)
    is_full = options.profile == "full"
    features = [profile.FEATURES[:count] for count in range(len(profile.FEATURES) + 1)]
    profiles = features if is_full else [("proof",) if options.signed else ()]
    with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere):
        set_up_logging("json")
        measured = trio.run(measure, options.rounds, options.devices, options.report, profiles)
    columns = measured[0]
    if is_full:
        names = ("bare", *(f"+ {name}" for name in profile.FEATURES))
        columns = {name: rows["token"] for name, rows in zip(names, measured, strict=True)}
    print(f"{interpreter()}; reports: {options.report}{', signed' if options.signed else ''}\n")
    print(f"{'us of CPU':16}" + "".join(f"{name:>11}" for name in columns))
    for stage in next(iter(columns.values()))[0]:
        medians = [statistics.median(row[stage] for row in rows) for rows in columns.values()]
        print(f"{stage:16}" + "".join(f"{median:11.1f}" for median in medians))
    totals = [[sum(row.values()) for row in rows] for rows in columns.values()]
    print(f"{'all':16}" + "".join(f"{statistics.median(each):11.1f}" for each in totals))
    if is_full:
        ratios = [[one / bare for one, bare in zip(each, totals[0], strict=True)] for each in totals]
        print(f"{'beside bare':16}" + "".join(f"{statistics.median(each):11.2f}" for each in ratios))


if __name__ == "__main__":
    main()
