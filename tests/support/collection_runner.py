"""Runs a request collection as the runner of an API tool does: in order, with its variables and its scripts.

It understands the lines of script that the service writes, and no others: a check of the status, a variable from the
response, and a wait.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import httpx
import trio

CHECK = 'pm.test("succeeds", function () { pm.expect(pm.response.code).to.be.within(200, 299); });'
KEEP = re.compile(r'pm\.collectionVariables\.set\("(\w+)", pm\.response\.json\(\)\.([\w.]+)\);')
WAIT = re.compile(r"setTimeout\(function \(\) {}, (\d+)\);")


class Ran(NamedTuple):
    """One request of a run, as it was sent, and its response."""

    name: str
    response: httpx.Response
    checks: int


async def run_collection(client: httpx.AsyncClient, made: dict[str, Any], given: dict[str, str]) -> list[Ran]:
    """Every request of the collection, with these values of its variables. Raises `KeyError` for a variable that is not
    among them, and `ValueError` for a line of script that it does not know.
    """
    variables = {variable["key"]: variable["value"] for variable in made["variable"]}
    assert given.keys() <= variables.keys()
    variables |= given
    items = [item for folder in made["item"] for item in folder["item"]]
    return [await _ran(client, item, variables) for item in items]


async def _ran(client: httpx.AsyncClient, item: dict[str, Any], variables: dict[str, str]) -> Ran:
    def filled(text: str) -> str:
        return re.sub(r"{{(\w+)}}", lambda found: variables[found[1]], text)

    for line in _lines(item, "prerequest"):
        if not (waiting := WAIT.fullmatch(line)):
            raise ValueError(line)
        await trio.sleep(int(waiting[1]) / 1000)
    request = item["request"]
    headers = {header["key"]: filled(header["value"]) for header in request["header"] if not header.get("disabled")}
    if request["auth"]["type"] == "apikey":
        key = {part["key"]: filled(part["value"]) for part in request["auth"]["apikey"]}
        headers[key["key"]] = key["value"]
    url, places = request["url"], {one["key"]: filled(one["value"]) for one in request["url"]["variable"]}
    path = "/".join(places[part[1:]] if part.startswith(":") else part for part in url["path"])
    body = filled(request["body"]["raw"]) if "body" in request else None
    query = [(one["key"], filled(one["value"])) for one in url["query"] if not one.get("disabled")]
    response = await client.request(
        request["method"], f"{filled(url['host'][0])}/{path}", content=body, headers=headers, params=query or None
    )
    checks = 0
    for line in _lines(item, "test"):
        if line == CHECK:
            checks += 1
            assert 200 <= response.status_code <= 299, f"{item['name']}: {response.status_code} {response.text}"
        elif keeps := KEEP.fullmatch(line):
            value: Any = response.json()
            for part in keeps[2].split("."):
                value = value[part]
            variables[keeps[1]] = str(value)
        else:
            raise ValueError(line)
    return Ran(item["name"], response, checks)


def _lines(item: dict[str, Any], moment: str) -> list[str]:
    return [line for event in item["event"] if event["listen"] == moment for line in event["script"]["exec"]]
