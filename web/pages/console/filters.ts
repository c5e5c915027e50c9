/** Filters of events, as they stand in the address and as the service reads them. */
import type { Query } from "./hash.js";

export const FILTERS = ["level", "signal", "kind", "country", "tag", "ip_address", "visitor"] as const;
export type Filter = (typeof FILTERS)[number];

const HOUR = 3_600_000;
/** Length of a window by its name in the address, in ms. */
export const WINDOWS: Record<string, number> = { "1h": HOUR, "24h": 24 * HOUR, "7d": 168 * HOUR, "30d": 720 * HOUR };
export const WINDOW_NAMES: Record<string, string> = {
  "1h": "Last hour",
  "24h": "Last 24 hours",
  "7d": "Last 7 days",
  "30d": "Last 30 days",
};
export const LEVELS = ["low", "medium", "high"];
export const KINDS = ["human", "ai_bot", "automation", "search_crawler"];

/** A value as the service takes it: without spaces around it, and a country in capitals. */
export function tidy(name: string, value: string): string {
  const trimmed = value.trim();
  return name === "country" ? trimmed.toUpperCase() : trimmed;
}

/** The filters of an address as parameters of a request. */
export function filters(query: Query): Query {
  return Object.fromEntries(FILTERS.flatMap((name) => (query[name] === undefined ? [] : [[name, query[name]]])));
}

/** The window of an address as `from` and `to`; no name, or an unknown one, is the last 24 hours. */
export function period(query: Query, now: number): { from: string; to?: string } {
  if (query.window === "between" && query.from) return { from: query.from, ...(query.to && { to: query.to }) };
  // The service keeps 30 days, and a request takes a moment to arrive.
  const length = Math.min(WINDOWS[query.window ?? "24h"] ?? 24 * HOUR, 720 * HOUR - 60_000);
  return { from: new Date(now - length).toISOString() };
}
