// A fake service for the unit tests of what you build: the client is the real one, and no port is opened.
//
// It decides nothing: events are as a test says, and honest where it says nothing. A request id that it was not told of
// is not known to it.

import { isRequestId } from "./checks.js";
import { Client, type Options } from "./client.js";
import { ERRORS, OPERATIONS } from "./testing-data.js";
import {
  type Answer, type Delivery, VerdictKey, checked, deliveryOf, eventOf, listed, madeId, newRequestId, withoutNull,
} from "./testing-events.js";
import type { ChangeBody, EventBody, EventDetailBody } from "./types.js";

export type { Answer, Delivery };

/** One request that arrived. */
export interface FakeCall {
  /** As the API names it, such as `getEvent`; empty for what is none. */
  operation: string;
  /** Below `/api/v1`. */
  path: string;
  query: Record<string, string>;
  body: unknown;
  /** Of the response; `null` where there was none. */
  status: number | null;
}

/** For how many requests a failure holds. */
export interface Times {
  /** 1 by default; `null` = always. */
  times?: number | null;
  /** Only requests of this operation. */
  operation?: string;
}

/** What is answered in place of what would be. */
interface Override {
  operation: string | undefined;
  /** How many times more; `null` = always. */
  left: number | null;
  answer: () => Response;
  isFailure: boolean;
}

interface Asked {
  operation: string;
  path: string;
  query: Record<string, string>;
  body: Record<string, unknown> | null;
  /** What the path names. */
  names: Record<string, string>;
  headers: Headers;
}

/** Nobody's: `.test` is for tests (RFC 2606). */
const URL_OF_NOBODY = "https://svc.test";
const WITHOUT_A_KEY = ["getVerdictKeys", "getHealth", "getReadiness"];
/** Status -> its code, where several have it. */
const CODES: Readonly<Record<number, string>> = {
  400: "bad_request", 402: "no_credit", 404: "not_found", 409: "revision_conflict", 422: "validation_error",
};
const SETTABLE = ["account_id", "action", "tag", "label", "label_reason"];
const LABELS: readonly unknown[] = ["fraud", "legitimate", null, undefined];
/** Filter of a list -> the field that it compares. */
const FILTERS: Readonly<Record<string, keyof EventBody>> = {
  visitor: "visitor_id", level: "suspect_level", country: "country_code", kind: "visitor_kind", tag: "tag",
  ip_address: "ip_address", account_id: "account_id", action: "action", asn: "asn", label: "label",
};
const NOT_WITH_ORDER = ["account_id", "action", "tag", "label", "rule"];
const IDENTIFIED = [
  "request_id", "visitor_id", "visitor_is_new", "identifiable", "visitor_confidence", "proven", "state", "suspect_level",
  "suspect_score", "decision",
] as const;

/** Answers as a test says. Read `calls` for what arrived. */
export class FakeService {
  readonly url = URL_OF_NOBODY;
  readonly organizationId = `org_${madeId("organization")}`;
  readonly secretKey = "svc_sk_us_production_fake";
  readonly managementKey = "svc_mk_us_fake";
  readonly calls: FakeCall[] = [];
  readonly #defaults: Answer;
  readonly #visitors = new Map<string, Answer>();
  readonly #events = new Map<string, EventDetailBody>();
  readonly #changes: ChangeBody[] = [];
  readonly #sent = new Map<string, object>();
  #overrides: Override[] = [];
  #key: VerdictKey | undefined;

  /** `defaults` is what holds for every event that says nothing else: see `answer`. */
  constructor(defaults: Answer = {}) {
    this.#defaults = checked(defaults);
  }

  /** A client of this service, with its secret key. It tries again without waiting, unless `retries` says otherwise. */
  client(options: Partial<Options> = {}): Client {
    const retries = { firstWaitMs: 0, longestRetryAfterS: 0 };
    return new Client({ baseUrl: this.url, apiKey: this.secretKey, fetch: this.fetch, retries, ...options });
  }

  /** In place of the global one: for a client of your own. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    const url = new URL(request.url);
    const text = await request.text();
    const path = url.pathname.replace(/^\/api\/v1/, "");
    const { operation, names } = found(request.method, path);
    const body = text === "" ? null : (JSON.parse(text) as Record<string, unknown>);
    const asked = { operation, path, query: Object.fromEntries(url.searchParams), body, names, headers: request.headers };
    const call: FakeCall = { operation, path, query: asked.query, body, status: null };
    const response = this.#answered(asked, call);
    call.status = response.status;
    return response;
  };

  // What a test says

  /** Say what holds for events of a visitor; returns the visitor id. Throws as `answer`. */
  visitor(name: string, fields: Answer = {}): string {
    this.#visitors.set(name, checked(fields));
    return madeId(name);
  }

