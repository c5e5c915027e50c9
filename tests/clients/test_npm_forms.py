"""`@svc/client` as projects load it: `import` and `require`, types for each way of finding a module, and bundles."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.clients.conftest import Library
from tools.node_client import PACKAGE
from tools.web import WEB

pytestmark = pytest.mark.slow(5)

BOTH = """
import * as modules from "@svc/client";
import * as testing from "@svc/client/testing";
import { createRequire } from "node:module";

const common = createRequire(import.meta.url)("@svc/client");
class Own extends common.ApiError {}
const error = new modules.ApiError(503, "a", "b");
console.log(JSON.stringify({
  forms: modules.Client !== common.Client,
  fakes: [testing.FakeService.name, createRequire(import.meta.url)("@svc/client/testing").FakeService.name],
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
    assert told["fakes"] == ["FakeService", "FakeService"]
    assert told["names"][0] == told["names"][1]
    assert set(told["holds"]) == {True}
    assert set(told["not"]) == {False}


USES = """
import { ApiError, Client, type Checked, type EventDetailBody } from "@svc/client";
import { type Answer, FakeService } from "@svc/client/testing";
export async function decided(client: Client, id: unknown): Promise<[Checked["decision"], EventDetailBody | null]> {
  try {
    const { decision, event } = await client.check(id, { origin: null, tag: null, isFirstUse: () => true });
    return [decision, event];
  } catch (error) {
    if (error instanceof ApiError && error.code === "unauthorized") return ["refuse", null];
    throw error;
  }
}
const said: Answer = { decision: "block", rule: "a", tag: null, suspect_score: null, signals: ["vpn"] };
const fake = new FakeService(said);
export const body: Uint8Array = fake.webhook({ data: fake.event(fake.answer()) }, "a").body;
// @ts-expect-error no such decision
fake.answer({ decision: "maybe" });
// @ts-expect-error no such field
fake.answer({ visitor_name: "a" });
"""
REQUIRES = """
import client = require("@svc/client");
import testing = require("@svc/client/testing");
export const svc: client.Client = new testing.FakeService().client();
"""
RESOLUTIONS = {
    "node16": {"module": "node16", "files": {"uses.mts": USES, "uses.cts": USES, "requires.cts": REQUIRES}},
    "bundler": {"module": "esnext", "files": {"bundled.mts": USES}},
    "node10": {"module": "commonjs", "files": {"old.ts": USES, "required.ts": REQUIRES}, "ignoreDeprecations": "6.0"},
}


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_each_way_of_finding_a_module_finds_its_types(library: Library, resolution: str):
    options: dict[str, Any] = dict(RESOLUTIONS[resolution])
    files = options.pop("files")
    assert library.faults(files, moduleResolution=resolution, skipLibCheck=True, **options) == ""


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


def test_the_packed_file_has_everything_that_its_description_names(library: Library):
    packed = library.packed()
    described = json.loads((PACKAGE / "package.json").read_text())
    entries = [entry for entry in described["exports"].values() if not isinstance(entry, str)]
    named = {target for entry in entries for form in entry.values() for target in form.values()}
    assert {name.removeprefix("./") for name in named} | {"LICENSE", "README.md", "dist/cjs/package.json"} < packed
    assert not [name for name in packed if name.startswith(("src", "tsconfig"))]
    assert "dependencies" not in described
