// What a fake service stores and signs: events from what a test says of them, verdicts, deliveries of webhooks.

import { createHash, createHmac, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

import { EVENT_FIELDS, SIGNALS } from "./testing-data.js";
import type { EventBody, EventDetailBody, JwkBody, TriggerBody, VelocityBody } from "./types.js";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Characters of a random id. */
const LENGTH = 20;
/** From which a score is suspect, unless an organization says otherwise. */
const THRESHOLD = 30;
/** Level -> its least score. */
const SCORES: Readonly<Record<string, number>> = { low: 0, medium: THRESHOLD, high: 2 * THRESHOLD };
const VERDICT_VALID_S = 300;
/** Fields of an event that a verdict has, too. */
const CLAIMS = [
  "environment", "platform", "ip_address", "origin", "tag", "account_id", "action", "visitor_is_new", "identifiable",
  "visitor_confidence", "proven", "suspect_score", "suspect_level", "decision",
] as const;
const NULLABLE = ["suspect_score", "document"];
const SAID = ["visitor", "decision", "rule", "signals", "age_s"];

type Fields = Omit<EventDetailBody, "request_id" | "visitor_id" | "decision" | "signals">;

/** What a test says of an event; an honest visitor's wherever it says nothing. `null` leaves a field out. */
export type Answer = { [Name in keyof Fields]?: Fields[Name] | null } & {
  /** A name of your choice, `honest` if left out, or a visitor id: events of one name are of one visitor. */
  visitor?: string;
  /** What a rule decided. */
  decision?: "allow" | "review" | "challenge" | "block";
  /** The name of that rule, `Test rule` if left out. */
  rule?: string;
  /** Signals that fired, or groups of signals, such as `vpn`: score and level follow from their weights. */
  signals?: readonly string[];
  /** How long ago it was, 0 if left out. */
  age_s?: number;
};

/** What a test says. Throws `TypeError` for what no event can have. */
export function checked(said: Answer): Answer {
  const given = Object.entries(said).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) {
    if (!Object.hasOwn(EVENT_FIELDS, name) && !SAID.includes(name)) throw new TypeError(`an event has no ${name}`);
    if (value === null && !(EVENT_FIELDS[name] ?? false) && !NULLABLE.includes(name)) {
      throw new TypeError(`every event has ${name}`);
    }
  }
  if (said.rule !== undefined && said.decision === undefined) {
    throw new TypeError("a rule without a decision: say what it decided");
  }
  return Object.fromEntries(given);
}

/** 20 characters for a name, the same every time; those of an id are its own. */
export function madeId(name: string): string {
  if (/^[0-9A-Za-z]{20}$/.test(name)) return name;
  let left = BigInt(`0x${createHash("sha256").update(name).digest("hex")}`), digits = "";
  for (; digits.length < LENGTH; left /= 62n) digits += DIGITS[Number(left % 62n)]!;
  return digits;
}

/** A UUIDv7. */
export function newRequestId(): string {
  const hex = Date.now().toString(16).padStart(12, "0"), noise = randomBytes(10).toString("hex");
  const variant = "89ab"[parseInt(noise[3]!, 16) & 3]!;
  const parts = [hex.slice(0, 8), hex.slice(8), `7${noise.slice(0, 3)}`, variant + noise.slice(4, 7), noise.slice(8)];
  return parts.join("-");
}

/** An event as `getEvent` has it. Throws `TypeError` for what no event can have. */
export function eventOf(requestId: string, said: Answer): EventDetailBody {
  const { visitor = "honest", decision, rule = "Test rule", signals = [], age_s = 0, ...given } = checked(said);
  const platform = given.platform ?? "web";
  const fired = firedOf(signals, platform);
  const hasAccount = (given.account_id ?? null) !== null;
  const event = {
    request_id: requestId,
    visitor_id: madeId(visitor),
    visitor_is_new: false,
    identifiable: true,
    visitor_confidence: 100,
    proven: true,
    state: "enriched",
    occurred_at: new Date(Date.now() - age_s * 1_000).toISOString(),
    environment: "production",
    platform,
    sdk_platform: platform,
    sdk_version: "unknown",
    origin: platform === "web" ? "https://shop.example" : null,
    ip_address: "203.0.113.7",
    country_code: "GB",
    country_name: "United Kingdom",
    ...scored(fired, given),
    triggers: groups(fired),
    signals: fired,
    has_document: false,
    document: null,
    decision: decision === undefined ? null : { action: decision, rule_id: `rul_${madeId(rule)}`, rule },
    velocity: velocity(hasAccount),
    account_verified: hasAccount ? true : null,
    ...given,
  };
  return withoutNull(event) as unknown as EventDetailBody;
}

