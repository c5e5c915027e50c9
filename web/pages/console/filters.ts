/** Filters of events, as they stand in the address and as the service reads them. */
import type { Query } from "./hash.js";

export const FILTERS = ["level", "decision", "action", "group", "signal", "account_id", "visitor", "ip_address", "country", "asn", "kind", "label", "tag"] as const;
export type Filter = (typeof FILTERS)[number];
/** And what links alone ask for: a rule that decided, or with `shadow` one that matched in shadow mode. */
export const KEPT = [...FILTERS, "rule", "shadow"] as const;

const HOUR = 3_600_000;
/** A window has 30 days at most, however long events are kept, and a request takes a moment to arrive. */
const MOST = 720 * HOUR - 60_000;
/** Length of a window by its name in the address, in ms. */
export const WINDOWS: Record<string, number> = { "1h": HOUR, "24h": 24 * HOUR, "7d": 168 * HOUR, "30d": 720 * HOUR };
export const WINDOW_NAMES: Record<string, string> = {
  "1h": "Last hour",
  "24h": "Last 24 hours",
  "7d": "Last 7 days",
  "30d": "Last 30 days",
};
export const LEVELS = ["low", "medium", "high"];
export const DECISIONS = ["allow", "review", "challenge", "block"];
export const LABELS = ["fraud", "legitimate"];
export const KINDS = ["human", "ai_bot", "automation", "search_crawler"];

/** A value as the service takes it: without spaces around it, and a country in capitals. */
export function tidy(name: string, value: string): string {
  const trimmed = value.trim();
  if (name === "asn") return trimmed.replace(/^as/i, "");
  return name === "country" ? trimmed.toUpperCase() : trimmed;
}

/** Of version 7, as the service gives them: other UUIDs are ids of accounts. */
const REQUEST_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const VISITOR_ID = /^[0-9A-Za-z]{20}$/;

/** What somebody looks for: the event or visitor with this id at once, all else by a search. */
export function wanted(text: string): [screen: string, id: string, query?: Query] {
  const name = text.trim();
  if (REQUEST_ID.test(name)) return ["events", name.toLowerCase()];
  if (VISITOR_ID.test(name)) return ["visitors", name];
  return ["search", "", { q: name }];
}

/** The filters of an address as parameters of a request. */
export function filters(query: Query): Query {
  return Object.fromEntries(KEPT.flatMap((name) => (query[name] === undefined ? [] : [[name, query[name]]])));
}

/** The filters of what a rule matched in this mode; of one that is off, or gone, what it decided. */
export const matchesOf = (rule: string | undefined, mode: string | undefined): Record<string, string | undefined> => ({ rule, shadow: mode === "shadow" ? "true" : undefined });

/** A time in the address, which people edit; `undefined` where it is none. */
export function instantOf(text: string | undefined): Date | undefined {
  const time = new Date(text ?? "");
  return Number.isNaN(time.getTime()) ? undefined : time;
}

/** The names of windows where everything is kept for longer. */
export const ALL_WINDOWS: Record<string, string> = { all: "All", ...WINDOW_NAMES };

/** The window between two times of an address; either may be open. */
function between(query: Query): { from?: string; to?: string } {
  const [first, end] = [instantOf(query.from), instantOf(query.to)];
  return { ...(first && { from: first.toISOString() }), ...(end && { to: end.toISOString() }) };
}

/** The window of an address of which the default is all: what is left out is open. */
export function openPeriod(query: Query, now: number): { from?: string; to?: string } {
  if (query.window === "between") return between(query);
  const length = WINDOWS[query.window ?? ""];
  return length === undefined ? {} : { from: new Date(now - length).toISOString() };
}

/** When a window by this name begins: on a full hour if it has a day or more, as the counts of an hour do. */
export function startOf(name: string, now: number): number {
  const length = WINDOWS[name] ?? 24 * HOUR;
  const round = length >= MOST ? Math.ceil : Math.floor;
  return length <= HOUR ? now - length : HOUR * round((now - Math.min(length, MOST)) / HOUR);
}

/** The window of an address as `from` and `to`; no name, or an unknown one, is the last 24 hours. What only ends begins with the oldest. */
export function period(query: Query, now: number): { from: string; to?: string } {
  const { from, to } = query.window === "between" ? between(query) : {};
  const start = to ? now - MOST : startOf(query.window ?? "24h", now);
  return { from: from ?? new Date(start).toISOString(), ...(to && { to }) };
}
