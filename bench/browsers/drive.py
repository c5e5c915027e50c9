"""Opens the page with a driver written in Python: python drive.py DRIVER MODE URL PROFILE

Runs in an environment of its own, with the packages of the drivers and nothing of the service: see `automation.py`.
Each driver is imported by the function that runs it.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHROMIUM = "/usr/lib/chromium/chromium"
CHROMEDRIVER = "/usr/bin/chromedriver"
PLAIN = ("--no-sandbox", "--disable-dev-shm-usage", "--no-first-run")
STAYS_S = 60

driver, mode, url, profile = sys.argv[1:]
headless = mode != "window"
os.chdir(tempfile.mkdtemp())  # some leave files where they run


def selenium() -> Any:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (*PLAIN, *(["--headless"] if headless else [])):
        options.add_argument(argument)
    running = webdriver.Chrome(options=options, service=Service(CHROMEDRIVER))
    running.get(url)
    return running


def undetected() -> Any:
    import undetected_chromedriver as uc

    own = Path(tempfile.mkdtemp()) / "chromedriver"  # it changes the driver's file
    shutil.copy(CHROMEDRIVER, own)
    options = uc.ChromeOptions()
    for argument in PLAIN:
        options.add_argument(argument)
    version = int(os.popen(f"{CHROMEDRIVER} --version").read().split()[1].split(".")[0])
    running = uc.Chrome(options=options, headless=headless, driver_executable_path=str(own), version_main=version,
                        browser_executable_path=CHROMIUM, user_data_dir=profile)  # fmt: skip
    running.get(url)
    return running


def seleniumbase() -> Any:
    from seleniumbase import Driver

    running = Driver(uc=True, headless2=headless, binary_location=CHROMIUM, chromium_arg=",".join(PLAIN))
    running.get(url)
    return running


def drissionpage() -> Any:
    from DrissionPage import ChromiumOptions, ChromiumPage

    options = ChromiumOptions().set_browser_path(CHROMIUM).headless(headless).set_user_data_path(profile).auto_port()
    for argument in PLAIN:
        options.set_argument(argument)
    running = ChromiumPage(options)
    running.get(url)
    return running


def botasaurus() -> Any:
    from botasaurus_driver import Driver

    running = Driver(headless=headless, chrome_executable_path=CHROMIUM, arguments=list(PLAIN))
    running.get(url)
    return running


async def nodriver() -> Any:
    import nodriver as uc

    running = await uc.start(headless=headless, browser_executable_path=CHROMIUM, sandbox=False, user_data_dir=profile)
    return running, await running.get(url)


async def zendriver() -> Any:
    import zendriver as zd

    running = await zd.start(headless=headless, browser_executable_path=CHROMIUM, sandbox=False, user_data_dir=profile)
    return running, await running.get(url)


async def pydoll() -> Any:
    from pydoll.browser.chromium import Chrome
    from pydoll.browser.options import ChromiumOptions

    options = ChromiumOptions()
    options.binary_location = CHROMIUM
    for argument in (*PLAIN[:2], *(["--headless=new"] if headless else [])):  # the rest it adds itself
        options.add_argument(argument)
    running = Chrome(options=options)
    tab = await running.start()
    await tab.go_to(url)
    return running, tab


async def driverless() -> Any:
    from selenium_driverless import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (*PLAIN, *(["--headless=new"] if headless else [])):
        options.add_argument(argument)
    running = await webdriver.Chrome(options=options)
    await running.get(url)
    return running


async def playwright_stealth() -> Any:
    from playwright.async_api import async_playwright
    from playwright_stealth import Stealth

    started = await Stealth().use_async(async_playwright()).__aenter__()
    running = await started.chromium.launch(executable_path=CHROMIUM, headless=headless, args=list(PLAIN))
    page = await running.new_page()
    await page.goto(url)
    return started, running, page


RUNS: dict[str, Callable[[], Any]] = {
    "selenium": selenium,
    "undetected-chromedriver": undetected,
    "seleniumbase-uc": seleniumbase,
    "drissionpage": drissionpage,
    "botasaurus": botasaurus,
    "nodriver": nodriver,
    "zendriver": zendriver,
    "pydoll": pydoll,
    "selenium-driverless": driverless,
    "playwright-stealth": playwright_stealth,
}


async def stay(run: Callable[[], Any]) -> None:
    """Keep what it returns, and the browser with it, until this program is ended."""
    kept = await run()
    await asyncio.sleep(STAYS_S)
    del kept


chosen = RUNS[driver]
if asyncio.iscoroutinefunction(chosen):
    asyncio.run(stay(chosen))
else:
    kept = chosen()
    time.sleep(STAYS_S)
