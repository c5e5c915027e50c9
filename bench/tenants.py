"""What an honest organization waits for while another one, or a stranger, asks as often as it can (`bench.beside`).

    python -m bench.tenants [--seconds 6.0] [--rounds 3] [--only WORD,WORD]

`--only`: words of the attacks to run.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from functools import partial
from typing import NamedTuple

from bench.beside import GIVE_UP_S, Attack, asking, compare, honest, identification, request
from bench.load import Client
from bench.serving import PAGE, Server, issue, organization
from bench.usage import read_options

LARGE_TAG = "t" * 1_000
ROWS = 200
"""Large events of the attacker, for lists that are as long as they may be."""
PREPARE_RATE = 20
"""A second: under the quarter that one address and one environment may use."""
VARIANTS = 50
"""Different requests of an attack."""


class Asked(NamedTuple):
    key: str
    """Which of the attacker's keys."""
    method: str
    path: str
    body: str = ""
    """`report`, or what is sent."""
    connections: int = 32


ORIGINS = [f"https://shop{number}.example" for number in range(100)]
KEY = json.dumps({"name": "n", "environment": "production", "allowed_origins": ORIGINS})
KEYS = "/api/v1/management/organizations/{org}/sdk-keys"
ATTACKS = {
    "events of 200 rows": Asked("development secret", "GET", "/api/v1/events?limit=200"),
    "identify, no limit": Asked("unlimited public", "POST", "", "report", 256),
    "identify, limited": Asked("public", "POST", "", "report"),
    "list of keys": Asked("management", "GET", KEYS, "", 8),
    "events, empty page": Asked("secret", "GET", "/api/v1/events?limit=50"),
    "issue keys": Asked("developer", "POST", KEYS, KEY),
    "unknown path": Asked("", "GET", "/nowhere"),
    "bundle of /docs": Asked("", "GET", "/docs/api/swagger-ui-bundle.js"),
    "openapi.json": Asked("", "GET", "/api/v1/openapi.json"),
    "wrong key": Asked("wrong", "POST", "", "report"),
    "challenge": Asked("public", "POST", "/api/v1/attestation/challenge"),
}


def written(asked: Asked, keys: dict[str, str], chance: random.Random) -> bytes:
    key = keys.get(asked.key, "")
    if asked.body == "report":
        return identification(key, chance)
    return request(asked.method, asked.path.replace("{org}", keys["organization"]), key, asked.body.encode(), chance)


def issued(directory: str) -> tuple[str, dict[str, str]]:
    """The honest key; and what the attacker has, with the id of its organization."""
    good, bad = (organization(directory, name, limited=True) for name in ("honest", "attacker"))
    unlimited = organization(directory, "unlimited")
    secret, managing = ("--kind", "secret", "--environment"), ("--kind", "management", "--role")
    keys = {
        "organization": bad,
        "public": issue(directory, bad, *PAGE),
        "secret": issue(directory, bad, *secret, "staging"),
        "development secret": issue(directory, bad, *secret, "development"),
        "management": issue(directory, bad, *managing, "admin"),
        "developer": issue(directory, bad, *managing, "developer"),
        "unlimited public": issue(directory, unlimited, *PAGE),
        "wrong": issue(directory, good, *PAGE)[:-1] + "!",
    }
    return issue(directory, good, *PAGE), keys


def prepare(port: int, keys: dict[str, str]) -> None:
    """Large events, and as many keys as the attacker can have."""
    chance, client = random.Random(3), Client(port, GIVE_UP_S)
    began = time.perf_counter()
    for number in range(ROWS):
        time.sleep(max(0.0, began + number / PREPARE_RATE - time.perf_counter()))
        sent = identification(keys["development secret"], chance, LARGE_TAG)
        client.ask(sent.replace(b"X-Forwarded-For", b"X-Svc-Visitor-Ip"))
    for _ in range(ROWS):
        client.ask(written(ATTACKS["issue keys"], keys, chance))


def main() -> None:
    given = read_options(__doc__)
    words = (given.only or "").split(",")
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
        honest_key, keys = issued(directory)
        chance, attacks = random.Random(1), dict[str, Attack]()
        for name, asked in ATTACKS.items():
            if any(word in name for word in words):
                requests = [written(asked, keys, chance) for _ in range(VARIANTS)]
                attacks[name] = asking([requests] * asked.connections)
        with Server.serving(directory) as server:
            prepare(server.port, keys)
            compare(server, attacks, partial(honest, server, honest_key, given.seconds), given.rounds)


if __name__ == "__main__":
    main()
