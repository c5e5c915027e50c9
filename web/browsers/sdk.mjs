/**
 * Visits of a headless Chromium to a page with the SDK, against a real service, with faults in between.
 * node sdk.mjs SERVICE PUBLIC_KEY SECRET_KEY SDK_FOLDER PROFILE SHOP_PORT
 * Prints one JSON object for each visit: its name, what the page got, what arrived, and identifications made.
 */
import { createServer, request as httpRequest } from "node:http";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { launch } from "./launch.mjs";

const [service, publicKey, secretKey, folder, profile, shopPort] = process.argv.slice(2);
const SHOP = `http://shop.example:${shopPort}`;
const LOCAL = `http://localhost:${shopPort}`;

/** Longer than an attempt of the SDK. */
const LATE_MS = 7000;
const HIDDEN_LIMIT_MS = 3500;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const PAGE =
  '<!doctype html><html lang="en"><title>Shop</title><body><script type="module" src="/page.js"></script></body></html>';
const GLOBAL_PAGE =
  '<!doctype html><html lang="en"><title>Shop</title><body><script src="/svc.js"></script><script type="module" src="/page.js"></script></body></html>';
const SCRIPT = `
  window.violations = [];
  document.addEventListener("securitypolicyviolation", (event) => violations.push(event.effectiveDirective + " " + event.blockedURI));
  // What a page does that must go on where the script is blocked.
  window.sdk = window.svc ?? (await import("/svc.esm.js").catch(() => null));
  window.visit = async (options, identifyOptions) => {
    if (!sdk) return { result: null };
    let client;
    try {
      client = sdk.load(options);
      const result = await client.identify(identifyOptions);
      return { result, timing: client.timing, second: await client.deferredSent(), isSvcError: false };
    } catch (error) {
      const { name, code, status, retryable, retryAfterMs, requestId, message } = error;
      return { error: { name, code, status, retryable, retryAfterMs, requestId, message }, timing: client?.timing };
    }
  };
  window.ready = true;
`;

/** The shop: strict policy, unless the path says otherwise. */
function shop(faults) {
  return createServer((request, response) => {
    const path = request.url.split("?")[0];
    const connect = path === "/unconnected" ? "'none'" : `${service} ${faults} http://127.0.0.1:9`;
    const trusted = path === "/trusted" ? "; require-trusted-types-for 'script'; trusted-types svc" : "";
    const policy = `default-src 'none'; script-src 'self'; worker-src 'self'; connect-src ${connect}${trusted}`;
    const headers = { "content-security-policy": policy, "cache-control": "no-store" };
    if (path === "/page.js" || /^\/svc[\w.]*\.js$/.test(path)) {
      const content = path === "/page.js" ? SCRIPT : readFileSync(join(folder, path));
      response.writeHead(200, { ...headers, "content-type": "text/javascript" }).end(content);
    } else {
      response.writeHead(200, { ...headers, "content-type": "text/html" }).end(path === "/global" ? GLOBAL_PAGE : PAGE);
    }
  });
}

/** The service at /FAULT/..., with that fault at the first attempt. */
class Faults {
  received = {};
  held = [];
  server = createServer((request, response) => this.respond(request, response));

  async respond(request, response) {
    const [, fault, ...rest] = request.url.split("/");
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const forward = (after) => {
      const headers = { ...request.headers, host: new URL(service).host };
      const onward = httpRequest(`${service}/${rest.join("/")}`, { method: request.method, headers }, (answer) => {
        const parts = [];
        answer.on("data", (part) => parts.push(part)).on("end", () => after(answer, Buffer.concat(parts)));
      });
      onward.end(Buffer.concat(chunks));
    };
    const pass = () => forward((answer, body) => response.writeHead(answer.statusCode, answer.headers).end(body));
    if (request.method === "OPTIONS" || request.url.endsWith("/supplement")) return pass();
    const seen = (this.received[fault] ??= []);
    seen.push(request.headers["idempotency-key"]);
    if (fault === "hang") return;
    if (fault.startsWith("held"))
      return forward((answer, body) =>
        this.held.push(() => response.writeHead(answer.statusCode, answer.headers).end(body)),
      );
    if (seen.length > 1) return pass();
    const refuse = (status, code, headers = {}) => {
      const cors = {
        "access-control-allow-origin": request.headers.origin,
        "access-control-expose-headers": "Retry-After",
      };
      const body = JSON.stringify({ error: { code, message: code, status }, request_id: "" });
      response.writeHead(status, { "content-type": "application/json", ...cors, ...headers }).end(body);
    };
    if (fault === "503") return refuse(503, "service_unavailable");
    if (fault === "429") return refuse(429, "rate_limited", { "retry-after": "1" });
    if (fault === "reset") return request.socket.destroy();
    if (fault === "lost") return forward(() => request.socket.destroy());
    if (fault === "late")
      return forward((answer, body) =>
        setTimeout(() => response.writeHead(answer.statusCode, answer.headers).end(body), LATE_MS),
      );
    return pass();
  }
}

