"""The vectors that all SDKs share: as their reference writes them, and agreed to by the service's own code."""

from __future__ import annotations

import json
import math
import random
import struct
from collections import Counter
from typing import Any

import pytest

from svc.features.refusals import CATALOG
from svc.identify.attestation import challenge
from svc.identify.model import RequestFacts
from svc.identify.report import read_report
from svc.identify.report.native import ARCHIVED
from tests.clients.vectors import FOLDER, KINDS, LEAST, cases, reference

SERVICE_CODES = set(CATALOG)


@pytest.mark.parametrize("name", LEAST)
def test_a_file_is_what_the_reference_writes(name: str):
    written = (FOLDER / f"{name}.json").read_text()
    assert written == reference().files()[f"{name}.json"], "python clients/vectors/reference.py"


@pytest.mark.parametrize(("name", "least"), LEAST.items())
def test_a_file_has_its_cases_each_under_a_name_of_its_own(name: str, least: int):
    found = cases(name)
    assert len(found) >= least
    assert [one for one, times in Counter(case["name"] for case in found).items() if times > 1] == []
    for case in found:
        assert set(case) - {"only"} == {"name", "kind", "given", "expect"}
        assert case["kind"] in KINDS


def test_there_is_no_other_file():
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == sorted(LEAST)


@pytest.mark.parametrize("case", cases("report"), ids=lambda case: case["name"])
def test_the_service_reads_of_a_report_what_the_case_says(case: dict[str, Any]):
    signals, expected = case["expect"]["signals"], case["expect"]["read"]
    report = read_report(signals, RequestFacts(ip="203.0.113.7", user_agent="Shop/42"))
    assert {attribute.name: value for attribute, value in report.attributes.items()} == expected["attributes"]
    assert (report.device_id, report.client_token) == (expected["device_id"], expected["client_token"])
    assert list(report.device_flags) == expected["flags"]
    assert case["expect"]["bytes"] <= 2_000
    assert {f"app.{name}" for name in signals.get("app", {})} <= set(ARCHIVED)


def test_every_refusal_of_the_service_that_a_case_names_exists():
    named = {case["expect"]["error"]["code"] for case in cases("errors") if "error" in case["expect"]}
    own = {"bad_response", "code_of_the_future", "http_418", "timeout", "too_early", "invalid_json", "forbidden"}
    assert named - own <= SERVICE_CODES


@pytest.mark.parametrize(
    "case", [case for case in cases("attestation") if case["kind"] == "client_data_hash"], ids=lambda case: case["name"]
)
def test_the_service_takes_the_challenges_that_have_a_hash(case: dict[str, Any]):
    found = challenge.from_text(case["given"])
    assert (found is None) == (case["expect"] is None)


def test_numbers_are_written_shortest_and_read_back_as_themselves():
    number, dice = reference("canonical").number, random.Random(1)
    for _ in range(20_000):
        value = struct.unpack("<d", dice.randbytes(8))[0]
        if math.isfinite(value):
            assert float(number(value)) == value
            assert len(number(value).lstrip("-").replace("0.", "").split("e")[0]) <= 22


def test_a_retry_ends_within_its_time_limit_and_waits_as_long_as_it_was_asked_to():
    for case in cases("retry"):
        given, expect = case["given"], case["expect"]
        assert expect["ended_at_ms"] <= given["timeout_ms"], case["name"]
        times = [attempt["at_ms"] for attempt in expect["attempts"]]
        assert times == sorted(times)
        assert json.dumps(given["script"]), case["name"]
