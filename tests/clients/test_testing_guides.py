"""The tests that the READMEs of the libraries show run as they stand, and `@svc/client` in Jest."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from svc_client import ApiError, Client

from tests.clients.conftest import Library
from tools.node_client import compiler

ROOT = Path(__file__).parents[2]
SHOP = """
export async function logIn(svc, requestId, tag) {
  try {
    return (await svc.check(requestId, { origin: "https://shop.example", tag, isFirstUse: () => true })).decision;
  } catch {
    return "verify";
  }
}
"""
JEST = """
const { ApiError, Client } = require("@svc/client");
const { FakeService } = require("@svc/client/testing");
const fake = new FakeService();
const given = { origin: "https://shop.example", tag: null, isFirstUse: () => true };
test("a decision", async () => {
  const checked = await fake.client().check(fake.answer({ decision: "challenge" }), given);
  expect(checked.decision).toBe("verify");
});
test("errors", async () => {
  await expect(fake.client({ apiKey: "nobody" }).check(fake.answer(), given)).rejects.toBeInstanceOf(ApiError);
  fake.disconnect({ times: null });
  const named = { name: "UnreachableError", wasSent: false };
  await expect(fake.client().check(fake.answer(), given)).rejects.toMatchObject(named);
  const lonely = new Client({ baseUrl: "http://127.0.0.1:40999", apiKey: "k", retries: { attempts: 1 } });
  await expect(lonely.check(fake.answer(), given)).rejects.toMatchObject(named);
});
"""


def shown(page: str, kind: str, containing: str) -> str:
    """One code block of a README."""
    found = re.findall(rf"^```{kind}\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    (block,) = [block for block in found if containing in block]
    return block


def log_in(svc: Client, request_id: str, tag: str) -> str:
    try:
        return svc.check(request_id, origin="https://shop.example", tag=tag, is_first_use=lambda _: True).decision
    except ApiError:
        return "verify"


def test_what_the_readme_shows_for_python_passes(monkeypatch: pytest.MonkeyPatch):
    shop: Any = ModuleType("shop")
    shop.log_in = log_in
    monkeypatch.setitem(sys.modules, "shop", shop)
    names: dict[str, Any] = {}
    exec(compile(shown("clients/python/README.md", "python", "FakeService("), "README.md", "exec"), names)
    tests = [names[name] for name in names if name.startswith("test_")]
    assert len(tests) == 3
    for one in tests:
        one()


@pytest.mark.slow(5)
def test_what_the_readme_shows_for_node_passes(library: Library):
    folder = library.folder / "guide"
    folder.mkdir(exist_ok=True)
    (folder / "shop.js").write_text(SHOP)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "shop.test.js").write_text(shown("clients/node/README.md", "javascript", "new FakeService("))
    told = library.program("guide/shop.test.js")
    assert "pass 3\n" in told, told


@pytest.mark.long
def test_jest_loads_the_library(library: Library, tmp_path: Path):
    """From the registry, where there is one."""
    node = compiler()
    assert not isinstance(node, str)
    for name, text in {"package.json": '{"private": true}', "a.test.js": JEST}.items():
        (tmp_path / name).write_text(text)
    command = [*node.npm, "install", "--prefer-offline", "--no-audit", "--no-fund", "jest@30"]
    installed = subprocess.run(command, cwd=tmp_path, env=node.environment, capture_output=True, text=True, check=False)
    if installed.returncode != 0:
        pytest.skip(f"Jest can't be installed: {installed.stderr.strip().splitlines()[:1]}")
    place = Path("node_modules") / "@svc" / "client"
    shutil.copytree(library.folder / place, tmp_path / place)
    run = [node.node, tmp_path / "node_modules" / "jest" / "bin" / "jest.js"]
    done = subprocess.run(run, cwd=tmp_path, env=node.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 passed" in done.stderr
