import { setTimeout as sleep } from "node:timers/promises";

import type { Call } from "./call.js";
import {
  type Action, type Checked, type CheckedVerdict, concluded, isRequestId, mayCount, problemsWith,
} from "./checks.js";
import { type Departure, noting } from "./departures.js";
import { ApiError, UnreachableError, unexpected } from "./errors.js";
import { fieldsOf, parsed } from "./json.js";
import { Operations } from "./operations.js";
import { type Retries, retryAfterS, waitMs } from "./retries.js";
import type {
  ChangesAnswer,
  DetailBody,
  EventBody,
  EventDetailBody,
  EventsAnswer,
  ListChangesQuery,
  ListEventsQuery,
  UnreadableEventBody,
} from "./types.js";
import { type ExpectedVerdict, KeyRing } from "./verdicts.js";

export interface Options {
  /** Where the service is, without `/api/v1`. */
  baseUrl: string;
  apiKey: string;
  /** For each attempt, 5,000 by default. */
  timeoutMs?: number;
  /** For all attempts of a call and the waits between them, 15,000 by default. */
  deadlineMs?: number;
  retries?: Retries;
  /** In place of the global one: for a proxy or an authority of your own. */
  fetch?: typeof globalThis.fetch;
}

const NO_SUCH_EVENT = new Set(["event_not_found", "invalid_request_id"]);
/** Of the body of a response, unpacked. */
const MAX_BYTES = 16 * 2 ** 20;
/** Codes of errors before there was a connection, of a `fetch` that does not tell. */
const NOT_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT", "ENETUNREACH"]);

/** Calls the service with one key. */
export class Client extends Operations {
  readonly #options: Options;
  readonly #keyRings = new Map<string, KeyRing>();

  /** Throws `TypeError` for what is no address or key. */
  constructor(options: Options) {
    super();
    this.#options = { ...options, baseUrl: addressOf(options.baseUrl), apiKey: keyOf(options.apiKey) };
  }

  /**
   * Read an event with a secret key, check that it belongs to the action that is being served, and decide: act on
   * `decision` of what comes back, and log its `reasons`.
   *
   * `requestId` is from the visitor's client: anything at all. `isFirstUse` stores the id and says whether it was new:
   * a unique key in your database. It is called last, for an event that counts for this action, at once or after a second
   * factor.
   *
   * Rejects with `ApiError` and `UnreachableError`: decide beforehand what goes on without a verdict.
   */
  async check(
    requestId: unknown,
    { isFirstUse, ...action }: Action & { isFirstUse: (requestId: string) => boolean | Promise<boolean> },
  ): Promise<Checked> {
    const event = isRequestId(requestId) ? await this.#eventOf(requestId) : null;
    let problems = event === null ? ["not_found"] : problemsWith(event, action, requestId as string);
    if (event !== null && mayCount(problems) && !(await isFirstUse(requestId as string))) problems = ["used_before"];
    return { event, ...concluded(problems, event, action) };
  }

