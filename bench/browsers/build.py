"""The page that the browsers open: FingerprintJS, BotD and the probes of `page/`, bundled into a folder.

What may live here: the download of the libraries from npm and the call of esbuild. Nothing of either is committed.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PAGE = Path(__file__).parent / "page"
PACKAGES = ("@fingerprintjs/fingerprintjs@5.2.0", "@fingerprintjs/botd@2.0.0", "esbuild@0.28")
DRIVERS = ("puppeteer-core@24", "playwright-core@1", "selenium-webdriver@4")


def build(folder: Path) -> Path:
    """Make the page below `folder` and return where it is; what npm installed stays for the next time."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "node_modules" / "selenium-webdriver").is_dir():
        (folder / "package.json").write_text('{"private": true, "type": "module"}\n')
        command = ("npm", "install", "--no-audit", "--no-fund", "--no-save", *PACKAGES, *DRIVERS)
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        # npm may have been told to run no scripts of packages; this one puts the program in its place.
        subprocess.run(("node", "node_modules/esbuild/install.js"), cwd=folder, check=True)
    sources, site = folder / "page", folder / "site"
    shutil.copytree(PAGE, sources, dirs_exist_ok=True)
    site.mkdir(exist_ok=True)
    bundler = folder / "node_modules" / ".bin" / "esbuild"
    entries = [str(sources / name) for name in ("collect.js", "worker.js")]
    options = ("--bundle", "--format=iife", "--target=es2020", f"--outdir={site}")
    subprocess.run((str(bundler), *entries, *options, "--log-level=error"), cwd=folder, check=True)
    shutil.copy(sources / "index.html", site)
    return site
