/**
 * Visits of a headless Chromium whose reports are signed, against a real service: tabs, private windows, lost storage,
 * wrong clocks, pages of old libraries and hostile ones.
 * node keys.mjs SERVICE PUBLIC_KEY SECRET_KEY SDK_FOLDER PROFILE SHOP_PORT [CHROMIUM]
 * CHROMIUM: one that is installed, for what the packaged one cannot do: it keeps no page to go back to.
 * Prints one JSON object for each visit: its name, what the page got, and what the service stored of the proof.
 */
import { createServer, request as httpRequest } from "node:http";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { launch } from "./launch.mjs";

const [service, publicKey, secretKey, folder, profile, shopPort, installed] = process.argv.slice(2);
const SHOP = `http://shop.example:${shopPort}`;
const LOCAL = `http://localhost:${shopPort}`;
const DAY_MS = 86_400_000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const SCRIPT = `
  window.sdk = window.svc ?? (await import("/svc.esm.js"));
  window.visit = async ({ detached, ...options }, identifyOptions) => {
    const client = sdk.load(options);
    try {
      const { identify } = client;
      const result = await (detached ? identify(identifyOptions) : client.identify(identifyOptions));
      return { result, timing: client.timing };
    } catch (error) {
      return { error: { code: error.code, message: error.message }, timing: client.timing };
    }
  };
  window.ready = true;
`;
/** What libraries of 2007 to 2012 do to the page's objects, in words of our own. */
const OLD_LIBRARY = `
  Array.from = (list) => (list == null ? [] : Array.prototype.slice.call(list));
  Array.prototype.toJSON = function () { return "[" + this.map((one) => JSON.stringify(one)).join(", ") + "]"; };
  String.prototype.toJSON = function () { return '"' + this + '"'; };
  Array.prototype.reduce = function () { return this.length > 1 ? this : this[0]; };
  Array.prototype.entries = function () { return this.slice(); };
  const clock = Date.now;
  Date.now = () => new Date(clock());
  window.Document = window.Element = window.Request = function () {};
`;
const WORKER = `self.addEventListener("install", () => self.skipWaiting());
  self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
  self.addEventListener("fetch", (event) => event.respondWith(fetch(event.request)));`;
const page = (before) =>
  `<!doctype html><html lang="en"><title>Shop</title><body>${before}<script type="module" src="/page.js"></script></body></html>`;
const PAGES = {
  "/": page(""),
  "/next": page(""),
  "/old": page('<script src="/old.js"></script>'),
  "/named": page(`<img name="currentScript" src="${SHOP}/svc.js"><script src="/svc.js"></script>`),
};
const FILES = { "/page.js": SCRIPT, "/old.js": OLD_LIBRARY, "/sw.js": WORKER };

const shop = createServer((request, response) => {
  const path = request.url.split("?")[0];
  const isScript = path.endsWith(".js");
  const content = FILES[path] ?? (isScript ? readFileSync(join(folder, path)) : PAGES[path]);
  // Pages that may not be stored are not kept for going back either.
  const headers = { "content-type": isScript ? "text/javascript" : "text/html", "cache-control": "no-cache" };
  response.writeHead(content === undefined ? 404 : 200, headers).end(content);
});

/** The service at /KIND/..., with what kinds of proxies do; at /refused/... the first attempt gets 503. */
const received = [];
const proxy = createServer(async (request, response) => {
  const [, kind, ...rest] = request.url.split("/");
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  let body = Buffer.concat(chunks);
  const headers = { ...request.headers, host: new URL(service).host };
  if (request.method === "POST") {
    received.push({ kind, bytes: body.toString("base64") });
    const isFirst = received.filter((one) => one.kind === kind).length === 1;
    if (kind === "refused" && isFirst) {
      const error = JSON.stringify({ error: { code: "service_unavailable", message: "", status: 503 }, request_id: "" });
      const cors = { "access-control-allow-origin": request.headers.origin };
      return response.writeHead(503, { "content-type": "application/json", ...cors }).end(error);
    }
    const plain = headers["content-encoding"] === "gzip" ? gunzipSync(body) : body;
    if (kind === "renamed") {
      body = Buffer.from(plain.toString().replace('"account_id":"owner"', '"account_id":"thief"'));
      delete headers["content-encoding"];
    }
    if (kind === "rewritten") {
      body = Buffer.from(JSON.stringify(JSON.parse(plain), null, 1));
      delete headers["content-encoding"];
    }
    headers["content-length"] = String(body.length);
  }
  const onward = httpRequest(`${service}/${rest.join("/")}`, { method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.end(body);
});
const listening = (server, port = 0) =>
  new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve(server.address().port)));
await listening(shop, Number(shopPort));
const proxyUrl = `http://127.0.0.1:${await listening(proxy)}`;

// Without OpenGL, which is emulated: what is reported beside token and key does not matter here.
const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP *.example 127.0.0.1"];
const browser = await launch({ args, userDataDir: profile });

