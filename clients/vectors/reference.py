"""Writes the vectors: `python clients/vectors/reference.py` in the repository's root, with its virtual environment.

Each file has `format` 1 and `cases`: `name`, `kind`, `given`, `expect`, and `only` with the languages that run it where
not all do. A runner that meets a kind that it does not know fails.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from cases_for_servers import check_cases, verdict_cases, webhook_cases
from cases_of_apps import app_cases
from cases_of_claims import claim_cases, delivery_cases
from cases_of_failing import hostile_cases
from cases_of_keeping import attestation_cases, deferred_cases, token_cases
from cases_of_proofs import proof_cases
from cases_of_reports import canonical_cases, report_cases
from cases_of_responses import response_cases
from cases_of_running import engine_cases
from cases_of_sending import error_cases, retry_cases
from cases_of_testing import testing_cases

FOLDER = Path(__file__).parent
FILES = {
    "retry": retry_cases,
    "errors": error_cases,
    "canonical": canonical_cases,
    "report": report_cases,
    "deferred": deferred_cases,
    "token": token_cases,
    "attestation": attestation_cases,
    "engine": engine_cases,
    "apps": app_cases,
    "proof": proof_cases,
    "check": check_cases,
    "verdict": lambda: [*verdict_cases(), *claim_cases()],
    "webhook": lambda: [*webhook_cases(), *delivery_cases()],
    "responses": response_cases,
    "hostile": hostile_cases,
    "testing": testing_cases,
}


def files() -> dict[str, str]:
    """Name of each file -> its text."""
    return {f"{name}.json": _file(cases()) for name, cases in FILES.items()}


def _file(cases: list[dict[str, Any]]) -> str:
    """One case in a line."""
    return '{"format": 1, "cases": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]}\n"


if __name__ == "__main__":
    for name, text in files().items():
        (FOLDER / name).write_text(text)
        sys.stdout.write(f"{name}: {len(json.loads(text)['cases'])} cases\n")
