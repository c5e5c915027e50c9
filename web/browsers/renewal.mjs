/**
 * Visits of a headless Chromium whose token and key are renewed, against a real service: somebody else signs with its token, and
 * then the answer is lost, the page is closed, two tabs are asked at once, or the page forgets everything.
 * node renewal.mjs SERVICE PUBLIC_KEY SECRET_KEY SDK_FOLDER PROFILE SHOP_PORT
 * Prints one JSON object for each visit: its name, what the page got, what was sent, and what is kept afterwards.
 */
import { createServer, request as httpRequest } from "node:http";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { randomUUID, webcrypto } from "node:crypto";
import { launch } from "./launch.mjs";

const [service, publicKey, secretKey, folder, profile, shopPort] = process.argv.slice(2);
const LOCAL = `http://localhost:${shopPort}`;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const SCRIPT = `
  window.sdk = await import("/svc.esm.js");
  window.ready = true;
`;
const PAGE = `<!doctype html><html lang="en"><title>Shop</title><script type="module" src="/page.js"></script></html>`;
const shop = createServer((request, response) => {
  const path = request.url.split("?")[0];
  const isScript = path.endsWith(".js");
  const content = path === "/" ? PAGE : path === "/page.js" ? SCRIPT : isScript ? readFileSync(join(folder, path)) : undefined;
  response.writeHead(content === undefined ? 404 : 200, { "content-type": isScript ? "text/javascript" : "text/html" }).end(content);
});

/** The service at /KIND/...: at /lost/... its answer goes nowhere, at /silent/... it gets nothing. */
const arrived = {};
const proxy = createServer(async (request, response) => {
  const [, kind, ...rest] = request.url.split("/");
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const isSent = request.method === "POST";
  const arrive = () => (arrived[kind] = (arrived[kind] ?? 0) + 1);
  if (isSent && kind === "silent") return arrive();
  const onward = httpRequest(
    `${service}/${rest.join("/")}`,
    { method: request.method, headers: { ...request.headers, host: new URL(service).host } },
    (answer) => {
      if (isSent && kind === "lost") return answer.resume().on("end", arrive);
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    },
  );
  onward.end(Buffer.concat(chunks));
});
const listening = (server, port = 0) =>
  new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve(server.address().port)));
await listening(shop, Number(shopPort));
const proxyUrl = `http://127.0.0.1:${await listening(proxy)}`;

const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
const browser = await launch({ args, userDataDir: profile });
const context = browser.defaultBrowserContext();
const OPTIONS = { apiKey: publicKey, endpoint: service, collectMs: 5000, deferred: false };

async function opened() {
  const page = await context.newPage();
  await page.goto(LOCAL);
  await page.waitForFunction("window.ready");
  return page;
}

/** What the origin keeps: tokens, and whether the keys of both can be taken out. */
const keptBy = (page) =>
  page.evaluate(async () => {
    const done = (request) => new Promise((resolve) => Object.assign(request, { onsuccess: () => resolve(request.result) }));
    const database = await done(indexedDB.open("_svc"));
    const { token, secret, next } = (await done(database.transaction("keys").objectStore("keys").get(0))) ?? {};
    database.close();
    const extractable = [secret, next?.secret].filter(Boolean).map((key) => key.extractable);
    return { token, next: next?.token, extractable, local: localStorage.getItem("_svc"), cookie: document.cookie };
  });

async function eventOf({ request_id }) {
  const headers = { "x-api-key": secretKey };
  return (await fetch(`${service}/api/v1/events/${request_id}`, { headers })).json();
}

async function told(name, page, result, more = {}) {
  const event = await eventOf(result);
  const { client_token, client_token_is_new, client_key, client_token_before, client_key_before } = event.document.signals;
  const signals = { client_token, client_token_is_new, client_key, client_token_before, client_key_before };
  const members = Object.keys(event.document.signals).slice(-5);
  const line = { name, result, proof: event.document.linkage.proof, signals, members, ...more };
  line.kept = await keptBy(page);
  console.log(JSON.stringify(line));
  return { ...line, all: event.document.signals, headers: event.document.headers };
}

/** One visit; `isSettled` is asked of what the page keeps until it is true, since the page gets its answer before. */
async function visit(name, isSettled = () => true, options = {}) {
  const page = await opened();
  const result = await page.evaluate((options) => sdk.load(options).identify(), { ...OPTIONS, ...options });
  for (let turn = 0; turn < 100 && !isSettled(await keptBy(page)); turn += 1) await pause(50);
  const line = await told(name, page, result);
  await page.close();
  return line;
}
const isAsked = ({ next }) => next !== undefined;
const isDone = ({ next }) => next === undefined;