const listening = (server, port = 0) =>
  new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve(server.address().port)));

async function tagged(tag) {
  const response = await fetch(`${service}/api/v1/events?limit=200`, { headers: { "x-api-key": secretKey } });
  return (await response.json()).rows.filter((row) => row.tag === tag);
}

const identifications = async (tag) => (await tagged(tag)).length;

async function stored(requestId) {
  const response = await fetch(`${service}/api/v1/events/${requestId}`, { headers: { "x-api-key": secretKey } });
  return response.json();
}

/** The report of an event as it was archived. */
const reported = async (requestId) => (await stored(requestId)).document.signals;

const faults = new Faults();
const faultsUrl = `http://127.0.0.1:${await listening(faults.server)}`;
await listening(shop(faultsUrl), Number(shopPort));

const args = [
  "--no-sandbox",
  "--use-angle=swiftshader",
  "--enable-unsafe-swiftshader",
  "--disable-dev-shm-usage",
  "--host-resolver-rules=MAP *.example 127.0.0.1",
];
const open = () => launch({ args, userDataDir: profile });
const seen = { errors: [] };

async function newPage(context, address, prepare) {
  const page = await context.newPage();
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on(
    "console",
    (message) =>
      message.type() === "error" && /policy|violat/i.test(message.text()) && seen.errors.push(message.text()),
  );
  await prepare?.(page);
  await page.goto(address);
  await page.waitForFunction("window.ready");
  return page;
}

/** A busy machine must not cost a source: what is missing is another report. */
const DEFAULTS = { apiKey: publicKey, endpoint: service, collectMs: 5000 };
const visit = (page, options, identifyOptions) =>
  page.evaluate(
    (options, identifyOptions) => window.visit(options, identifyOptions),
    { ...DEFAULTS, ...options },
    identifyOptions,
  );

/** One visit in a page of its own; prints what became of it. */
async function tell(
  name,
  context,
  { address = LOCAL, prepare, before, options = {}, identify = {}, fault, meanwhile } = {},
) {
  const page = await newPage(context, address, prepare);
  await before?.(page);
  const given = fault ? { ...options, endpoint: `${faultsUrl}/${fault}` } : options;
  const began = performance.now();
  const pending = visit(page, given, { tag: name, ...identify }).catch((error) => ({
    gone: error.message.split("\n")[0],
  }));
  await meanwhile?.(page);
  const outcome = await pending;
  const tookMs = Math.round(performance.now() - began);
  const violations = await page.evaluate("window.violations").catch(() => []);
  const keys = faults.received[fault] ?? [];
  const line = {
    name,
    ...outcome,
    tookMs,
    violations,
    arrived: keys.length,
    keys: new Set(keys).size,
    identifications: await identifications(name),
  };
  console.log(JSON.stringify(line));
  await page.close();
  return outcome;
}

let browser = await open();
let main = browser.defaultBrowserContext();
await tell("first", main);
await tell("again", main);
const cleared = await newPage(main, LOCAL);
const session = await cleared.createCDPSession();
await session.send("Storage.clearDataForOrigin", { origin: LOCAL, storageTypes: "all" });
await session.send("Network.clearBrowserCookies");
await cleared.close();
await tell("cleared", main);
await tell("global", main, { address: `${LOCAL}/global` });
await tell("trusted types", main, { address: `${LOCAL}/trusted` });

// A page that identifies at each step, and is never reloaded.
const single = await newPage(main, LOCAL);
let workers = 0;
single.on("workercreated", () => (workers += 1));
const calls = await single.evaluate(async (options) => {
  const client = sdk.load(options);
  const found = [];
  for (const tag of ["step 1", "step 2"]) found.push({ result: await client.identify({ tag }), timing: client.timing });
  return found;
}, { ...DEFAULTS, deferred: false });
const reports = await Promise.all(calls.map(({ result }) => reported(result.request_id)));
console.log(JSON.stringify({ name: "single page", calls, workers, reports }));
await single.close();
await browser.close();
browser = await open();
main = browser.defaultBrowserContext();
await tell("restarted", main);

// Collected while the visitor still reads: what is left to wait for at the click.
const early = await newPage(main, LOCAL);
await early.evaluate((options) => {
  window.client = sdk.load(options);
}, DEFAULTS);
await pause(1500);
const preloaded = await early.evaluate(async () => {
  await client.identify({ tag: "preloaded" });
  return client.timing;
});
console.log(
  JSON.stringify({ name: "preloaded", timing: preloaded, violations: await early.evaluate("window.violations") }),
);
await early.close();