/** Without the fields that an event can be without. */
export function withoutNull(event: object): Record<string, unknown> {
  const kept = Object.entries(event).filter(([name, value]) => value !== null || NULLABLE.includes(name));
  return Object.fromEntries(kept);
}

/** An event as lists and webhooks have it. */
export function listed(event: EventDetailBody): EventBody {
  const { document: _, shadow: __, deferred_signals: ___, ...rest } = event;
  return rest;
}

/** Each signal, heaviest first. */
function firedOf(names: readonly string[], platform: string): TriggerBody[] {
  const weight = (name: string): number | undefined => SIGNALS[name]?.[1][platform];
  const found = names.map((name) => {
    const kin = Object.keys(SIGNALS).filter((one) => [one, SIGNALS[one]![0]].includes(name) && weight(one) !== undefined);
    const signal = kin.includes(name) ? name : [...kin].sort((one, two) => weight(two)! - weight(one)!)[0];
    if (signal === undefined) throw new TypeError(`there is no signal and no group ${name} on ${platform}`);
    return { signal, group: SIGNALS[signal]![0], weight: weight(signal)!, confidence: "medium" };
  });
  return found.sort((one, two) => two.weight - one.weight);
}

function groups(fired: readonly TriggerBody[]): EventDetailBody["triggers"] {
  const weights = new Map<string, number>();
  for (const { group, weight } of fired) weights.set(group, (weights.get(group) ?? 0) + weight);
  const found = [...weights].map(([signal, weight]) => ({ signal, weight, confidence: "medium" }));
  return found.sort((one, two) => two.weight - one.weight);
}

/** Score and level: the one follows from the other where a test says only one, and from the signals where none. */
function scored(fired: readonly TriggerBody[], given: Answer): { suspect_score: number | null; suspect_level?: string } {
  if (given.suspect_score === null) return { suspect_score: null };
  const sum = fired.reduce((total, { weight }) => total + weight, 0);
  const score = given.suspect_score ?? Math.max(sum, SCORES[given.suspect_level ?? ""] ?? 0);
  const level = score < THRESHOLD ? "low" : score < 2 * THRESHOLD ? "medium" : "high";
  return { suspect_score: score, suspect_level: level };
}

function velocity(hasAccount: boolean): VelocityBody {
  const times = (count: number): Record<string, number> => ({ "1h": count, "24h": count, "30d": count });
  const once = times(1), accounts = times(hasAccount ? 1 : 0);
  return {
    visitor: { events: once, accounts, addresses: once, countries: once },
    address: { events: once, visitors: once, accounts },
    ...(hasAccount ? { account: { events: once, visitors: once, addresses: once, countries: once } } : {}),
  };
}

/** A key that signs verdicts, as an organization has one. */
export class VerdictKey {
  readonly jwk: JwkBody;
  readonly #private: KeyObject;

  constructor() {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const x = publicKey.export({ format: "jwk" }).x!;
    this.#private = privateKey;
    this.jwk = { kty: "OKP", crv: "Ed25519", x, kid: madeId(x), use: "sig", alg: "EdDSA" };
  }

  /** The verdict of an event, in the compact serialization. */
  signed(event: EventDetailBody, organizationId: string): string {
    const issued = Math.floor(Date.parse(event.occurred_at) / 1_000);
    const same = CLAIMS.map((name) => [name, event[name]]).filter(([, value]) => (value ?? null) !== null);
    const claims = {
      iss: "svc", aud: organizationId, sub: event.visitor_id, jti: event.request_id,
      iat: issued, exp: issued + VERDICT_VALID_S, ...Object.fromEntries(same),
    };
    const header = { alg: "EdDSA", kid: this.jwk.kid, typ: "svc-verdict+jwt" };
    const text = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
    return `${text}.${sign(null, Buffer.from(text), this.#private).toString("base64url")}`;
  }
}

/** A webhook as it arrives. */
export interface Delivery {
  body: Uint8Array;
  headers: Record<string, string>;
}

/** A signed delivery, as of `FakeService.webhook`. */
export function deliveryOf(event: object, secret: string, organizationId: string): Delivery {
  const whole = {
    id: newRequestId(), type: "identification.completed", version: 1, organization_id: organizationId,
    environment: "live", created_at: new Date().toISOString(), data: {}, ...event,
  };
  const body = Buffer.from(JSON.stringify(whole)), at = String(Math.floor(Date.now() / 1_000));
  const digest = createHmac("sha256", secret).update(`${at}.`).update(body).digest("hex");
  const own = { "X-Svc-Event-ID": whole.id, "X-Svc-Event-Type": whole.type };
  const signed = { "X-Svc-Timestamp": at, "X-Svc-Signature": `sha256=${digest}` };
  return { body, headers: { "Content-Type": "application/json", ...own, ...signed } };
}
