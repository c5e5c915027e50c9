// The checks of the backend guide: whether an identification belongs to the action that is being served, and what
// to do about its verdict.

import { isIP } from "node:net";

import type { DecisionBody, EventDetailBody, Open } from "./types.js";

/** Why an identification does not belong to this action. */
export type Problem = Open<
  "not_found" | "invalid" | "too_old" | "other_origin" | "other_address" | "other_tag" | "other_account"
  | "other_action" | "other_platform" | "unproven" | "used_before">;
export type Decision = "accept" | "verify" | "refuse";

/** The action that is being served. */
export interface Action {
  /** Of the page; `null` for an app. */
  origin: string | null;
  /** The address that is talking to you; `null` not to compare it. */
  ip: string | null;
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
   * Whether only a visit that its browser proved belongs to this action: `unproven` is the problem of another one. A
   * first visit is never proven.
   */
  proven?: boolean;
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

/** What came of the checks of a signed verdict. */
export interface CheckedVerdict {
  /** `null` = it belongs to this action. Then, and only then, rely on `verdict`. */
  problem: Problem | null;
  /** `null` where the signature does not hold. */
  verdict: Verdict | null;
  /** As of `Checked`. */
  decision: Decision;
}

/** What came of the checks. */
export interface Checked {
  /** `null` = it belongs to this action. Then, and only then, rely on `event`. */
  problem: Problem | null;
  /** As it was read, also beside a problem, for the log; `null` where there is no such event. */
  event: EventDetailBody | null;
  /** What the backend guide does with it at a log-in; an identification with a problem is refused. */
  decision: Decision;
}

const MAX_AGE_MS = 300_000;
export const CLOCK_SKEW_MS = 30_000;
const KNOWN_CONFIDENCE = 90;

/** Whether a value that a client sent has the form of a request id. */
export function isRequestId(value: unknown): value is string {
  return typeof value === "string" && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value);
}

/** The first check that fails, but for the first use, which only a memory can tell. Throws where `ip` is no address. */
export function problemWith(event: EventDetailBody, action: Action): Problem | null {
  const age = (action.now ?? Date.now()) - Date.parse(event.occurred_at);
  if (!(age > -CLOCK_SKEW_MS && age < MAX_AGE_MS)) return "too_old";
  return difference(event, action);
}

/** What of an event or a verdict is of another action than this one. */
export function difference(event: EventDetailBody | Verdict, action: Action): Problem | null {
  if ((event.origin ?? null) !== action.origin) return "other_origin";
  if (action.ip !== null && address(event.ip_address) !== address(action.ip)) return "other_address";
  if ((event.tag ?? null) !== action.tag) return "other_tag";
  if (action.accountId !== undefined && event.account_id !== action.accountId) return "other_account";
  if (action.action !== undefined && event.action !== action.action) return "other_action";
  if (action.platform !== undefined && event.platform !== action.platform) return "other_platform";
  return action.proven === true && event.proven !== true ? "unproven" : null;
}

export function checked(problem: Problem | null, event: EventDetailBody | null): Checked {
  return { problem, event, decision: problem !== null || event === null ? "refuse" : decide(event) };
}

/** For a log-in, with an event that belongs to it: `accept`, `verify` (a second factor) or `refuse`. */
export function decide(event: EventDetailBody | Verdict): Decision {
  const level = event.suspect_level ?? "medium"; // absent: the report could not be scored
  if (level === "high") return "refuse";
  const isKnown = event.identifiable === true && (event.visitor_confidence ?? 0) >= KNOWN_CONFIDENCE;
  return level === "low" && isKnown ? "accept" : "verify";
}

/** An address in one form, whatever the notation; IPv4 inside IPv6 is IPv4. */
function address(text: string): string {
  const family = isIP(text);
  if (family === 0) throw new TypeError(`${JSON.stringify(text)} is no address`);
  if (family === 4) return text;
  const canonical = new URL(`http://[${text.replace(/%.*$/, "")}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(canonical);
  if (mapped === null) return canonical;
  const words = [parseInt(mapped[1]!, 16), parseInt(mapped[2]!, 16)];
  return words.flatMap((word) => [word >> 8, word & 255]).join(".");
}
