/** From what went wrong to an error that says what to do. */
import { SvcError } from "./api.js";

/** Content security policies report what they stop; the last report of each blocked address is kept. */
const stopped: string[] = [];

/** Starts to listen for what the page's policy stops. */
export function listenToPolicy(): void {
  document.addEventListener("securitypolicyviolation", recordStopped);
}

/** A policy that only reports stops nothing. */
function recordStopped({ disposition, effectiveDirective, blockedURI }: SecurityPolicyViolationEvent): void {
  if (disposition === "report" || effectiveDirective !== "connect-src") return;
  if (!stopped.includes(blockedURI)) stopped.push(blockedURI);
}

/** The origin of an endpoint, for messages and policies. */
const originOf = (endpoint: string): string => new URL(endpoint, location.href).origin;

/** Why `fetch` failed without a response. */
export function connectionFailure(endpoint: string): SvcError {
  const origin = originOf(endpoint);
  // Of another origin, browsers report the origin alone or the whole address.
  if (stopped.some((blocked) => `${blocked}/`.startsWith(`${origin}/`))) {
    return new SvcError(
      "blocked_by_policy",
      `The page's content security policy doesn't allow requests to ${origin}: add it to connect-src.`,
    );
  }
  if (navigator.onLine === false) {
    return new SvcError("offline", "The browser is offline: call identify() once it is online.", {
      retryable: true,
    });
  }
  return new SvcError(
    "network",
    `No connection to ${origin}: the service is not reachable there, a proxy answers in its place, its certificate is not ` +
      "valid, or an extension blocks the request. Open the address in a tab to see which; lists block fewer host names below " +
      "the page's own domain.",
    { retryable: true },
  );
}

/** The time limit of one attempt or of the whole call, in which a request was sent. */
export function timedOut(endpoint: string, ms: number, hiddenMs: number): SvcError {
  return late(`No response from ${originOf(endpoint)} within ${Math.round(ms)} ms: go on without, or raise timeoutMs.`, hiddenMs);
}

/** The time limit of the whole call, before a request was sent. */
export function collectedTooLate(ms: number, hiddenMs: number): SvcError {
  return late(
    `The report was not collected within ${Math.round(ms)} ms, so nothing was sent: call load() earlier, or raise timeoutMs.`,
    hiddenMs,
  );
}

function late(message: string, hiddenMs: number): SvcError {
  const hidden =
    hiddenMs >= 1 || document.visibilityState === "hidden"
      ? " The page was hidden meanwhile, where browsers slow everything down: call identify() when it is visible."
      : "";
  return new SvcError("timeout", message + hidden, { retryable: true });
}

/** A response that is not the service's own, such as that of a reverse proxy in front of one that is down. */
export function foreignResponse(endpoint: string, status: number, retryAfterMs: number): SvcError {
  return new SvcError(
    "bad_response",
    `${endpoint} responded with status ${status}, but not as the service does: is \`endpoint\` right, does a proxy ` +
      "forward /api/v1/ unchanged, and does the service run behind it?",
    { status, retryable: isRetryable(status), retryAfterMs },
  );
}

/** What the service responds instead of an identification. */
export interface ErrorBody {
  error?: { code?: unknown; message?: unknown; details?: Fault | Fault[] };
  request_id?: unknown;
}

/** One fault in what was sent, if the service said so. */
type Fault = Partial<Record<"field" | "issue", string>> | null;

const isRetryable = (status: number): boolean => status >= 500 || status === 408 || status === 425 || status === 429;

const ADVICE: Record<string, (key: string, named: string) => string> = {
  unauthorized: (key) =>
    `The key sent is ${key}: is it whole, a public key of this region, and not revoked? The origin sent is ` +
    `${globalThis.origin}: is it among the key's allowed origins?`,
  billing_blocked: () => "The organization accepts no traffic: its operator can change that.",
  no_credit: () => "The organization's balance is used up: its operator can add credit.",
  rate_limited: () => "Identify on the action that counts, not on every page.",
  service_unavailable: () => "Go on without, and try again later.",
  // What the service names of `test` is this page's own; anything else was right when it was sent.
  validation_error: (_, named) =>
    named.startsWith("signals.test") ? "" : "Does a proxy change the body, or is the service older than the SDK?",
};

/** An error response of the service, in its words and ours. */
export function serviceError(
  status: number,
  body: ErrorBody,
  retryAfterMs: number,
  requestId: string | null,
  apiKey: string,
): SvcError {
  const code = String(body.error?.code ?? `http_${status}`);
  const named = [body.error?.details ?? []].flat().map((one) => `${one?.field || "body"}: ${one?.issue}`).join(", ");
  const advice = ADVICE[code]?.(masked(apiKey), named) ?? "";
  const id = typeof body.request_id === "string" ? body.request_id : (requestId ?? undefined);
  const said = `${status} ${code}: ${String(body.error?.message ?? "no message")}`;
  const message = said + (named && ` (${named})`) + (advice && ` ${advice}`);
  return new SvcError(code, message, {
    status,
    retryable: isRetryable(status),
    retryAfterMs,
    ...(id ? { requestId: id } : {}),
  });
}

/** Enough of a key to tell it from others. */
const masked = (key: string): string => `${key.split("_").slice(0, 4).join("_")}_...${key.slice(-4)}`;
