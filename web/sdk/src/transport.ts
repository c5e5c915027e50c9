/** One POST, however many attempts it takes: the same body and the same `Idempotency-Key`. */
import { SvcError } from "./api.js";
import { type Deadline, pause } from "./deadline.js";
import { own, toJson } from "./json.js";
import { connectionFailure, type ErrorBody, foreignResponse, serviceError, timedOut } from "./explain.js";

export const ATTEMPTS = 3;
export const ATTEMPT_MS = 5000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 2000;
const LEAST_TO_COMPRESS = 1024;
/** Scripts of the page replace what compresses by what never ends. */
const COMPRESS_MS = 500;
/** Browsers let no more than this outlive a page. */
const LARGEST_KEPT_ALIVE = 60_000;

/** What to send. */
export interface Message {
  /** Below the endpoint, such as `/api/v1/identify`. */
  path: string;
  /** A text is JSON already. */
  body: unknown;
  apiKey: string;
  endpoints: Endpoints;
  idempotencyKey?: string;
  /** Whether the request outlives the page. */
  keepalive?: boolean;
  /** Ends everything when aborted. */
  signal: AbortSignal;
  deadline: Deadline;
}

/** What a message cost, kept up to date while it is on its way. */
export interface Cost {
  attempts: number;
  networkMs: number;
  sentBytes: number;
  reportBytes: number;
  endpoint: string;
  serverMs?: number;
}

/** The addresses of the service: the first that works is used until it fails. */
export class Endpoints {
  private position = 0;
  constructor(private readonly addresses: readonly string[]) {}

  get current(): string {
    return this.addresses[this.position] ?? "";
  }

  get count(): number {
    return this.addresses.length;
  }

  next(): void {
    this.position = (this.position + 1) % this.addresses.length;
  }
}

/** Full jitter: any moment up to the doubled base, but never before what the service asked for. */
export function backoffMs(attempt: number, retryAfterMs: number, random: () => number = Math.random): number {
  return Math.max(retryAfterMs, random() * Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1)));
}

/** `Retry-After` in milliseconds: seconds or a date (RFC 9110, 10.2.3); 0 where there is none. */
export function retryAfterMs(header: string | null, now: number = Date.now()): number {
  if (!header) return 0;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isFinite(ms) ? Math.max(0, ms) : 0;
}

interface Packed {
  body: BodyInit;
  bytes: number;
  plainBytes: number;
  headers: Record<string, string>;
}

/** Compressed, where that pays and ends. What outlives the page is not: a page that is left waits for nothing. */
async function pack({ body: value, keepalive }: Message): Promise<Packed> {
  const plain = new TextEncoder().encode(typeof value === "string" ? value : toJson(value));
  const headers = { "content-type": "application/json" };
  const asIs = { body: plain, bytes: plain.length, plainBytes: plain.length, headers };
  if (keepalive || plain.length <= LEAST_TO_COMPRESS || typeof CompressionStream === "undefined") return asIs;
  const compressed = async (): Promise<Packed> => {
    const stream = new Blob([plain]).stream().pipeThrough(new CompressionStream("gzip"));
    const body = await new Response(stream).arrayBuffer();
    return {
      body,
      bytes: body.byteLength,
      plainBytes: plain.length,
      headers: { ...headers, "content-encoding": "gzip" },
    };
  };
  return Promise.race([compressed(), pause(COMPRESS_MS).then(() => asIs)]).catch(() => asIs);
}

/** The service's response as JSON; throws {@link SvcError} once nothing is left to try. */
export async function send(given: Message, cost: Cost): Promise<Record<string, unknown>> {
  const message = own(given);
  const packed = await pack(message);
  cost.sentBytes = packed.bytes;
  cost.reportBytes = packed.plainBytes;
  const { deadline, endpoints } = message;
  const most = Math.max(ATTEMPTS, endpoints.count);
  let bare: Record<string, unknown> | undefined;
  for (;;) {
    cost.attempts += 1;
    cost.endpoint = endpoints.current;
    const outcome = await attempt(message, packed, cost);
    if (!(outcome instanceof SvcError)) {
      // Browsers repeat a request whose connection broke by themselves, as the first attempt.
      if (cost.attempts > 1 || !message.idempotencyKey || !isBare(outcome)) return outcome;
      bare = outcome;
      continue;
    }
    if (bare) return bare;
    const elsewhere = isFaultOfEndpoint(outcome) && cost.attempts < endpoints.count;
    if (cost.attempts >= most || !(outcome.retryable || elsewhere)) throw outcome;
    if (isFaultOfEndpoint(outcome)) endpoints.next();
    const wait = backoffMs(cost.attempts, outcome.retryAfterMs);
    if (deadline.remainingMs() <= wait) throw outcome;
    await Promise.race([pause(wait), ended(message)]);
    await Promise.race([online(), ended(message)]);
    if (message.signal.aborted || deadline.remainingMs() === 0) throw message.signal.aborted ? aborted() : outcome;
  }
}