// Left at the first response, as a page is whose form is sent with the request id.
const leaving = await newPage(main, LOCAL);
const thanks = leaving.waitForNavigation();
await leaving.evaluate((options) => {
  sdk.load(options).identify({ tag: "left" }).then(() => location.assign("/thanks"));
}, DEFAULTS);
await thanks;
const [left] = await tagged("left");
let supplement;
for (let times = 0; times < 50 && !supplement; times += 1) {
  await pause(100);
  supplement = (await stored(left.request_id)).deferred_signals;
}
console.log(JSON.stringify({ name: "left", supplement, violations: [] }));
await leaving.close();

const quiet = { deferred: false };
await tell("503", main, { fault: "503", options: quiet });
await tell("429", main, { fault: "429", options: quiet });
await tell("reset", main, { fault: "reset", options: quiet });
await tell("lost", main, { fault: "lost", options: quiet });
await tell("late", main, { fault: "late" });
await tell("hang", main, { fault: "hang", options: quiet, identify: { timeoutMs: 3000 } });
await tell("wrong key", main, {
  options: { ...quiet, apiKey: `${publicKey.slice(0, -1)}${publicKey.endsWith("0") ? "1" : "0"}` },
});
await tell("wrong origin", main, { address: `http://elsewhere.example:${shopPort}`, options: quiet });
await tell("nobody", main, { options: { ...quiet, endpoint: "http://127.0.0.1:9" } });
await tell("second endpoint", main, { options: { ...quiet, endpoint: ["http://127.0.0.1:9", service] } });
let failed;
const untilThePage = async (page, reaches) => {
  const fetched = (address) =>
    fetch(address, { mode: "no-cors", cache: "no-store" }).then(
      () => true,
      () => false,
    );
  while ((await page.evaluate(fetched, `${service}/healthz`)) !== reaches) await pause(20);
};
await tell("offline", main, {
  options: quiet,
  // The flag and the network change by messages of their own, in any order: what the SDK hears follows the network here.
  before: async (page) => {
    await page.evaluate(() => {
      window.isOnline = false;
      Object.defineProperty(navigator, "onLine", { get: () => isOnline });
      addEventListener("online", (event) => isOnline || event.stopImmediatePropagation(), { capture: true });
    });
    await page.setOfflineMode(true);
    await untilThePage(page, false);
    failed = new Promise((resolve) =>
      page.on("requestfailed", (request) => request.url().endsWith("/identify") && resolve()),
    );
  },
  meanwhile: async (page) => {
    await failed;
    await page.setOfflineMode(false);
    await untilThePage(page, true);
    await page.evaluate(() => {
      window.isOnline = true;
      dispatchEvent(new Event("online"));
    });
  },
});
const held = async () => {
  while (faults.held.length === 0) await pause(20);
};
await tell("hidden", main, {
  options: quiet,
  fault: "held-hidden",
  identify: { timeoutMs: HIDDEN_LIMIT_MS },
  meanwhile: async (page) => {
    await held();
    const session = await page.createCDPSession();
    const { windowId } = await session.send("Browser.getWindowForTarget");
    await session.send("Browser.setWindowBounds", { windowId, bounds: { windowState: "minimized" } });
    seen.visibility = await page.evaluate("document.visibilityState");
    await pause(HIDDEN_LIMIT_MS); // the limit would be over, if it went on
    faults.held.splice(0).forEach((release) => release());
  },
});
await tell("navigation", main, {
  options: quiet,
  fault: "held-navigation",
  meanwhile: async (page) => {
    await held();
    await page.goto(`${LOCAL}/thanks`);
    faults.held.splice(0).forEach((release) => release());
  },
});

await tell("no storage", main, {
  options: quiet,
  prepare: async (page) => {
    const session = await page.createCDPSession();
    await session.send("Emulation.setDocumentCookieDisabled", { disabled: true });
    await page.evaluateOnNewDocument(() => {
      for (const name of ["localStorage", "sessionStorage", "indexedDB"]) {
        Object.defineProperty(window, name, {
          get() {
            throw new DOMException("denied", "SecurityError");
          },
        });
      }
    });
  },
});
await tell("plain http", main, {
  address: SHOP,
  options: quiet,
  prepare: (page) =>
    page.evaluateOnNewDocument(() => {
      window.insecure = [window.isSecureContext, typeof crypto.randomUUID];
    }),
});
// After all other tokens: whose that of a private window is that is not seen to be one, nobody knows yet.
const hidden = await browser.createBrowserContext();
await tell("private", hidden);
await hidden.close();
await tell("policy", main, { address: `${LOCAL}/unconnected`, options: quiet });
const intercepted = (pattern) => async (page) => {
  await page.setRequestInterception(true);
  page.on("request", (request) =>
    pattern.test(request.url()) ? request.abort("blockedbyclient") : request.continue(),
  );
};
await tell("blocked script", main, { options: quiet, prepare: intercepted(/svc(\.esm)?\.js$/) });
await tell("blocked request", main, { options: quiet, prepare: intercepted(/\/identify$/) });
console.log(JSON.stringify({ name: "page", ...seen }));
await browser.close();
process.exit(0);
