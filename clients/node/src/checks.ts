// The checks of the backend guide: whether an identification belongs to the action that is being served, and what
// to do about its verdict.

import { isIP } from "node:net";

import { unexpected } from "./errors.js";
import { fieldsOf } from "./json.js";
import type { DecisionBody, EventDetailBody, Open } from "./types.js";

/**
 * Why an identification does not belong to this action. `other_address`, `other_network` and `unproven` are weak: honest
 * visitors have them, too, and they ask for a second factor.
 */
export type Problem = Open<
  "not_found" | "invalid" | "too_old" | "other_origin" | "other_address" | "other_network" | "other_tag"
  | "other_account" | "other_action" | "other_platform" | "unproven" | "used_before">;
export type Decision = "accept" | "verify" | "refuse";

/** The action that is being served. */
export interface Action {
  /** Of the page; `null` for an app. */
  origin: string | null;
  /**
   * The address that is talking to you, to compare it: `other_address` asks for a second factor, and honest visitors have
   * it who reach the service by IPv6 and you by IPv4.
   */
  ip?: string | null | undefined;
  /**
   * Whether it is enough that `ip` is of the same network, of IPv4 the /24 and of IPv6 the /48: `other_network` takes the
   * place of `other_address`.
   */
  sameNetwork?: boolean;
  /** That of this action, best a random value of this session; `null` for none. */
  tag: string | null;
  /**
   * That of your session; left out not to compare it. `other_account` is the problem of another one, and of none. At a
   * sign-up there is none yet: `updateEvent` sets it.
   */
  accountId?: string | undefined;
  /** What is being served, such as `log_in`; left out not to compare it. */
  action?: string | undefined;
  /**
   * Whether to ask for a visit that its browser proved: `unproven` asks for a second factor. A first visit is never
   * proven: it brings the key that later ones are compared with.
   */
  proven?: boolean;
  /**
   * Whether a visitor is accepted that is new (confidence 0), or the same by all that is known and not proven (85 to 89),
   * as after its storage was cleared. For a sign-up: no `not_known`.
   */
  allowUnknown?: boolean;
  /**
   * By which it must have been scored; left out not to compare it. A report that names another platform than its page
   * or app is scored by other weights.
   */
  platform?: Open<"web" | "android" | "ios"> | undefined;
  /** Milliseconds since 1970; the time of the machine by default. */
  now?: number;
}

/** What a signed verdict says, in the claims of RFC 7519 and fields of an event. */
export interface Verdict {
  /** The organization. */
  aud: string;
  /** The visitor id. */
  sub: string;
  /** The request id. */
  jti: string;
  iat: number;
  exp: number;
  environment: Open<"production" | "staging" | "development">;
  platform: string;
  ip_address: string;
  origin?: string;
  tag?: string;
  /** As the identify request named it, and so is the action. Left out by services before 0.3.0. */
  account_id?: string;
  action?: string;
  visitor_is_new: boolean;
  identifiable: boolean;
  visitor_confidence: number;
  /** Left out by services before 0.3.0. */
  proven?: boolean;
  /** Left out when not scored, and so is the level. */
  suspect_score?: number;
  suspect_level?: Open<"low" | "medium" | "high">;
  /** What the rules of the organization decided. Left out where none matched, and by services before 0.3.0. */
  decision?: DecisionBody;
}

/** What to do, and why. */
interface Conclusion {
  /**
   * `null` = it belongs to this action, and may be relied on. So it may, after a second factor, where `decision` is
   * `verify`.
   */
  problem: Problem | null;
  /**
   * What to do: `accept`, `verify` (ask for a second factor) or `refuse`; the stricter of what the checks and the level say
   * and of what a rule decided. `refuse` where the identification is of another action.
   */
  decision: Decision;
  /**
   * Why it is not `accept`, what decided first; empty if it is. `rule:` and the name of the rule that blocked or
   * challenged; `level:` and the level; a problem; `not_scored`, `not_identifiable`, `not_known`. Others may follow.
   */
  reasons: string[];
}

