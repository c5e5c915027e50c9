/** The shop's own server, as a plugin of Vite: it decides about an order. The page cannot. */
import { randomUUID } from "node:crypto";
import { json } from "node:stream/consumers";
import { Client } from "@svc/client";
import { secretKey, url } from "../dev-keys.mjs";

const tags = new Set(), used = new Set(); // a shop keeps the tag in the session, and has a table with a unique key

async function order(request, response) {
  const { request_id: requestId, tag } = await json(request);
  const svc = new Client({ baseUrl: url, apiKey: secretKey() });
  const isFirstUse = (id) => !used.has(id) && Boolean(used.add(id));
  // Guests may order: `allowUnknown`. A tag that this server did not give fits to nothing.
  const action = { origin: request.headers.origin ?? null, tag: tags.has(tag) ? tag : randomUUID(), action: "checkout" };
  const { decision, reasons } = await svc.check(requestId, { ...action, allowUnknown: true, isFirstUse });
  console.log(`${decision} (${reasons.join(", ")}): ${requestId}`); // why is for the log, not for the visitor
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ decision }));
}

function page(html) {
  const tag = randomUUID();
  tags.add(tag);
  return html.replace("{{tag}}", tag);
}

export const shop = {
  name: "shop",
  apply: "serve",
  transformIndexHtml: page,
  configureServer({ middlewares }) {
    middlewares.use("/orders", (request, response, next) => void order(request, response).catch(next));
  },
};