  /**
   * Say what the event of a request id is; returns the id, a new one if it is left out. Fields are those of `getEvent`, and
   * those of `Answer`. Throws `TypeError` for what no event can have.
   */
  answer(fields?: Answer): string;
  answer(requestId: string | undefined, fields?: Answer): string;
  answer(first?: string | Answer, second?: Answer): string {
    const [given, fields = {}] = typeof first === "object" ? [undefined, first] : [first, second];
    if (given !== undefined && !isRequestId(given)) {
      throw new TypeError(`${JSON.stringify(given)} is not a request id: leave it out for a new one`);
    }
    const requestId = given ?? newRequestId();
    this.#put(this.#event(requestId, fields));
    return requestId;
  }

  /** An event as lists and webhooks have it, as it is now. Throws `RangeError` for none. */
  event(requestId: string): EventBody {
    return listed(this.#known(requestId));
  }

  /** The signed verdict of an event, which `checkVerdict` of its clients verifies. Throws `RangeError` for none. */
  verdict(requestId: string): string {
    return this.#verdictKey().signed(this.#known(requestId), this.organizationId);
  }

  /**
   * A delivery, signed now. Of the event, an envelope, what is left out is as in a delivery of the type
   * `identification.completed`: `fake.webhook({ data: fake.event(requestId) }, secret)`.
   */
  webhook(event: object, secret: string): Delivery {
    return deliveryOf(event, secret, this.organizationId);
  }

  /**
   * Fail the next requests, of one operation if it is named. Throws `TypeError` for a status, a code or an operation that the
   * service has not.
   */
  fail(status = 503, { code, retryAfterS, ...times }: Times & { code?: string; retryAfterS?: number } = {}): void {
    const named = code ?? CODES[status] ?? Object.keys(ERRORS).find((one) => ERRORS[one]![0] === status);
    if (named === undefined || ERRORS[named]?.[0] !== status) {
      throw new TypeError(`the service has no error ${status} ${code ?? ""}`.trimEnd());
    }
    this.#override(times, () => fault(named, undefined, retryAfterS));
  }

  /** Leave the next requests without a response, as after the time limit, at once. */
  timeOut(times: Times = {}): void {
    this.#override(times, () => {
      throw new DOMException("The operation was aborted due to timeout", "TimeoutError");
    });
  }

  /** Take no connection for the next requests. */
  disconnect(times: Times = {}): void {
    this.#override(times, () => {
      throw new TypeError("fetch failed", { cause: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }) });
    });
  }

  /** Fail no more. */
  recover(): void {
    this.#overrides = this.#overrides.filter((one) => !one.isFailure);
  }

  /**
   * Answer an operation, such as `getVisitor`, with this body; without one, with none. For those that the fake does not
   * know, and for what it says otherwise. Throws `TypeError` for no operation.
   */
  respond(operation: string, body?: object, { times = null }: { times?: number | null } = {}): void {
    const status = OPERATIONS[operation]?.[2];
    const answer = (): Response => (body === undefined ? new Response(null, { status: 204 }) : json(status!, body));
    this.#override({ operation, times }, answer, false);
  }

  #override({ operation, times = 1 }: Times, answer: () => Response, isFailure = true): void {
    if (operation !== undefined && !Object.hasOwn(OPERATIONS, operation)) {
      throw new TypeError(`${operation} is not an operation: they are named as in the API, such as getEvent`);
    }
    this.#overrides.push({ operation, left: times, answer, isFailure });
  }

  // What arrives

  #answered(asked: Asked, call: FakeCall): Response {
    this.calls.push(call);
    const { operation, headers } = asked;
    const failure = this.#next(operation, true);
    if (failure !== undefined) return failure.answer();
    const isManaged = "organization_id" in asked.names || operation === "getManagementKey";
    const key = isManaged ? this.managementKey : this.secretKey;
    if (!WITHOUT_A_KEY.includes(operation) && headers.get("x-api-key") !== key) return fault("unauthorized");
    return this.#next(operation, false)?.answer() ?? (operation === "" ? fault("not_found") : this.#operation(asked));
  }

  /** What a test said of this request; that counts as one of its times. */
  #next(operation: string, isFailure: boolean): Override | undefined {
    const one = this.#overrides.find(
      (each) => each.isFailure === isFailure && each.left !== 0 && [undefined, operation].includes(each.operation),
    );
    if (typeof one?.left === "number") one.left -= 1;
    return one;
  }

  #operation(asked: Asked): Response {
    const { operation, query } = asked;
    const stranger = (asked.names["organization_id"] ?? this.organizationId) !== this.organizationId;
    switch (operation) {
      case "getHealth":
        return json(200, { status: "ok", version: "0.0.0" });
      case "getReadiness":
        return json(200, { status: "ready", checks: { store: "ok", webhooks: "ok", network_data: "ok" } });
      case "getManagementKey": {
        const key = { key_id: `key_${madeId("key")}`, name: "fake", role: "admin", region: "us" };
        return json(200, { ...key, organization_id: this.organizationId });
      }
      case "getVerdictKeys":
        return stranger ? fault("not_found") : json(200, { keys: [this.#verdictKey().jwk] });
      case "identify":
        return this.#identified(asked);
      case "getEvent":
        return this.#noEvent(asked) ?? json(200, this.#found(asked));
      case "updateEvent":
      case "labelEvent":
        return stranger ? fault("not_found") : (this.#noEvent(asked) ?? this.#updated(asked));
      case "listEvents":
        return this.#listed(query);
      case "listChanges": {
        const start = Number(query["after"] ?? 0), end = start + Number(query["limit"] ?? 50);
        const rows = this.#changes.slice(start, end).map((one) => ({ ...one, event: this.event(one.request_id) }));
        const next_cursor = String(start + rows.length);
        return json(200, { changes: rows, next_cursor, has_more: end < this.#changes.length });
      }
      default:
        throw new Error(`say what ${operation} returns: fake.respond("${operation}", ...)`);
    }
  }

  #identified({ body, headers }: Asked): Response {
    const idempotencyKey = headers.get("idempotency-key");
    const before = this.#sent.get(idempotencyKey ?? "");
    if (before !== undefined) return json(200, { ...before, duplicate: true });
    const requestId = newRequestId();
    const sent = ["tag", "account_id", "action"].filter((name) => name in body!).map((name) => [name, body![name]]);
    const sdk = (body!["sdk"] as { platform: string }).platform, platform = sdk.replace(/^.*-/, "");
    const event = this.#event(requestId, { platform, sdk_platform: sdk, ...Object.fromEntries(sent) } as Answer);
    this.#put(event);
    const same = IDENTIFIED.map((name) => [name, event[name]]).filter(([, value]) => (value ?? null) !== null);
    const verdict = body!["verdict"] === true ? { verdict: this.verdict(requestId) } : {};
    const more = { triggers: event.signals, deferred_token: madeId(requestId), ...verdict };
    const answer = { ...Object.fromEntries(same), ...more };
    if (idempotencyKey !== null) this.#sent.set(idempotencyKey, answer);
    return json(200, answer);
  }

  #updated({ body, names }: Asked): Response {
    const event = this.#events.get(names["request_id"]!.toLowerCase())!, change = body ?? {};
    const unknown = Object.keys(change).find((name) => !SETTABLE.includes(name));
    if (unknown !== undefined) return invalid(unknown, "unknown_field");
    if (!LABELS.includes(change["label"])) return invalid("label", "invalid_value");
    const set: Record<string, unknown> = { ...event, ...change };
    if ((set["label"] ?? null) !== (event.label ?? null)) set["label_reason"] = change["label_reason"] ?? null;
    if ((set["label_reason"] ?? null) !== null && (set["label"] ?? null) === null) {
      return invalid("label_reason", "invalid_value");
    }
    if ("account_id" in change) set["account_verified"] = change["account_id"] === null ? null : true;
    const after = withoutNull(set) as unknown as EventDetailBody;
    this.#put(after);
    if (!("organization_id" in names)) return json(200, after);
    const { request_id, label = null, label_reason = null } = after;
    return json(200, { request_id, label, label_reason });
  }

  #listed(query: Record<string, string>): Response {
    const isOldest = query["order"] === "oldest", limit = Number(query["limit"] ?? 10);
    const refused = isOldest ? NOT_WITH_ORDER.find((name) => name in query) : undefined;
    if (refused !== undefined) return invalid(refused, "not_with_order", "query");
    let events = [...this.#events.values()].filter((event) => matches(event, query));
    if (!isOldest) {
      events = events.sort((one, two) => Date.parse(one.occurred_at) - Date.parse(two.occurred_at)).reverse();
    }
    const page = Number(query["page"] ?? 1);
    const start = Number(query[isOldest ? "after" : "cursor"] ?? (page - 1) * limit);
    const rows = events.slice(start, start + limit).map(listed), end = start + rows.length;
    const hasMore = end < events.length;
    const cursor = isOldest || hasMore ? { next_cursor: String(end) } : {};
    return json(200, { rows, page, page_size: limit, ...cursor, ...(isOldest ? { has_more: hasMore } : {}) });
  }

  #found({ names }: Asked): EventDetailBody {
    return this.#events.get(names["request_id"]!.toLowerCase())!;
  }

  #noEvent({ names }: Asked): Response | undefined {
    const requestId = names["request_id"]!.toLowerCase();
    if (!isRequestId(requestId)) return fault("invalid_request_id", { field: "request_id", issue: "invalid_value", location: "path" });
    return this.#events.has(requestId) ? undefined : fault("event_not_found");
  }

  #event(requestId: string, said: Answer): EventDetailBody {
    const own = checked(said);
    const name = own.visitor ?? this.#defaults.visitor ?? "honest";
    return eventOf(requestId, { ...this.#defaults, ...this.#visitors.get(name), ...own });
  }

  #put(event: EventDetailBody): void {
    const before = this.#events.get(event.request_id);
    this.#events.set(event.request_id, event);
    if (before !== undefined && JSON.stringify(sorted(before)) === JSON.stringify(sorted(event))) return;
    const type = before === undefined ? "event.created" : "event.updated";
    this.#changes.push({ type, at: new Date().toISOString(), request_id: event.request_id });
  }

  #known(requestId: string): EventDetailBody {
    const event = this.#events.get(requestId);
    if (event === undefined) throw new RangeError(`there is no event ${requestId}`);
    return event;
  }

  #verdictKey(): VerdictKey {
    this.#key ??= new VerdictKey();
    return this.#key;
  }
}

