/** `GET /v4/events/{event_id}` of the server API, read from an svc service. */
import type { IncomingMessage, ServerResponse } from "node:http";

import { type SvcEvent, toFingerprintEvent } from "./event.js";

export { type Beside, type FingerprintEvent, type IpInfo, type SvcEvent, toFingerprintEvent, type VelocityData } from "./event.js";

export interface EventsOptions {
  /** Where the service is, without `/api/v1`. */
  url: string;
  /** Adds `identification.first_seen_at`, by a second request for each event. Default `false`. */
  firstSeen?: boolean;
  /** Adds `velocity`. It has no `5_minutes`, which their schema and clients that check it demand. Default `false`. */
  velocity?: boolean;
  /** For each request to the service, 5,000 by default. */
  timeoutMs?: number;
  /** In place of the global one: for a proxy or an authority of your own. */
  fetch?: typeof globalThis.fetch;
}

interface Answer {
  status: number;
  body: object;
  retryAfter?: string | undefined;
}

/** Of `node:http`, and of frameworks that take such handlers. `next`: where the path is none of the server API. */
export type EventsHandler = (request: IncomingMessage, response: ServerResponse, next?: () => void) => Promise<void>;

/**
 * Serves `GET /v4/events/{event_id}`. The bearer token of a request is a secret key of svc, which the service checks: the
 * handler has no key of its own. Throws `TypeError` for what is no address.
 */
export function createEventsHandler(options: EventsOptions): EventsHandler {
  if (!/^https?:\/\//.test(options.url)) throw new TypeError(`url is the address of the service, not ${String(options.url)}`);
  return async (request, response, next) => {
    const [pathname = "", query] = (request.url ?? "").split("?");
    const path = /^(?:\/v4)?\/(events|visitors)(?:\/([^/]*))?$/.exec(pathname);
    if (path === null) return next ? next() : send(response, { status: 404, body: {} });
    const isRead = request.method === "GET" && path[1] === "events" && path[2] !== undefined;
    const rulesetId = new URLSearchParams(query).get("ruleset_id") ?? undefined;
    const answer = isRead
      ? await read(options, path[2]!, request.headers.authorization, rulesetId).catch(() => FAILED)
      : fault(403, "feature_not_enabled", "only events are read here, one by one");
    send(response, answer);
  };
}

async function read(options: EventsOptions, id: string, authorization: string | undefined, rulesetId: string | undefined): Promise<Answer> {
  const key = /^Bearer +([!-~]+)$/i.exec(authorization ?? "")?.[1];
  if (key === undefined) return fault(403, "secret_api_key_required", "secret key in the authorization header is missing");
  // In lower case alone: a server that stores the ids it has used compares them as texts.
  if (!/^[0-9a-f-]{36}$/.test(id)) return fault(400, "request_cannot_be_parsed", "no event id of this service");
  const found = await ask(options, `events/${id}`, key);
  if ("status" in found) return found;
  const event = found.body as unknown as SvcEvent;
  if (event.request_id !== id || typeof event.sdk_platform !== "string") return FAILED; // of something else at this address
  const { firstSeen = false, velocity = false } = options;
  let firstSeenAt: string | undefined;
  if (firstSeen && event.identifiable) {
    const visitor = await ask(options, `visitors/${event.visitor_id}`, key);
    if (!("status" in visitor)) firstSeenAt = visitor.body["first_seen_at"] as string | undefined;
    else if (visitor.status !== 404) return visitor; // one that was erased meanwhile, or is not counted yet
  }
  return { status: 200, body: toFingerprintEvent(event, { firstSeenAt, rulesetId, velocity }) };
}

/** What the service has at this path, or the answer for why it gives nothing. */
async function ask(options: EventsOptions, path: string, key: string): Promise<{ body: Record<string, unknown> } | Answer> {
  const { url, timeoutMs = 5_000, fetch = globalThis.fetch } = options;
  const base = url.replace(/\/+$/, "").replace(/\/api\/v1$/, "");
  let response: Response;
  let body: unknown;
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    response = await fetch(`${base}/api/v1/${path}`, { headers: { "x-api-key": key }, redirect: "manual", signal });
    body = await response.json();
  } catch {
    return fault(503, "service_unavailable", "the service behind this adapter does not respond");
  }
  if (response.ok && typeof body === "object" && body !== null) return { body: body as Record<string, unknown> };
  const refused = (body as { error?: { code?: unknown } } | null)?.error?.code;
  return { ...refusal(response.status, String(refused ?? "")), retryAfter: response.headers.get("retry-after") ?? undefined };
}

/** By code of the service: status and code of theirs. */
const REFUSALS: Record<string, [number, string, string]> = {
  unauthorized: [403, "secret_api_key_not_found", "the secret key is not one of this service"],
  event_not_found: [404, "event_not_found", "event id not found"],
  invalid_request_id: [400, "request_cannot_be_parsed", "no event id of this service"],
  validation_error: [400, "request_cannot_be_parsed", "no event id of this service"],
  billing_blocked: [403, "subscription_not_active", "the organization accepts no traffic"],
  rate_limited: [429, "too_many_requests", "too many requests"],
  service_unavailable: [503, "service_unavailable", "the service is not available"],
};

function refusal(status: number, code: string): Answer {
  const known = REFUSALS[code];
  if (known) return fault(...known);
  if (status === 404) return fault(404, "visitor_not_found", "not found");
  return FAILED;
}

function fault(status: number, code: string, message: string): Answer {
  return { status, body: { error: { code, message } } };
}

const FAILED = fault(500, "failed", "the service behind this adapter failed");

function send(response: ServerResponse, { status, body, retryAfter }: Answer): void {
  const headers = { "content-type": "application/json", "cache-control": "no-store" };
  response.writeHead(status, retryAfter === undefined ? headers : { ...headers, "retry-after": retryAfter });
  response.end(JSON.stringify(body));
}