// Somebody else, with a program: he has token and report, and a key of his own.
const CURVE = { name: "ECDSA", namedCurve: "P-256" };
const thieves = await webcrypto.subtle.generateKey(CURVE, true, ["sign", "verify"]);
const point = Buffer.from(await webcrypto.subtle.exportKey("raw", thieves.publicKey)).toString("base64url");
async function proven(name, text) {
  const bytes = new TextEncoder().encode(["svc-proof 2", LOCAL, "[null,null,null]", text].join("\n"));
  const signature = await webcrypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, thieves.privateKey, bytes);
  return `${text.slice(0, -1)},"${name}":"${Buffer.from(signature).toString("base64url")}"}`;
}
async function steals(name, { all }, renewing = {}) {
  const { client_proof: _, client_proof_before: __, client_token_before: ___, client_key_before: ____, ...signals } = all;
  const dated = { ...signals, nonce: randomUUID(), collected_at: Date.now(), client_key: point, ...renewing };
  let text = JSON.stringify(dated);
  if (renewing.client_token_before) text = await proven("client_proof_before", text);
  const sent = await fetch(`${service}/api/v1/identify`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": publicKey, origin: LOCAL, "user-agent": await browser.userAgent() },
    body: `{"sdk":{"platform":"web"},"signals":${await proven("client_proof", text)}}`,
  });
  const result = await sent.json();
  console.log(JSON.stringify({ name, result, proof: (await eventOf(result)).document.linkage.proof }));
}

await visit("first");
const established = await visit("second");
await steals("thief", established);
const asked = await visit("asked", isAsked);
const renewed = await visit("renewed", isDone);
await visit("after it");
await steals("thief with the former token", asked);
const stolen = { client_token: "f".repeat(32), client_token_before: asked.signals.client_token, client_key_before: point };
await steals("thief who renews", asked, { ...stolen, client_token_is_new: true });

// The page is closed while its report is on its way: the service has it, or has not.
await steals("thief 2", renewed);
await visit("asked 2", isAsked);
for (const kind of ["silent", "lost"]) {
  const page = await opened();
  await page.evaluate((options) => void sdk.load(options).identify(), { ...OPTIONS, endpoint: `${proxyUrl}/${kind}` });
  for (let turn = 0; turn < 200 && !arrived[kind]; turn += 1) await pause(50);
  await page.close();
}
const found = await visit("after the lost answer", isDone);
await visit("after it 2");

// Two tabs are asked at once, and then both send what they have; a third one was open all the time, with the token of before.
await steals("thief 3", found);
/** Each has looked up its token before any of them sends it. */
const load = (page) =>
  page.evaluate((options) => (window.client = sdk.load(options)).prepared.identity.then(() => undefined), OPTIONS);
const early = await opened();
const tabs = [await opened(), await opened()];
await load(early);
async function inTabs(name) {
  await Promise.all(tabs.map(load));
  const results = await Promise.all(tabs.map((tab) => tab.evaluate("client.identify()")));
  for (const [place, result] of results.entries()) await told(`${name} ${place + 1}`, tabs[place], result);
}
await inTabs("asked in tab");
for (let turn = 0; turn < 100 && !isAsked(await keptBy(tabs[0])); turn += 1) await pause(50);
await inTabs("renewed in tab");
for (let turn = 0; turn < 100 && !isDone(await keptBy(tabs[0])); turn += 1) await pause(50);
await told("a tab that was open", early, await early.evaluate("client.identify()"));
for (const page of [early, ...tabs]) await page.close();
const last = await visit("after the tabs");

// Who forgets in the very moment in which he is asked leaves nothing.
await steals("thief 4", last);
const leaving = await opened();
const left = await leaving.evaluate(async (options) => {
  const client = sdk.load(options);
  const { client_token_renew } = await client.identify();
  await client.forget();
  await new Promise((resolve) => setTimeout(resolve, 500));
  const done = (request) => new Promise((resolve) => Object.assign(request, { onsuccess: () => resolve(request.result) }));
  const kept = [];
  for (const { name } of await indexedDB.databases()) {
    const database = await done(indexedDB.open(name));
    if (database.objectStoreNames.contains("keys")) kept.push(await done(database.transaction("keys").objectStore("keys").count()));
    database.close();
  }
  return { client_token_renew, keys: kept.filter(Boolean).length, entries: localStorage.length, cookie: document.cookie };
}, OPTIONS);
console.log(JSON.stringify({ name: "forgotten", left }));
await browser.close();
process.exit(0);