async function opened(context, { address = LOCAL, prepare } = {}) {
  const page = await context.newPage();
  await prepare?.(page);
  await page.goto(address);
  await page.waitForFunction("window.ready");
  return page;
}

const DEFAULTS = { apiKey: publicKey, endpoint: service, collectMs: 5000, deferred: false };
const visited = (page, options, tag, about) =>
  page.evaluate((options, about) => window.visit(options, about), { ...DEFAULTS, ...options }, { tag, ...about });

/** What the service stored of a visit, and what the page's storage has of it. */
async function told(name, page, outcome) {
  const id = outcome.result?.request_id;
  const answer = id && (await fetch(`${service}/api/v1/events/${id}`, { headers: { "x-api-key": secretKey } }));
  const event = answer && (await answer.json());
  const kept = await page
    .evaluate((name) => ({ local: localStorage.getItem(name), cookie: document.cookie }), "_svc")
    .catch(() => null);
  const { client_token, client_token_is_new, client_key, client_proof } = event?.document?.signals ?? {};
  const line = {
    name, ...outcome, kept, proof: event?.document?.linkage.proof, proven: event?.proven, covers: event?.proof_covers,
    members: Object.keys(event?.document?.signals ?? {}), signals: { client_token, client_token_is_new, client_key, client_proof },
    changes: event?.document?.changes, bytes: JSON.stringify(event?.document?.signals ?? {}).length,
  };
  console.log(JSON.stringify(line));
  return line;
}

async function tell(name, context, { options, about, ...where } = {}) {
  const page = await opened(context, where);
  const line = await told(name, page, await visited(page, options, name, about));
  await page.close();
  return line;
}

const main = browser.defaultBrowserContext();
await tell("first", main);
await tell("again", main);
await tell("about", main, { options: { detached: true }, about: { accountId: 'Zoë "1"', action: "pay", tag: "\t\u2028😀" } });
await tell("renamed", main, { options: { endpoint: `${proxyUrl}/renamed` }, about: { accountId: "owner" } });

// Tabs of a browser that was never here, all at the same moment.
for (const round of [1, 2, 3]) {
  const fresh = await browser.createBrowserContext();
  const tabs = await Promise.all([1, 2, 3].map(() => opened(fresh)));
  const outcomes = await Promise.all(tabs.map((tab) => visited(tab, {}, "tabs")));
  for (const [place, outcome] of outcomes.entries()) await told(`tabs ${round} ${place + 1}`, tabs[place], outcome);
  await fresh.close();
}
// Two clients of one page, and two calls of one client.
const twice = await browser.createBrowserContext();
const both = await opened(twice);
const outcomes = await both.evaluate(
  async (options) => {
    const [one, other] = [sdk.load(options), sdk.load(options)];
    return Promise.all([one.identify({ tag: "a" }), one.identify({ tag: "b" }), other.identify({ tag: "c" })]);
  },
  DEFAULTS,
);
for (const [place, result] of outcomes.entries()) await told(`clients ${place + 1}`, both, { result });
await twice.close();

const hidden = await browser.createBrowserContext();
await tell("private", hidden);
await tell("private again", hidden);
await hidden.close();

const shifted = (days) => (page) =>
  page.evaluateOnNewDocument((ms) => {
    const clock = Date.now;
    Date.now = () => clock() + ms;
  }, days * DAY_MS);
await tell("a day ahead", main, { prepare: shifted(1) });
await tell("a day behind", main, { prepare: shifted(-1) });
await tell("a month ahead", main, { prepare: shifted(30) });

const worked = await browser.createBrowserContext();
const registered = await opened(worked);
await registered.evaluate(async () => {
  await navigator.serviceWorker.register("/sw.js");
  await navigator.serviceWorker.ready;
});
await registered.close();
const controlled = await opened(worked);
const controller = await controlled.evaluate("navigator.serviceWorker.controller !== null");
await told("service worker", controlled, { ...(await visited(controlled, { endpoint: `${proxyUrl}/plain` }, "worker")), controller });
await worked.close();

await tell("retried", main, { options: { endpoint: `${proxyUrl}/refused` } });
const attempts = received.filter((one) => one.kind === "refused");
console.log(JSON.stringify({ name: "attempts", count: attempts.length, distinct: new Set(attempts.map((one) => one.bytes)).size }));
await tell("rewritten", main, { options: { endpoint: `${proxyUrl}/rewritten` } });
await tell("old library", main, { address: `${LOCAL}/old` });
await tell("named markup", main, { address: `${LOCAL}/named`, options: { endpoint: undefined } });
await tell("polluted", main, {
  prepare: (page) =>
    page.evaluateOnNewDocument(() => {
      const options = {
        endpoint: "http://127.0.0.1:9", workerUrl: "data:text/javascript,", storage: false, mode: "no-cors", redirect: "error",
        tag: "stranger", integrity: "sha256-", verdict: true,
      };
      // Not enumerable, since the driver's own scripts in the page would fail.
      for (const name of Object.keys(options)) Object.defineProperty(Object.prototype, name, { value: options[name] });
    }),
});
await tell("tossed cookie", main, {
  prepare: (page) =>
    page.evaluateOnNewDocument(() => {
      document.cookie = `_svc=${"0".repeat(32)}; Path=/`;
    }),
});

