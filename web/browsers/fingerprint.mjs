/**
 * A page and a server that were written for Fingerprint, with the lines changed that the README of @svc/fingerprint-compat changes.
 * node fingerprint.mjs SERVICE PUBLIC_KEY SECRET_KEY SDK_FOLDER PROFILE SHOP_PORT FOLDER ADAPTER SERVER
 * FOLDER has what the README shows, `importmap.html`, `page.js`, `adapter.mjs` and `server.mjs`, and in `node_modules` the package; the last two are the
 * ports that adapter and server listen at. Prints one JSON object for each visit.
 */
import { createServer, request as httpRequest } from "node:http";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./launch.mjs";

const [service, publicKey, secretKey, , profile, shopPort, folder, adapter, server] = process.argv.slice(2);
const SHOP = `http://shop.example:${shopPort}`;
/** What the README leaves to its reader. */
const FILLED = { "https://id.shop.example": service, "svc_pk_...": publicKey, "8090": adapter };
const filled = (name) =>
  Object.entries(FILLED).reduce((text, [shown, value]) => text.replaceAll(shown, value), readFileSync(join(folder, name), "utf8"));
const PAGE = `<!doctype html><html lang="en"><title>Shop</title>${filled("importmap.html")}
<form><input name="email"><button>Log in</button></form><output></output><script type="module" src="/page.js"></script></html>`;
const SCRIPT = filled("page.js");
const MODULES = join(folder, "node_modules/@svc/fingerprint-compat/dist/esm");
process.env.PORT = server;
process.env.SVC_SECRET_KEY = secretKey;
for (const name of ["adapter.mjs", "server.mjs"]) {
  const program = join(folder, `filled-${name}`);
  writeFileSync(program, filled(name));
  await import(pathToFileURL(program));
}

createServer((request, response) => {
  if (request.url === "/log-in") {
    const onward = httpRequest(`http://127.0.0.1:${server}/`, { method: "POST" }, (answer) => answer.pipe(response));
    request.pipe(onward);
    return;
  }
  const [, module] = /^\/fingerprint-compat\/(\w+\.js)$/.exec(request.url) ?? [];
  const script = module ? readFileSync(join(MODULES, module)) : request.url === "/page.js" ? SCRIPT : undefined;
  response.writeHead(200, { "content-type": script ? "text/javascript" : "text/html" }).end(script ?? PAGE);
}).listen(Number(shopPort), "127.0.0.1");

const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP *.example 127.0.0.1"];
const browser = await launch({ args, userDataDir: profile });
try {
  const page = await browser.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.message));
  await page.goto(SHOP);
  await page.type("input", "ada@shop.example");
  await page.click("button");
  await page.waitForFunction(() => document.querySelector("output").textContent !== "", { timeout: 60_000 });
  const shown = await page.$eval("output", (output) => output.textContent);
  console.log(JSON.stringify({ name: "page", shown, problems }));

  const asked = { apiKey: publicKey, service, wrong: publicKey.slice(0, -1) + (publicKey.endsWith("0") ? "1" : "0") };
  const both = await page.evaluate(async ({ apiKey, service, wrong }) => {
    const { default: FingerprintJS } = await import("@svc/fingerprint-compat/v3");
    const Fingerprint = await import("@svc/fingerprint-compat/v4");
    const nobody = "http://127.0.0.1:9";
    const name = (error) => Object.keys(FingerprintJS).find((one) => FingerprintJS[one] === error.message) ?? error.message;
    const v3 = await (await FingerprintJS.load({ apiKey, endpoint: [nobody, service] })).get({ extendedResult: true, linkedId: "a", action: "log_in" });
    const cached = Fingerprint.start({ apiKey, endpoints: service, cache: { storage: "agent", duration: 60 } });
    const v4 = [await cached.get({ tags: "t" }), await cached.get({ tags: "t" })];
    const of3 = (options, asked) => FingerprintJS.load({ apiKey, endpoint: service, ...options }).then((agent) => agent.get(asked)).catch(name);
    const of4 = async (options, asked) => {
      try {
        return await Fingerprint.start({ apiKey, endpoints: service, ...options }).get(asked);
      } catch (error) {
        return [error.code, Fingerprint.isFingerprintError(error), error.event_id !== null];
      }
    };
    const errors3 = [await of3({ endpoint: "ftp://x" }), await of3({ apiKey: wrong }), await of3({ endpoint: nobody }), await of3({}, { tag: "x".repeat(1025) })];
    const errors4 = [await of4({ endpoints: "ftp://x" }), await of4({ apiKey: wrong }), await of4({ endpoints: nobody }), await of4({}, { linkedId: "x".repeat(257) })];
    return { v3, v4, errors3, errors4 };
  }, asked);
  console.log(JSON.stringify({ name: "agents", ...both }));
} finally {
  await browser.close();
}
process.exit(0);