  async #eventOf(requestId: string): Promise<EventDetailBody | null> {
    try {
      return await this.getEvent(requestId);
    } catch (error) {
      if (error instanceof ApiError && NO_SUCH_EVENT.has(error.code)) return null;
      throw error;
    }
  }

  /**
   * Check a signed verdict that the visitor's client handed over: its signature, age, environment, and that it belongs
   * to the action that is being served. Asks the service for the organization's keys once an hour, and for nothing
   * else; `isFirstUse` and the errors are those of `check`.
   */
  async checkVerdict(
    token: unknown,
    { isFirstUse, ...expected }: ExpectedVerdict & { isFirstUse: (requestId: string) => boolean | Promise<boolean> },
  ): Promise<CheckedVerdict> {
    const ring = this.#keyRings.get(expected.organizationId) ?? new KeyRing();
    this.#keyRings.set(expected.organizationId, ring);
    if (ring.mustBeRead(token)) ring.put((await this.getVerdictKeys(expected.organizationId)).keys);
    let { verdict, problems } = ring.check(token, expected);
    if (verdict !== null && mayCount(problems) && !(await isFirstUse(verdict.jti))) problems = ["used_before"];
    return { verdict, ...concluded(problems, verdict, expected) };
  }

  /** Every event of a list, newest first, page after page. One that is corrupt in the store has `request_id` and `error` alone. */
  async *iterateEvents(query: Omit<ListEventsQuery, "page" | "order" | "after"> = {}): AsyncGenerator<EventBody | UnreadableEventBody, void> {
    let cursor: string | undefined = query.cursor;
    do {
      const page = checkedPage(await this.listEvents({ ...query, ...(cursor === undefined ? {} : { cursor }) }), "rows");
      yield* page.rows;
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
  }

  /**
   * The pages of the feed, oldest first: each event once, behind `after` or else from the oldest on. Store
   * `next_cursor` of a page together with what you made of its rows, and begin with it as `after`. At the end it waits
   * for `pollMs` milliseconds and looks again; without `follow` it ends.
   */
  async *iterateFeed(
    query: Omit<ListEventsQuery, "page" | "order" | "cursor" | "to" | "account_id" | "action" | "tag" | "label" | "rule"> = {},
    { follow = true, pollMs = 1_000 }: { follow?: boolean; pollMs?: number } = {},
  ): AsyncGenerator<EventsAnswer, void> {
    const { from, ...rest } = query;
    let beginning: ListEventsQuery = query;
    while (true) {
      const page = checkedPage(await this.listEvents({ limit: 200, ...beginning, order: "oldest" }), "rows");
      yield page;
      beginning = { ...rest, after: page.next_cursor! };
      if (page.has_more !== true) {
        if (!follow) return;
        await sleep(pollMs);
      }
    }
  }

  /**
   * The pages of changes, oldest first: new events, updates and erasures, each once, behind `after` or else from the
   * oldest on. Store `next_cursor` of a page together with what you made of its changes, and begin with it as `after`.
   * At the end it waits for `pollMs` milliseconds and looks again; without `follow` it ends.
   */
  async *iterateChanges(
    query: ListChangesQuery = {},
    { follow = true, pollMs = 1_000 }: { follow?: boolean; pollMs?: number } = {},
  ): AsyncGenerator<ChangesAnswer, void> {
    let next: ListChangesQuery = { limit: 200, ...query };
    while (true) {
      const page = checkedPage(await this.listChanges(next), "changes");
      yield page;
      next = { ...next, after: page.next_cursor };
      if (!page.has_more) {
        if (!follow) return;
        await sleep(pollMs);
      }
    }
  }

  protected override async send<Answer>(call: Call): Promise<Answer> {
    const { timeoutMs = 5_000, deadlineMs = 15_000, retries = {} } = this.#options;
    const end = performance.now() + deadlineMs;
    const left = (): number => end - performance.now();
    for (let attempt = 1; ; attempt += 1) {
      try {
        return (await this.#attempt(call, Math.max(0, Math.min(timeoutMs, left())))) as Answer;
      } catch (failure) {
        const isRepeatable = call.isRepeatable ?? false;
        const wait = waitMs(retries, failure, { attempt, isRepeatable, random: Math.random() });
        if (wait === undefined || wait >= left()) throw failure;
        await sleep(wait);
      }
    }
  }

  async #attempt(call: Call, limitMs: number): Promise<unknown> {
    const { baseUrl, apiKey, fetch = globalThis.fetch } = this.#options;
    const url = new URL(`${baseUrl}/api/v1${call.path}`);
    for (const [name, value] of given(call.query)) url.searchParams.set(name, String(value));
    const headers: Record<string, string> = { "x-api-key": apiKey, "user-agent": "svc-client-node" };
    for (const [name, value] of given(call.headers)) headers[name] = printable(String(value));
    if (call.body !== undefined) headers["content-type"] = "application/json";
    const body = call.body === undefined ? null : JSON.stringify(call.body);
    let response: Response, content: Uint8Array | null;
    const departure = { isTold: false, wasSent: false };
    try {
      const signal = AbortSignal.timeout(Math.ceil(limitMs));
      const { method } = call;
      response = await noting(departure, () => fetch(url, { method, headers, body, signal, redirect: "manual" }));
      content = await contentOf(response);
    } catch (error) {
      throw failureOf(error, url.origin, departure);
    }
    return read(response, content);
  }
}

