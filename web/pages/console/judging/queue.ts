/** A queue of reviews: which one is next, and how many each rule has opened. */
import { words } from "../format.js";
import type { Review } from "../wire.js";

/** The place of the one to be shown after `at` is gone from a queue that then has `length`: the same place, or the last. */
export const after = (at: number, length: number): number => Math.max(0, Math.min(at, length - 1));

/** Open reviews by what opened them, most first. */
export function byRule(reviews: Review[]): [rule: string, count: number][] {
  const counts = new Map<string, number>();
  for (const review of reviews) {
    const name = review.rule ?? "by hand";
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].sort((one, other) => other[1] - one[1] || one[0].localeCompare(other[0]));
}

/** Whose reviews are shown: all, those of nobody, or those of a member. */
export const isWanted = ({ assignee }: Pick<Review, "assignee">, whose: string | undefined): boolean =>
  !whose || (whose === "none" ? assignee === null : assignee === whose);

export const REASONS = ["chargeback", "account_takeover", "multi_account", "promo_abuse", "bot", "scraping", "spam", "other"];
/** As options to choose from. */
export const WHY: [string, string][] = [["", "none"], ...REASONS.map((one): [string, string] => [one, words(one)])];

export type Act = "next" | "previous" | "fraud" | "legitimate" | "note" | "block" | "take" | "undo" | { reason: string };
const KEYS: Record<string, Act> = {
  ...{ j: "next", k: "previous", f: "fraud", l: "legitimate", n: "note", b: "block", a: "take", u: "undo" },
  ...Object.fromEntries(["", ...REASONS].map((reason, digit) => [digit, { reason }])),
} as Record<string, Act>;

/** What a key of the keyboard asks for; nothing with a modifier, and nothing while somebody writes. */
export function actOf(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">, isTyping: boolean): Act | undefined {
  return isTyping || event.ctrlKey || event.metaKey || event.altKey ? undefined : KEYS[event.key];
}
