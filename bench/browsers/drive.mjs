// Opens the page with a driver: node drive.mjs DRIVER BROWSER MODE URL
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { mkdtempSync } from "node:fs";
import { spawn } from "node:child_process";
import { join } from "node:path";

const [driver, browser, mode, url] = process.argv.slice(2);
const require = createRequire(join(process.env.MODULES, "x.js"));
const paths = {
  chromium: "/usr/lib/chromium/chromium",
  firefox: "/usr/bin/firefox-esr",
  minibrowser: "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser",
};
const plain = ["--no-sandbox", "--disable-dev-shm-usage", "--no-first-run"];
const executablePath = mode === "shell" ? "/usr/bin/chromium-headless-shell" : paths[browser];
const headless = mode !== "window";

/** Playwright, or a package with its interface. */
async function playwright(chromium, options = {}, page = {}) {
  const running = await chromium.launch({ executablePath, headless, args: plain, ...options });
  await (await running.newPage(page)).goto(url);
}

/** The DevTools address of a browser that was started like a person's, but for its port. */
function startedWithPort() {
  const profile = mkdtempSync(join(tmpdir(), "attached-"));
  const unseen = headless ? ["--headless"] : [];
  const child = spawn(executablePath, [...plain, ...unseen, `--user-data-dir=${profile}`, "--remote-debugging-port=0", "about:blank"]);
  return new Promise((resolve) => {
    child.stderr.on("data", (data) => {
      const found = /DevTools listening on (\S+)/.exec(String(data));
      if (found) resolve(found[1]);
    });
  });
}

const flagless = {
  ignoreDefaultArgs: ["--enable-automation"],
  args: [...plain, "--disable-blink-features=AutomationControlled"],
};

/** A phone as developer tools emulate it, with the commands that they send; without a driver's flag. */
const deviceMode = (device, model) => () => {
  const puppeteer = require("puppeteer-core");
  return runs.puppeteer(flagless, puppeteer, async (page) => {
    const { userAgent, viewport } = puppeteer.KnownDevices[device];
    await page.setViewport(viewport);
    // Where the developer tools know a model, the client hints are the phone's; of an iPhone there are none.
    const android = { platform: "Android", platformVersion: "11", architecture: "", model, mobile: true };
    const protocol = await page.createCDPSession();
    await protocol.send("Emulation.setUserAgentOverride", { userAgent, ...(model && { userAgentMetadata: android }) });
  });
};

const runs = {
  "device-mode-pixel": deviceMode("Pixel 5", "Pixel 5"),
  "device-mode-galaxy": deviceMode("Galaxy S9+ landscape", "SM-G965U"),
  "device-mode-iphone": deviceMode("iPhone 15 Pro"),
  "device-mode-ipad": deviceMode("iPad Pro 11"),
  async puppeteer(options = {}, puppeteer = require("puppeteer-core"), prepare = async () => {}) {
    const args = browser === "chromium" ? plain : [];
    const shown = mode === "shell" ? "shell" : headless;
    const running = await puppeteer.launch({ browser: browser === "firefox" ? "firefox" : "chrome", executablePath,
      headless: shown, args, ...options });
    const page = await running.newPage();
    await prepare(page);
    await page.goto(url);
  },
  "puppeteer-flagless": () => runs.puppeteer(flagless),
  async "puppeteer-attached"() {
    const puppeteer = require("puppeteer-core");
    const running = await puppeteer.connect({ browserWSEndpoint: await startedWithPort() });
    await (await running.newPage()).goto(url);
  },
  async "puppeteer-stealth"() {
    const { addExtra } = require("puppeteer-extra");
    const stealthy = addExtra(require("puppeteer-core"));
    stealthy.use(require("puppeteer-extra-plugin-stealth")());
    await runs.puppeteer({}, stealthy);
  },
  "puppeteer-rebrowser": () => runs.puppeteer({}, require("rebrowser-puppeteer-core")),
  playwright: () => playwright(require("playwright-core").chromium),
  "playwright-flagless": () => playwright(require("playwright-core").chromium, flagless),
  async "playwright-attached"() {
    const running = await require("playwright-core").chromium.connectOverCDP(await startedWithPort());
    await (await running.contexts()[0].newPage()).goto(url);
  },
  async "fingerprint-injector"() {
    const { newInjectedContext } = require("fingerprint-injector");
    const running = await require("playwright-core").chromium.launch({ executablePath, headless, ...flagless });
    const options = { fingerprintOptions: { devices: ["desktop"], operatingSystems: ["linux", "windows"] } };
    const context = await newInjectedContext(running, options);
    await (await context.newPage()).goto(url);
  },
  async "playwright-stealth"() {
    const chromium = require("playwright-extra").addExtra(require("playwright-core").chromium);
    chromium.use(require("puppeteer-extra-plugin-stealth")());
    await playwright(chromium);
  },
  "playwright-rebrowser": () => playwright(require("rebrowser-playwright-core").chromium),
  patchright: () => playwright(require("patchright-core").chromium),
  "patchright-no-viewport": () => playwright(require("patchright-core").chromium, {}, { viewport: null }),
  async selenium() {
    const { Builder } = require("selenium-webdriver");
    if (browser === "minibrowser") {
      const { Capabilities } = require("selenium-webdriver");
      const http = require("selenium-webdriver/http");
      const child = spawn("/usr/bin/WebKitWebDriver", ["--port=34567"], { stdio: "inherit" });
      await new Promise((resolve) => setTimeout(resolve, 1000));
      const capabilities = new Capabilities({ browserName: "MiniBrowser",
        "webkitgtk:browserOptions": { binary: paths.minibrowser, args: ["--automation"] } });
      const { WebDriver } = require("selenium-webdriver");
      const executor = new http.Executor(new http.HttpClient("http://127.0.0.1:34567"));
      const running = await WebDriver.createSession(executor, capabilities);
      await running.get(url);
      return child;
    }
    const chrome = require("selenium-webdriver/chrome");
    const options = new chrome.Options().setChromeBinaryPath(executablePath).addArguments(...plain);
    if (headless) options.addArguments("--headless");
    const service = new chrome.ServiceBuilder("/usr/bin/chromedriver");
    const running = await new Builder().forBrowser("chrome").setChromeOptions(options).setChromeService(service).build();
    await running.get(url);
  },
};

runs[driver]().catch((problem) => { console.error(problem); process.exit(1); });
setTimeout(() => {}, 60_000);