const broken = (kind) => (page) =>
  page.evaluateOnNewDocument((kind) => {
    const refuse = () => {
      throw new DOMException("denied", "SecurityError");
    };
    if (kind === "refuses") Object.defineProperty(window, "indexedDB", { get: refuse });
    if (kind === "hangs") IDBFactory.prototype.open = () => ({});
    if (kind === "keeps no keys") IDBObjectStore.prototype.put = refuse;
    if (kind === "no subtle") Object.defineProperty(Crypto.prototype, "subtle", { get: () => undefined });
    if (kind === "signs nothing") SubtleCrypto.prototype.sign = () => new Promise(() => undefined);
  }, kind);
const KINDS = ["refuses", "hangs", "keeps no keys", "no subtle", "signs nothing"];
for (const kind of KINDS) {
  // The client's own limit, which must not be waited for twice.
  const where = { prepare: broken(kind), options: { collectMs: 1500 } };
  const fresh = await browser.createBrowserContext();
  await tell(`${kind}, fresh`, fresh, where);
  await tell(`${kind}, fresh again`, fresh, where);
  await fresh.close();
  await tell(`${kind}, with a key`, main, where);
}
await tell("as before", main);

const unsafe = await browser.createBrowserContext();
await tell("plain http", unsafe, { address: SHOP });
await tell("plain http again", unsafe, { address: SHOP });
await unsafe.close();

// A browser that the SDK knew before it made keys.
const older = await browser.createBrowserContext();
const upgraded = await opened(older);
await upgraded.evaluate(() => {
  localStorage.setItem("_svc", "ab".repeat(16));
  document.cookie = `_svc=${"ab".repeat(16)}; Path=/`;
});
await told("upgraded", upgraded, await visited(upgraded, {}, "upgraded"));
await upgraded.close();
await older.close();

const removed = await opened(main);
const isBack = () => indexedDB.databases().then((all) => all.map(({ name }) => name));
const before = await removed.evaluate(isBack);
await removed.evaluate(
  () => new Promise((resolve) => Object.assign(indexedDB.deleteDatabase("_svc"), { onsuccess: resolve })),
);
await told("key lost", removed, { ...(await visited(removed, {}, "key lost")), before });
await removed.close();
await tell("after the loss", main);

// A database without its store, in a browser that has a key, and in a fresh one.
const fresh = await browser.createBrowserContext();
for (const [name, context] of [["broken store", main], ["broken store, fresh", fresh]]) {
  const page = await opened(context);
  await page.evaluate(async () => {
    const done = (request) => new Promise((resolve) => Object.assign(request, { onsuccess: () => resolve(request.result) }));
    await done(indexedDB.deleteDatabase("_svc"));
    (await done(indexedDB.open("_svc"))).close();
  });
  await told(name, page, await visited(page, {}, name));
  await page.close();
  await tell(`${name}, again`, context);
  await tell(`${name}, third`, context);
}
await fresh.close();

const cleared = await opened(main);
const session = await cleared.createCDPSession();
await session.send("Storage.clearDataForOrigin", { origin: LOCAL, storageTypes: "all" });
await session.send("Network.clearBrowserCookies");
await cleared.close();
await tell("cleared", main);

const forgotten = await opened(main);
const left = await forgotten.evaluate(async (options) => {
  const client = sdk.load(options);
  await client.identify();
  await client.forget();
  return { databases: (await indexedDB.databases()).length, entries: localStorage.length, cookie: document.cookie };
}, DEFAULTS);
console.log(JSON.stringify({ name: "forgotten", left }));
await forgotten.close();

// Back to a page that was kept.
if (installed) {
  const another = await launch({ args, executablePath: installed, headless: true });
  const back = await opened(another.defaultBrowserContext());
  await back.evaluate(() => addEventListener("pageshow", (event) => (window.persisted = event.persisted)));
  await told("before leaving", back, await visited(back, {}, "before leaving"));
  await back.goto(`${LOCAL}/next`);
  await back.goBack();
  await back.waitForFunction("window.ready && window.persisted !== undefined");
  const persisted = await back.evaluate("window.persisted");
  await told("back", back, { ...(await visited(back, {}, "back")), persisted });
  await another.close();
}

// What it took: one page after the other.
const costs = [];
for (let turn = 0; turn < 8; turn += 1) {
  const one = await opened(main);
  const { timing } = await visited(one, {}, "cost");
  costs.push({ key: timing.took.key, proof: timing.took.proof, collectMs: timing.collectMs });
  await one.close();
}
console.log(JSON.stringify({ name: "costs", costs }));
await browser.close();
process.exit(0);