function addressOf(baseUrl: string): string {
  if (!/^https?:\/\//.test(baseUrl) || !URL.canParse(baseUrl)) {
    throw new TypeError(`baseUrl is the address of the service, such as https://id.shop.example, not ${String(baseUrl)}`);
  }
  const { username, password } = new URL(baseUrl);
  if (username !== "" || password !== "") throw new TypeError("baseUrl has a user name or a password, which are not sent");
  return baseUrl.replace(/\/+$/, "").replace(/\/api\/v1$/, "");
}

/** The key without the line break that a file ends with. The error does not repeat the key. */
function keyOf(apiKey: string | undefined): string {
  const key = apiKey?.trim() ?? "";
  if (/^[!-~]+$/.test(key)) return key;
  throw new TypeError("apiKey is empty, or has characters that no key has: svc_sk_... as it was issued");
}

function given<Value>(values: Record<string, Value | undefined> = {}): Array<[string, Value]> {
  return Object.entries(values).filter((one): one is [string, Value] => one[1] !== undefined);
}

/** A value of a header with what is not of ASCII percent-encoded, so that each text has a value of its own. */
function printable(value: string): string {
  return value.replace(/[^\x20-\x7e]+/g, (found) => Buffer.from(found).toString("hex").toUpperCase().replace(/../g, "%$&"));
}

/** The body of a response; `null` where it is too long or cannot be unpacked. */
async function contentOf(response: Response): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      size += chunk.length;
      if (size > MAX_BYTES) return null; // leaving the loop ends the connection
      chunks.push(chunk);
    }
  } catch (error) {
    if (codeOf(error).startsWith("Z_")) return null; // of zlib
    throw error;
  }
  return Buffer.concat(chunks);
}

/** The object in the body of a response, `undefined` where it has none; throws `ApiError` for any but a success. */
function read(response: Response, content: Uint8Array | null): unknown {
  if (response.status === 204) return undefined;
  let body: unknown;
  try {
    body = parsed(content ?? new Uint8Array());
  } catch {
    // of a proxy, or of something else at this address
  }
  if (response.ok && fieldsOf(body) !== null) return body;
  const more = {
    requestId: response.headers.get("x-request-id") ?? undefined,
    retryAfterS: retryAfterS(response.headers.get("retry-after") ?? ""),
  };
  const { code, message, details } = fieldsOf(fieldsOf(body)?.["error"]) ?? {};
  const isFault = typeof code === "string" && code !== "" && typeof message === "string" && areDetails(details ?? []);
  if (response.ok || !isFault) throw unexpected(response.status, more);
  throw new ApiError(response.status, code, message, { ...more, details: (details ?? []) as DetailBody[] });
}

function areDetails(details: unknown): boolean {
  const isText = (value: unknown): boolean => typeof (value ?? "") === "string";
  return Array.isArray(details) && details.map(fieldsOf).every((one) => (
    one !== null && ["field", "issue", "location"].every((name) => isText(one[name]))
  ));
}

/** The page, where it has the form of one. */
function checkedPage<Page extends object>(page: Page, name: string): Page {
  const { [name]: rows, next_cursor: cursor } = fieldsOf(page) ?? {};
  if (!Array.isArray(rows) || typeof (cursor ?? "") !== "string") throw unexpected(200);
  if (rows.some((row) => fieldsOf(row) === null)) throw unexpected(200);
  return page;
}

/** The code of the cause of an error of `fetch`; empty where it has none. */
function codeOf(error: unknown): string {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  return [cause?.code, code].find((one): one is string => typeof one === "string") ?? "";
}

/** `fetch` rejects with `TypeError` for the network and `DOMException` for the timeout; anything else is a mistake. */
function failureOf(error: unknown, origin: string, { isTold, wasSent }: Departure): unknown {
  const lost = (reason: string, isLikely: boolean): UnreachableError => (
    new UnreachableError(`no response from ${origin}: ${reason}`, isTold ? wasSent : isLikely, error)
  );
  if (error instanceof DOMException) return lost(error.message, true);
  if (!isTypeError(error) || error.cause === undefined) return error;
  const cause = error.cause as { message?: string };
  return lost(cause.message ?? error.message, !NOT_SENT.has(codeOf(error)));
}

/** By its name: in Jest, `fetch` has another `TypeError` than this module. */
function isTypeError(error: unknown): error is TypeError {
  return (error as Partial<Error> | null)?.name === "TypeError";
}