/** The operation, and what its path names; an empty one for none. */
function found(method: string, path: string): { operation: string; names: Record<string, string> } {
  for (const [operation, [its, pattern]] of Object.entries(OPERATIONS)) {
    const match = its === method ? new RegExp(`^${pattern.replace(/\{(\w+)\}/g, "(?<$1>[^/]+)")}$`).exec(path) : null;
    if (match === null) continue;
    const names = Object.entries(match.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)]);
    return { operation, names: Object.fromEntries(names) as Record<string, string> };
  }
  return { operation: "", names: {} };
}

function matches(event: EventDetailBody, query: Record<string, string>): boolean {
  const at = Date.parse(event.occurred_at);
  const is = (name: string, ...values: unknown[]): boolean => query[name] === undefined || values.includes(query[name]);
  return (
    Object.entries(FILTERS).every(([name, field]) => is(name, event[field]))
    && is("decision", event.decision?.action)
    && is("rule", event.decision?.rule_id)
    && is("signal", ...(event.signals ?? []).map((one) => one.signal))
    && is("group", ...(event.signals ?? []).map((one) => one.group))
    && (query["from"] === undefined || at >= Date.parse(query["from"]))
    && (query["to"] === undefined || at < Date.parse(query["to"]))
  );
}

const sorted = (event: object): unknown => Object.entries(event).sort(([one], [two]) => (one < two ? -1 : 1));

function json(status: number, body: object, headers: Record<string, string> = {}): Response {
  const all = { "content-type": "application/json", "x-request-id": newRequestId(), ...headers };
  return new Response(JSON.stringify(body), { status, headers: all });
}

function invalid(field: string, issue: string, location = "body"): Response {
  return fault("validation_error", { field, issue, location });
}

function fault(code: string, detail?: { field: string; issue: string; location: string }, retryAfterS?: number): Response {
  const [status, message] = ERRORS[code]!;
  const error = { code, message, status, ...(detail === undefined ? {} : { details: [detail] }) };
  const requestId = newRequestId();
  const waits: Record<string, string> = retryAfterS === undefined ? {} : { "retry-after": String(retryAfterS) };
  return json(status, { error, request_id: requestId }, { "x-request-id": requestId, ...waits });
}