/** Whether a response says only that the identification was made before. */
const isBare = (response: Record<string, unknown>): boolean =>
  response["duplicate"] === true && response["visitor_id"] === undefined;

/** Whether another address may do better: this one gave no response, or none of the service's own. */
const isFaultOfEndpoint = (error: SvcError): boolean =>
  error.status === 0 || error.status >= 500 || error.code === "bad_response";

/** Resolves when the browser doesn't say that it is offline. */
function online(): Promise<void> {
  if (navigator.onLine !== false) return Promise.resolve();
  return new Promise((resolve) => addEventListener("online", () => resolve(), { once: true }));
}

/** Resolves when the call is aborted or its time over. */
function ended({ signal, deadline }: Message): Promise<void> {
  return Promise.race([
    deadline.over,
    new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
  ]);
}

export const aborted = (): SvcError => new SvcError("aborted", "The call was aborted by its signal.");

async function attempt(message: Message, packed: Packed, cost: Cost): Promise<Record<string, unknown> | SvcError> {
  const { endpoints, signal, deadline } = message;
  const endpoint = endpoints.current;
  const began = performance.now();
  const stop = new AbortController();
  const onAbort = (): void => stop.abort();
  signal.addEventListener("abort", onAbort, { once: true });
  let late = false;
  const expire = (): void => {
    late = true;
    stop.abort();
  };
  const timer = setTimeout(expire, ATTEMPT_MS);
  void deadline.over.then(expire);
  // Scripts of the page replace `fetch` by one that goes on when it is told to stop.
  const stopped = new Promise<never>((_, reject) => stop.signal.addEventListener("abort", reject));
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([exchange(message, packed, stop.signal, cost), stopped]);
  } catch {
    if (signal.aborted) return aborted();
    if (late) return timedOut(endpoint, deadline.remainingMs() === 0 ? deadline.ms : ATTEMPT_MS, deadline.hiddenMs);
    await pause(0); // reports of a policy come a moment after the failure
    return connectionFailure(endpoint);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    cost.networkMs = performance.now() - began;
  }
}

async function exchange(
  message: Message,
  packed: Packed,
  signal: AbortSignal,
  cost: Cost,
): Promise<Record<string, unknown> | SvcError> {
  const url = message.endpoints.current + message.path;
  const init: RequestInit = {
    method: "POST",
    body: packed.body,
    headers: {
      ...packed.headers,
      "x-api-key": message.apiKey,
      ...(message.idempotencyKey ? { "idempotency-key": message.idempotencyKey } : {}),
      // The response to an earlier attempt may be lost: then this one gets all of it again.
      ...(message.idempotencyKey && cost.attempts > 1 ? { "x-svc-replay": "full" } : {}),
    },
    signal,
    keepalive: message.keepalive === true && packed.bytes < LARGEST_KEPT_ALIVE,
    credentials: "omit",
    cache: "no-store",
    referrerPolicy: "no-referrer",
  };
  const response = await fetch(url, own(init));
  const text = await response.text();
  const body = parsed(text);
  if (response.ok && body && typeof body["request_id"] === "string") {
    const serverMs = serverTime(url);
    if (serverMs !== undefined) cost.serverMs = serverMs;
    return body;
  }
  const asked = retryAfterMs(response.headers.get("retry-after"));
  if (response.ok || !body || typeof body["error"] !== "object") {
    return foreignResponse(message.endpoints.current, response.status, asked);
  }
  return serviceError(response.status, body as ErrorBody, asked, response.headers.get("x-request-id"), message.apiKey);
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** What the service says of the last request to this address, else the time to its first byte; only of the page's own origin. */
function serverTime(url: string): number | undefined {
  const entries = performance.getEntriesByName?.(url) as
    PerformanceResourceTiming[] | undefined;
  const last = entries?.[entries.length - 1];
  const said = last?.serverTiming?.find(({ name }) => name === "svc");
  if (said) return said.duration;
  return last && last.requestStart > 0 ? last.responseStart - last.requestStart : undefined;
}
