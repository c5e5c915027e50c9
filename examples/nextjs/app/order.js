"use server";

import { Client } from "@svc/client";
import { headers } from "next/headers";

const used = new Set(); // a shop has a table with a unique key, and a tag in the session

/** What the server makes of an identification: the page cannot decide. */
export async function order(requestId, tag) {
  const svc = new Client({ baseUrl: process.env.SVC_URL, apiKey: process.env.SVC_SECRET_KEY });
  const origin = (await headers()).get("origin");
  const isFirstUse = async (id) => !used.has(id) && Boolean(used.add(id));
  // `ip` is not compared here, since a laptop's browser may come by IPv4 to one server and by IPv6 to the other.
  const { decision, problem } = await svc.check(requestId, { origin, ip: null, tag, isFirstUse });
  return `${decision}${problem ? ` (${problem})` : ""}: ${requestId}`;
}
