"""The extracts of the guides that use the SDK's packages are checked by the compiler against their declarations: names,
options and what calls return. The programs in `examples/` run the same in browsers.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.chromium import built, node
from tests.test_docs import ROOT, block

WEB = ROOT / "web"
MODULES = WEB / "node_modules"
PATHS = {
    "@svc/web": WEB / "sdk/dist/svc.d.ts",
    "/id/sdk/v1/svc.esm.js": WEB / "sdk/dist/svc.d.ts",
    "/assets/svc.esm.js": WEB / "sdk/dist/svc.d.ts",
    "https://id.shop.example/sdk/v1/svc.esm.js": WEB / "sdk/dist/svc.d.ts",
    "@svc/react": WEB / "react/dist/index.d.ts",
    "@svc/vue": WEB / "vue/dist/index.d.ts",
    "@svc/react-native": ROOT / "clients/react-native/src/index.ts",
    "react-native": ROOT / "clients/react-native/test/react-native.d.ts",
    "@fingerprintjs/fingerprintjs": MODULES / "@fingerprintjs/fingerprintjs/dist/fp.d.ts",
    "vue": MODULES / "vue",
    "react": MODULES / "@types/react",
    "react/jsx-runtime": MODULES / "@types/react/jsx-runtime.d.ts",
}
LOAD = 'import { load } from "@svc/web";\n'
"""For extracts that begin below the import, as the page says above them."""
SDK = "../web/sdk/README.md"
"""From `docs`, like the other pages."""
SNIPPETS = {
    ("frontend.md", "javascript", "consent.on"): f"{LOAD}/** @type {{any}} */ const consent = null;\n",
    ("frontend.md", "javascript", "/id/sdk/v1"): "",
    ("frontend.md", "javascript", "router.on"): f"{LOAD}/** @type {{any}} */ const router = null, user = null;\n",
    ("frontend.md", "javascript", "client ??="): "",
    ("frontend.md", "javascript", "createSvc"): (
        'import { createApp } from "vue";\n/** @type {any} */ const App = null, tag = "";\n'
    ),
    ("frontend.md", "jsx", "SvcProvider"): '/** @type {any} */ const tag = "", signUp = null;\n',
    ("react-native.md", "typescript", "Platform"): "",
    ("collectors.md", "javascript", "import FingerprintJS"): "",
    ("signed-verdicts.md", "javascript", "verdict: true"): f"{LOAD}/** @type {{any}} */ const user = null, tag = '';\n",
    (SDK, "javascript", "import { requestId }"): "/** @type {any} */ const form = null;\n",
    (SDK, "javascript", 'fetch("/login"'): (
        'import { requestId } from "./visitor.js";\nconst tag = "", email = "", password = "";\n'
    ),
    (SDK, "javascript", "customer.id"): (
        f"{LOAD}const client = load({{ apiKey: '' }});\n/** @type {{any}} */ const customer = null, order = null;\n"
    ),
    (SDK, "javascript", "router.on"): f"{LOAD}/** @type {{any}} */ const router = null, user = null;\n",
    (SDK, "javascript", "consent.on"): (
        'import { forget, load } from "@svc/web";\n/** @type {any} */ const consent = null, endpoint = "";\n'
    ),
    (SDK, "javascript", "/id/sdk/v1"): "",
    (SDK, "javascript", "/assets/svc"): "",
    (SDK, "javascript", "client ??="): "",
    (SDK, "jsx", "SvcProvider"): '/** @type {any} */ const tag = "", signUp = null;\n',
    ("../web/react/README.md", "jsx", "SvcProvider"): "",
    ("../web/vue/README.md", "js", "createSvc"): (
        'import { createApp } from "vue";\n/** @type {any} */ const App = null;\n'
    ),
}
"""(page, language, text that it contains) -> what stands before it in a page."""
IDENTIFY = """
interface Asked {
  url: string; key: string; collect: () => Promise<object>;
  accountId?: string; action?: string; tag?: string;
}
export function identify(asked: Asked): Promise<{ request_id: string }>;
"""
"""Of the client for other collectors, which `test_docs.py` runs."""
ENDINGS = {"javascript": "js", "js": "js", "jsx": "jsx", "typescript": "ts"}
OPTIONS = {
    "allowJs": True,
    "checkJs": True,
    "noEmit": True,
    "jsx": "react-jsx",
    "lib": ["ES2022", "DOM", "DOM.Iterable"],
    "module": "ESNext",
    "moduleDetection": "force",
    "moduleResolution": "Bundler",
    "skipLibCheck": True,
    "strict": False,
    "target": "ES2022",
    "types": [],
}


def checked(folder: Path, files: dict[str, str]) -> str:
    """What the compiler says of these files."""
    built()
    found = node()
    for name, text in files.items():
        (folder / name).write_text(text)
    paths = {name: [str(path)] for name, path in PATHS.items()}
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS | {"paths": paths}, "include": ["."]}))
    done = subprocess.run(
        [found.node, MODULES / "typescript/bin/tsc", "-p", folder],
        capture_output=True,
        text=True,
        check=False,
        env=found.environment,
    )
    return done.stdout + done.stderr


@pytest.mark.slow(5)
def test_the_extracts_of_the_guides_fit_the_declarations_of_the_packages(tmp_path: Path):
    files = {
        f"extract-{number}.{ENDINGS[kind]}": before + block(page, kind, containing)
        for number, ((page, kind, containing), before) in enumerate(SNIPPETS.items())
    }
    assert "function identify({ url, key, collect, accountId, action, tag })" in block(
        "collectors.md", "javascript", "STORED_AS"
    )
    files["identify.d.ts"] = IDENTIFY
    files["visitor.js"] = block(SDK, "javascript", "// visitor.js")
    assert checked(tmp_path, files) == ""


@pytest.mark.slow(5)
def test_an_option_that_no_package_has_is_found(tmp_path: Path):
    said = checked(
        tmp_path, {"wrong.js": f'{LOAD}load({{ apiKey: "svc_pk_...", endpiont: "https://id.shop.example" }});'}
    )
    assert "endpiont" in said
