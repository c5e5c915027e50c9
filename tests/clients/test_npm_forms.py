"""`@svc/client` as projects load it: `import` and `require`, types for each way of finding a module, and bundles."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.clients.conftest import Library
from tools.web import WEB

pytestmark = pytest.mark.slow(5)

BOTH = """
import * as modules from "@svc/client";
import { createRequire } from "node:module";

const common = createRequire(import.meta.url)("@svc/client");
class Own extends common.ApiError {}
const error = new modules.ApiError(503, "a", "b");
console.log(JSON.stringify({
  forms: modules.Client !== common.Client,
  names: [Object.keys(common).sort(), Object.keys(modules).filter((name) => !/^(default|module)/.test(name)).sort()],
  holds: [
    error instanceof common.ApiError, error instanceof common.SvcError,
    new common.WebhookError("a") instanceof modules.WebhookError, new Own(1, "a", "b") instanceof modules.ApiError,
  ],
  not: [
    error instanceof common.WebhookError, error instanceof common.UnreachableError, error instanceof Own,
    new Error("a") instanceof common.SvcError, null instanceof common.SvcError, "a" instanceof modules.SvcError,
  ],
}));
"""


def test_errors_are_those_of_either_form_where_a_process_has_both(library: Library):
    told = json.loads(library.program("both.mjs", BOTH))
    assert told["forms"], "each is a copy of its own"
    assert told["names"][0] == told["names"][1]
    assert set(told["holds"]) == {True}
    assert set(told["not"]) == {False}


USES = """
import { ApiError, Client, type Checked, type EventDetailBody } from "@svc/client";
export async function decided(client: Client, id: unknown): Promise<[Checked["decision"], EventDetailBody | null]> {
  try {
    const { decision, event } = await client.check(id, { origin: null, tag: null, isFirstUse: () => true });
    return [decision, event];
  } catch (error) {
    if (error instanceof ApiError && error.code === "unauthorized") return ["refuse", null];
    throw error;
  }
}
"""
REQUIRES = """
import client = require("@svc/client");
export const svc: client.Client = new client.Client({ baseUrl: "https://id.shop.example", apiKey: "k" });
"""


def test_each_way_of_finding_a_module_finds_its_types(library: Library):
    files = {"uses.mts": USES, "uses.cts": USES, "requires.cts": REQUIRES}
    for module, resolution in (("node16", "node16"), ("esnext", "bundler")):
        found = [name for name in files if resolution == "node16" or name == "uses.mts"]
        options = {"module": module, "moduleResolution": resolution, "skipLibCheck": True}
        assert library.faults({name: files[name] for name in found}, **options) == ""


@pytest.mark.parametrize("form", ["esm", "cjs"])
def test_a_bundle_of_esbuild_runs(library: Library, form: str):
    source = 'import { Client } from "@svc/client"; console.log(typeof Client);'
    if form == "cjs":
        source = 'const { Client } = require("@svc/client"); console.log(typeof Client);'
    entry = library.folder / f"bundled-{form}.js"
    entry.write_text(source)
    made = library.folder / f"bundle.{'mjs' if form == 'esm' else 'cjs'}"
    options = ["--bundle", "--platform=node", f"--format={form}", f"--outfile={made}", "--log-level=warning"]
    subprocess.run([WEB / "node_modules" / "esbuild" / "bin" / "esbuild", entry, *options], check=True)
    assert library.program(made.name) == "function\n"
