/**
 * A first-party proxy as a Cloudflare worker: https://shop.example/id/ leads to the service at env.SVC_URL. Pages load
 * /id/sdk/v1/svc.esm.js and pass `endpoint: "/id"`. Its route is `shop.example/id/*` (wrangler.toml); the proxy key is a
 * secret: `npx wrangler secret put SVC_PROXY_KEY`.
 */
const API = /^\/id(\/api\/v1\/(?:identify|events\/[0-9a-f-]+\/supplement))$/;
const SDK = /^\/id(\/sdk\/[0-9a-z.]+\/[0-9a-z.]+)$/;
/** Only these are forwarded: no cookie, no log-in, and no header that a client might use to claim another address. */
const FORWARDED = ["accept-encoding", "content-encoding", "content-type", "idempotency-key", "if-none-match", "x-svc-replay"];
const LONGEST_USER_AGENT = 1024;
/** What the visitor's browser says of itself. */
const OF_BROWSER = /^(?:accept-language$|sec-ch-ua|sec-fetch-)/;
const LONGEST_HEADERS = 2048;

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    const api = API.exec(pathname);
    const sdk = SDK.exec(pathname);
    if (!api && !sdk) return new Response("not found\n", { status: 404 });
    const methods = api ? ["POST"] : ["GET", "HEAD"];
    if (!methods.includes(request.method)) {
      return new Response("method not allowed\n", { status: 405, headers: { allow: methods.join(", ") } });
    }
    const headers = new Headers();
    for (const name of FORWARDED) copy(request.headers, name, headers, name);
    if (api) speakForVisitor(request.headers, headers, env.SVC_PROXY_KEY);
    const body = api ? await request.arrayBuffer() : undefined;
    return fetch(env.SVC_URL + (api ?? sdk)[1], { method: request.method, headers, body, redirect: "manual" });
  },
};

/** A request with a public key is sent with the proxy key instead; with any other, without one: the service rejects it. */
function speakForVisitor(from, to, proxyKey) {
  const publicKey = from.get("x-api-key") ?? "";
  if (publicKey.startsWith("svc_pk_")) {
    to.set("x-api-key", proxyKey);
    to.set("x-svc-public-key", publicKey);
  }
  copy(from, "cf-connecting-ip", to, "x-svc-visitor-ip"); // Cloudflare sets it, whatever the client sent
  copy(from, "origin", to, "x-svc-visitor-origin");
  to.set("x-svc-visitor-user-agent", (from.get("user-agent") ?? "").slice(0, LONGEST_USER_AGENT));
  const ofBrowser = JSON.stringify(Object.fromEntries([...from].filter(([name]) => OF_BROWSER.test(name))));
  const text = ofBrowser.replace(/[^\x20-\x7e]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
  to.set("x-svc-visitor-headers", text.length <= LONGEST_HEADERS ? text : "{}"); // no browser sends so much
}

function copy(from, name, to, as) {
  const value = from.get(name);
  if (value !== null) to.set(as, value);
}
