import { createHmac, timingSafeEqual } from "node:crypto";

import { WebhookError } from "./errors.js";
import { areHeaders } from "./forwarding.js";
import { fieldsOf, parsed } from "./json.js";
import type { Open } from "./types.js";

const TOLERANCE_S = 300;

/** What a delivery says. */
export interface WebhookEvent {
  /** The same on every attempt: skip those that you know. */
  id: string;
  type: Open<
    | "identification.completed"
    | "visitor.suspect"
    | "identification.refused"
    | "billing.status_changed"
    | "usage.daily_settled"
    | "review.opened"
    | "review.closed"
    | "webhook.test"
  >;
  version: 1;
  organization_id: string;
  environment: "live" | "test";
  /** When the fact happened, RFC 3339 in UTC. */
  created_at: string;
  /** Of `identification.completed` and `visitor.suspect`, an event as `listEvents` has it. */
  data: Record<string, unknown>;
}

/** Headers of Node.js, of `fetch`, or any object of them. */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

/**
 * The event of an authentic delivery; throws `WebhookError` for any other.
 *
 * `body` is the exact bytes that arrived. `secrets` is the endpoint's signing secret, or several while you rotate.
 * `now` is in milliseconds since 1970.
 */
export function verifyWebhook(
  body: Uint8Array,
  headers: WebhookHeaders,
  secrets: string | readonly string[],
  now: number = Date.now(),
): WebhookEvent {
  if (!(body instanceof Uint8Array)) {
    throw new TypeError('body is not the bytes that arrived: in Express, use express.raw({ type: "application/json" })');
  }
  const timestamp = valueOf(headers, "x-svc-timestamp");
  if (!/^[0-9]{1,12}$/.test(timestamp)) throw new WebhookError("the delivery has no timestamp");
  if (Math.abs(now / 1_000 - Number(timestamp)) > TOLERANCE_S) {
    throw new WebhookError(`the delivery was signed more than ${TOLERANCE_S} seconds from now`);
  }
  const parts = valueOf(headers, "x-svc-signature").split(",").map((part) => Buffer.from(part.trim()));
  const known = typeof secrets === "string" ? [secrets] : secrets;
  const isSigned = known.map((secret) => secret.trim()).some((secret) => {
    if (secret === "") return false;
    const digest = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex");
    const expected = Buffer.from(`sha256=${digest}`);
    return parts.some((part) => part.length === expected.length && timingSafeEqual(part, expected));
  });
  if (!isSigned) throw new WebhookError("the signature is by none of the secrets");
  return eventOf(body);
}

function valueOf(headers: WebhookHeaders, name: string): string {
  if (areHeaders(headers)) return headers.get(name) ?? "";
  const found = Object.entries(headers).find(([one]) => one.toLowerCase() === name)?.[1];
  return Array.isArray(found) ? found.join(",") : (found ?? "");
}

function eventOf(body: Uint8Array): WebhookEvent {
  let event: unknown;
  try {
    event = parsed(body);
  } catch (cause) {
    throw new WebhookError("the body is not an event", { cause });
  }
  const fields = fieldsOf(event);
  const hasTexts = ["id", "type"].every((name) => typeof fields?.[name] === "string" && fields[name] !== "");
  if (!hasTexts || fields?.["version"] !== 1 || fieldsOf(fields["data"]) === null) {
    throw new WebhookError("the body is not an event of version 1");
  }
  return event as WebhookEvent;
}
