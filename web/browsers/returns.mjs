/**
 * One installed browser that comes back to a real service: again, upgraded, from another address, in a window of its own storage,
 * and with its storage cleared eight times. Its page demands Trusted Types.
 * node returns.mjs SERVICE PUBLIC_KEY SECRET_KEY SDK_FOLDER PROFILE SHOP_PORT chromium|firefox EXECUTABLE
 * Prints one JSON object for each visit: its name, the event that the service stored, and what the page complained of.
 */
import { readFileSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import { join } from "node:path";
import puppeteer from "puppeteer-core";

const [service, publicKey, secretKey, folder, profile, shopPort, kind, executablePath] = process.argv.slice(2);
const SHOP = `http://localhost:${shopPort}`;
const HOME = "81.2.69.160";
const ROAD = "216.160.83.58";
const CLEARINGS = 8;
/** A busy machine must not cost a source: what is missing is another report. */
const COLLECT_MS = 5000;
const POLICY = `default-src 'none'; script-src 'self'; worker-src 'self'; connect-src 'self'; img-src data:; require-trusted-types-for 'script'; trusted-types svc`;
const PAGE = '<!doctype html><html lang="en"><title>Shop</title><link rel="icon" href="data:,"><body><script type="module" src="/page.js"></script></body></html>';
const SCRIPT = `
  window.violations = [];
  document.addEventListener("securitypolicyviolation", (event) => violations.push(event.effectiveDirective));
  const { load } = await import("/svc.esm.js");
  window.visit = async (options) => {
    const client = load(options);
    const { request_id } = await client.identify();
    return { request_id, missed: client.timing.missed, notes: client.timing.notes };
  };
  window.cleared = async () => {
    localStorage.clear();
    for (const pair of document.cookie.split("; ")) document.cookie = pair.split("=")[0] + "=; Max-Age=-1; Path=/";
    for (const { name } of await indexedDB.databases()) {
      await new Promise((resolve) => (indexedDB.deleteDatabase(name).onsuccess = resolve));
    }
  };
  window.ready = true;
`;

/** Where the visitor is, as the shop's proxy in front of the service says. */
let address = HOME;

function proxied(request, response) {
  const headers = { ...request.headers, host: new URL(service).host, "x-forwarded-for": address };
  const onward = httpRequest(`${service}${request.url.slice("/id".length)}`, { method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  request.pipe(onward);
}

const shop = createServer((request, response) => {
  if (request.url.startsWith("/id/")) return proxied(request, response);
  const isScript = request.url.endsWith(".js");
  const content = request.url === "/page.js" ? SCRIPT : isScript ? readFileSync(join(folder, request.url)) : PAGE;
  response.writeHead(200, { "content-security-policy": POLICY, "content-type": isScript ? "text/javascript" : "text/html" }).end(content);
});
await new Promise((resolve) => shop.listen(Number(shopPort), "127.0.0.1", resolve));

const errors = [];

async function opened(context, prepare) {
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  await prepare?.(page);
  await page.goto(SHOP);
  await page.waitForFunction("window.ready");
  return page;
}

/** One visit, in a page of its own. */
async function tell(name, context, prepare) {
  const page = await opened(context, prepare);
  const options = { apiKey: publicKey, endpoint: "/id", workerUrl: "/svc.worker.js", collectMs: COLLECT_MS, deferred: false };
  const { request_id, ...rest } = await page.evaluate((given) => window.visit(given), options);
  const read = await fetch(`${service}/api/v1/events/${request_id}`, { headers: { "x-api-key": secretKey } });
  const { document, ...event } = await read.json();
  console.log(JSON.stringify({ name, event, ...rest, violations: await page.evaluate("window.violations") }));
  await page.close();
}

async function clear(context) {
  const page = await opened(context);
  await page.evaluate("window.cleared()");
  await page.close();
}

const launch = (extraPrefsFirefox = {}) =>
  puppeteer.launch({
    browser: kind === "firefox" ? "firefox" : "chrome",
    executablePath,
    userDataDir: profile,
    extraPrefsFirefox,
    args: kind === "firefox" ? [] : ["--no-sandbox", "--disable-dev-shm-usage"],
  });

let browser = await launch();
const agent = await browser.userAgent();
const [, major] = /(?:Chrome|Firefox)\/(\d+)/.exec(agent);
const newer = (text) => text.replaceAll(major, String(Number(major) + 1));
/** Chromium is told its version in the page, with the hints that go with it. */
const upgrade = async (page) => {
  if (kind === "firefox") return;
  const other = await browser.newPage();
  const hints = await other.evaluate(() =>
    navigator.userAgentData?.getHighEntropyValues(["architecture", "bitness", "fullVersionList", "model", "platformVersion"]),
  );
  await other.close(); // or the page of the visit stays behind it, and draws no frame in which to look whether it is ready
  await page.setUserAgent({ userAgent: newer(agent), ...(hints && { userAgentMetadata: JSON.parse(newer(JSON.stringify(hints))) }) });
};
let main = browser.defaultBrowserContext();
await tell("first", main);
await tell("again", main);
address = ROAD;
await tell("traveling", main);
address = HOME;
await browser.close();
browser = await launch(kind === "firefox" ? { "general.useragent.override": newer(agent) } : {});
main = browser.defaultBrowserContext();
await tell("upgraded", main, upgrade);
await clear(main);
await tell("upgraded and cleared", main, upgrade);
await browser.close();
browser = await launch(kind === "firefox" ? { "general.useragent.override": agent } : {});
main = browser.defaultBrowserContext();
const apart = await browser.createBrowserContext();
await tell("private", apart);
await apart.close();
for (let time = 1; time <= CLEARINGS; time += 1) {
  await clear(main);
  await tell(`cleared ${time}`, main);
}
await tell("reloaded", main);
console.log(JSON.stringify({ name: "page", errors }));
await browser.close();
process.exit(0);
