import { setTimeout as sleep } from "node:timers/promises";

import type { Call } from "./call.js";
import {
  type Action, type Checked, type CheckedVerdict, concluded, isRequestId, mayCount, problemsWith,
} from "./checks.js";
import { ApiError, UnreachableError, unexpected } from "./errors.js";
import { Operations } from "./operations.js";
import { type Retries, waitMs } from "./retries.js";
import type {
  ChangesAnswer,
  ErrorBody,
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
  retries?: Retries;
  /** In place of the global one: for a proxy or an authority of your own. */
  fetch?: typeof globalThis.fetch;
}

const NO_SUCH_EVENT = new Set(["event_not_found", "invalid_request_id"]);
/** Codes of errors before there was a connection. */
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
    let problems = event === null ? ["not_found"] : problemsWith(event, action);
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
      const page = await this.listEvents({ ...query, ...(cursor === undefined ? {} : { cursor }) });
      yield* page.rows;
      cursor = page.next_cursor;
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
      const page = await this.listEvents({ limit: 200, ...beginning, order: "oldest" });
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
      const page = await this.listChanges(next);
      yield page;
      next = { ...next, after: page.next_cursor };
      if (!page.has_more) {
        if (!follow) return;
        await sleep(pollMs);
      }
    }
  }

  protected override async send<Answer>(call: Call): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return (await this.#attempt(call)) as Answer;
      } catch (failure) {
        const isRepeatable = call.isRepeatable ?? false;
        const wait = waitMs(this.#options.retries ?? {}, failure, { attempt, isRepeatable, random: Math.random() });
        if (wait === undefined) throw failure;
        await sleep(wait);
      }
    }
  }

  async #attempt(call: Call): Promise<unknown> {
    const { baseUrl, apiKey, timeoutMs = 5_000, fetch = globalThis.fetch } = this.#options;
    const url = new URL(`${baseUrl}/api/v1${call.path}`);
    for (const [name, value] of given(call.query)) url.searchParams.set(name, String(value));
    const headers: Record<string, string> = { "x-api-key": apiKey, "user-agent": "svc-client-node" };
    for (const [name, value] of given(call.headers)) headers[name] = value;
    if (call.body !== undefined) headers["content-type"] = "application/json";
    const body = call.body === undefined ? null : JSON.stringify(call.body);
    let response: Response, text: string;
    try {
      const signal = AbortSignal.timeout(timeoutMs);
      response = await fetch(url, { method: call.method, headers, body, signal, redirect: "manual" });
      text = await response.text();
    } catch (error) {
      throw failureOf(error, url.origin);
    }
    return read(response, text);
  }
}

function addressOf(baseUrl: string): string {
  if (/^https?:\/\//.test(baseUrl)) return baseUrl.replace(/\/+$/, "").replace(/\/api\/v1$/, "");
  throw new TypeError(`baseUrl is the address of the service, such as https://id.shop.example, not ${String(baseUrl)}`);
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

/** The body of a response, `undefined` where it has none; throws `ApiError` for any but a success. */
function read(response: Response, text: string): unknown {
  if (response.status === 204) return undefined;
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // of a proxy, or of something else at this address
  }
  if (response.ok && body !== undefined) return body;
  const retryAfter = response.headers.get("retry-after") ?? "";
  const more = {
    requestId: response.headers.get("x-request-id") ?? undefined,
    retryAfterS: /^[0-9]{1,9}$/.test(retryAfter) ? Number(retryAfter) : undefined,
  };
  const fault = (body as Partial<ErrorBody> | null | undefined)?.error;
  if (typeof fault?.code !== "string" || typeof fault.message !== "string") throw unexpected(response.status, more);
  const details = Array.isArray(fault.details) ? fault.details : [];
  throw new ApiError(response.status, fault.code, fault.message, { ...more, details });
}

/** `fetch` rejects with `TypeError` for the network and `DOMException` for the timeout; anything else is a mistake. */
function failureOf(error: unknown, origin: string): unknown {
  const because = (reason: string): string => `no response from ${origin}: ${reason}`;
  if (error instanceof DOMException) return new UnreachableError(because(error.message), true, error);
  if (!isTypeError(error) || error.cause === undefined) return error;
  const cause = error.cause as { code?: string; message?: string };
  return new UnreachableError(because(cause.message ?? error.message), !NOT_SENT.has(cause.code ?? ""), error);
}

/** By its name: in Jest, `fetch` has another `TypeError` than this module. */
function isTypeError(error: unknown): error is TypeError {
  return (error as Partial<Error> | null)?.name === "TypeError";
}
