"use server";

import { Client } from "@svc/client";
import { headers } from "next/headers";

const used = new Set(); // a shop has a table with a unique key, and a tag in the session

const SAID = {
  accept: "Thank you for your order.",
  verify: "We have sent you a code: enter it to pay.",
  refuse: "We can't take this order.",
};

/** The server decides: what the rules say, and the score. The page cannot. */
export async function order(requestId, tag) {
  const svc = new Client({ baseUrl: process.env.SVC_URL, apiKey: process.env.SVC_SECRET_KEY });
  const origin = (await headers()).get("origin");
  const isFirstUse = async (id) => !used.has(id) && Boolean(used.add(id));
  // Guests may order: `allowUnknown`.
  const action = { origin, tag, action: "checkout", allowUnknown: true };
  const { decision, reasons } = await svc.check(requestId, { ...action, isFirstUse });
  console.log(`${decision} (${reasons.join(", ")}): ${requestId}`); // why is for the log, not for the visitor
  return `${SAID[decision]} Reference: ${requestId}`;
}