/** What came of the checks of a signed verdict. */
export interface CheckedVerdict extends Conclusion {
  /** `null` where the signature does not hold. */
  verdict: Verdict | null;
}

/** What came of the checks. */
export interface Checked extends Conclusion {
  /** As it was read, also beside a problem, for the log; `null` where there is no such event. */
  event: EventDetailBody | null;
}

const MAX_AGE_MS = 300_000;
export const CLOCK_SKEW_MS = 30_000;
const OPTIONAL = ["origin", "tag", "account_id", "action", "suspect_level"];
const KNOWN_CONFIDENCE = 90;
const WEAK: readonly Problem[] = ["other_address", "other_network", "unproven"];
/** RFC 3339. */
const TIME = new RegExp(
  "^([1-9][0-9]{3}-[0-9]{2}-[0-9]{2})T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}(?:\\.[0-9]{1,9})?"
  + "(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])$",
);
/** Groups of 16 bits of an address of IPv6 that are its network. */
const NETWORK_GROUPS = 3;

/** Whether a value that a client sent has the form of a request id. */
export function isRequestId(value: unknown): value is string {
  return typeof value === "string" && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value);
}

/**
 * The first strong problem alone, else every weak one; the first use is left out, which only a memory can tell. Throws
 * where `ip` is no address, and `ApiError` where what was read has not the form of an event, or is another one than
 * `requestId`.
 */
export function problemsWith(event: EventDetailBody, action: Action, requestId: string): Problem[] {
  if (!hasForm(event, ["request_id", "occurred_at"]) || event.request_id !== requestId) throw unexpected(200);
  const occurred = timeOf(event.occurred_at);
  if (occurred === null) throw unexpected(200);
  const age = (action.now ?? Date.now()) - occurred;
  if (!(age > -CLOCK_SKEW_MS && age < MAX_AGE_MS)) return ["too_old"];
  return differences(event, action);
}

/** What of an event or a verdict is of another action than this one, as of `problemsWith`. */
export function differences(event: EventDetailBody | Verdict, action: Action): Problem[] {
  const found = distance(event.ip_address, action);
  const strong = other(event, action);
  if (strong !== null) return [strong];
  return [...found, ...(action.proven === true && event.proven !== true ? ["unproven"] : [])];
}

function other(event: EventDetailBody | Verdict, action: Action): Problem | null {
  if ((event.origin || null) !== (action.origin || null)) return "other_origin"; // an empty one is none
  if ((event.tag || null) !== (action.tag || null)) return "other_tag";
  if (action.accountId !== undefined && event.account_id !== action.accountId) return "other_account";
  if (action.action !== undefined && event.action !== action.action) return "other_action";
  if (action.platform !== undefined && event.platform !== action.platform) return "other_platform";
  return null;
}

/** Whether what the checks read of an event or a verdict is there, and of its kind; so are more texts and integers. */
export function hasForm(seen: unknown, texts: readonly string[], integers: readonly string[] = []): boolean {
  const fields = fieldsOf(seen);
  if (fields === null) return false;
  const rule = fieldsOf(fields["decision"] ?? { action: "", rule: "" });
  return (
    ["ip_address", "platform", ...texts].every((name) => typeof fields[name] === "string" && fields[name] !== "")
    && ["visitor_confidence", ...integers].every((name) => Number.isSafeInteger(fields[name]))
    && typeof fields["identifiable"] === "boolean"
    && OPTIONAL.every((name) => typeof (fields[name] ?? "") === "string")
    && [rule?.["action"], rule?.["rule"]].every((one) => typeof one === "string")
    && plain(fields["ip_address"] as string) !== null
  );
}

/** A time of RFC 3339 in milliseconds since 1970; `null` for any other text. */
function timeOf(text: string): number | null {
  const day = TIME.exec(text)?.[1];
  // A day that its month has not would be one of the next month.
  if (day === undefined || Number.isNaN(Date.parse(`${day}T00:00:00Z`))) return null;
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day) ? Date.parse(text) : null;
}

