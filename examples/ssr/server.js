/** Renders the page on the server, with Vite for the modules, and decides about its visitors: `npm start`. */
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { Client } from "@svc/client";
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { createServer as createVite } from "vite";
import { publicKey, secretKey, url } from "../dev-keys.mjs";

const PORT = Number(process.env.PORT ?? 5174);
const svc = new Client({ baseUrl: url, apiKey: secretKey() });
const used = new Set(); // a site has a table with a unique key

const vite = await createVite({
  appType: "custom",
  define: { SVC_URL: JSON.stringify(url), SVC_PUBLIC_KEY: JSON.stringify(publicKey) },
  server: { middlewareMode: true, hmr: false },
});

/** POST /visits: what this server makes of an identification. The page cannot decide. */
async function visit(request, response) {
  const { request_id: requestId } = await json(request);
  const isFirstUse = (id) => !used.has(id) && Boolean(used.add(id));
  // A form has a tag as well: see ../nextjs.
  const action = { origin: request.headers.origin ?? null, tag: null, action: "visit", allowUnknown: true };
  const { decision, reasons } = await svc.check(requestId, { ...action, isFirstUse });
  console.log(`${decision} (${reasons.join(", ")}): ${requestId}`); // why is for the log, not for the visitor
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ decision }));
}

createServer((request, response) => {
  if (request.method === "POST" && request.url === "/visits") {
    visit(request, response).catch((error) => response.writeHead(503).end(String(error)));
    return;
  }
  vite.middlewares(request, response, async () => {
    try {
      // Importing the SDK on a server is safe. Calling `load()` there throws `not_a_browser`; the provider never does.
      const { App } = await vite.ssrLoadModule("/app.jsx");
      const template = await vite.transformIndexHtml(request.url, await readFile("index.html", "utf8"));
      const page = template.replace("<!--app-->", renderToString(createElement(App)));
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(page);
    } catch (error) {
      console.error(error);
      response.writeHead(500).end("the page could not be rendered\n");
    }
  });
}).listen(PORT, "127.0.0.1", () => console.log(`http://localhost:${PORT}`));