/** Whether an identification counts for its action, at once or after a second factor: then it is used. */
export function mayCount(problems: readonly Problem[]): boolean {
  return problems.every((problem) => WEAK.includes(problem));
}

export function concluded(
  problems: readonly Problem[],
  seen: EventDetailBody | Verdict | null,
  { allowUnknown = false }: { allowUnknown?: boolean },
): Conclusion {
  const found = against(problems, seen, allowUnknown);
  return { problem: problems[0] ?? null, decision: strictest(found), reasons: found.map(([, reason]) => reason) };
}

/** What to do with an event that belongs to its action, as of `Checked`. */
export function decide(event: EventDetailBody | Verdict, { allowUnknown = false }: { allowUnknown?: boolean } = {}): Decision {
  return strictest(against([], event, allowUnknown));
}

const strictest = (found: ReadonlyArray<[Decision, string]>): Decision => found[0]?.[0] ?? "accept";

/** What speaks against accepting an event or a verdict, with its name, the strictest first. */
function against(
  problems: readonly Problem[],
  seen: EventDetailBody | Verdict | null,
  allowUnknown: boolean,
): Array<[Decision, string]> {
  if (seen === null || !mayCount(problems)) return [["refuse", problems[0] ?? "not_found"]];
  const refusing: string[] = [], asking: string[] = [];
  const rule = seen.decision;
  if (rule && rule.action !== "allow" && rule.action !== "review") { // an action of tomorrow is no reason to accept
    (rule.action === "block" ? refusing : asking).push(`rule:${rule.rule}`);
  }
  const level = seen.suspect_level;
  if (level === undefined || level === null) asking.push("not_scored");
  else if (level !== "low") (level === "high" ? refusing : asking).push(`level:${level}`);
  asking.push(...problems);
  if (seen.identifiable !== true) asking.push("not_identifiable");
  if (!allowUnknown && !(seen.visitor_confidence >= KNOWN_CONFIDENCE)) asking.push("not_known");
  return [...refusing.map((one): [Decision, string] => ["refuse", one]), ...asking.map((one): [Decision, string] => ["verify", one])];
}

/** What differs of the two addresses, where one is to be compared. */
function distance(seen: string, { ip, sameNetwork = false }: Action): Problem[] {
  if (ip === undefined || ip === null) return [];
  const one = address(seen), two = address(ip);
  if (sameNetwork) return network(one) === network(two) ? [] : ["other_network"];
  return one === two ? [] : ["other_address"];
}

/** The /24 or /48 of an address in its one form. */
function network(canonical: string): string {
  if (isIP(canonical) === 4) return canonical.slice(0, canonical.lastIndexOf("."));
  const [head = "", tail = ""] = canonical.split("::");
  const before = head.split(":").filter(Boolean), after = tail.split(":").filter(Boolean);
  const groups = [...before, ...Array<string>(8 - before.length - after.length).fill("0"), ...after];
  return groups.slice(0, NETWORK_GROUPS).join(":");
}

/** An address without its zone, which is of one machine; `null` for what is no address. */
function plain(text: string): string | null {
  const [address = "", zone, ...more] = text.split("%");
  const family = isIP(address);
  const isRight = family !== 0 && more.length === 0 && (zone === undefined || (family === 6 && zone !== ""));
  return isRight ? address : null;
}

/** An address in one form, whatever the notation; IPv4 inside IPv6 is IPv4. */
function address(text: string): string {
  const found = plain(text);
  if (found === null) throw new TypeError(`${JSON.stringify(text)} is not an address`);
  if (isIP(found) === 4) return found;
  const canonical = new URL(`http://[${found}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(canonical);
  if (mapped === null) return canonical;
  const words = [parseInt(mapped[1]!, 16), parseInt(mapped[2]!, 16)];
  return words.flatMap((word) => [word >> 8, word & 255]).join(".");
}
