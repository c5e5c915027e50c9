import { ApiError, UnreachableError } from "./errors.js";

/** Attempts of one call, with full-jitter backoff. `{ attempts: 1 }` sends every call once. */
export interface Retries {
  /** 3 by default. */
  attempts?: number;
  /** The longest wait before the second attempt, 100 ms by default; it doubles with each further one. */
  firstWaitMs?: number;
  /** 2,000 by default. */
  longestWaitMs?: number;
  /** A `Retry-After` beyond it is not waited for, 5 seconds by default: the call rejects. */
  longestRetryAfterS?: number;
}

/** What a longer `Retry-After` is read as: nobody waits for either. */
const LONGEST_RETRY_AFTER_S = 999_999_999;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DATE = new RegExp(
  "^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), "
  + `([0-9]{2}) (${MONTHS.join("|")}) ([1-9][0-9]{3}) ((?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}) GMT$`,
);

/**
 * The seconds of a `Retry-After`, which is a number of them or a date (RFC 9110, section 10.2.3); `undefined` for any other
 * text. `now` is in milliseconds since 1970.
 */
export function retryAfterS(value: string, now: number = Date.now()): number | undefined {
  if (/^[0-9]+$/.test(value)) return Math.min(Number(value), LONGEST_RETRY_AFTER_S);
  const [, day, month, year, time] = DATE.exec(value) ?? [];
  if (day === undefined) return undefined;
  const date = `${year}-${String(MONTHS.indexOf(month!) + 1).padStart(2, "0")}-${day}`;
  const moment = new Date(`${date}T${time}Z`);
  // A day that its month has not would be one of the next month.
  if (Number.isNaN(moment.getTime()) || !moment.toISOString().startsWith(date)) return undefined;
  return Math.min(Math.max(0, Math.ceil((moment.getTime() - now) / 1_000)), LONGEST_RETRY_AFTER_S);
}

/** Statuses of requests that were refused before anything was done. */
const NOT_DONE = new Set([408, 425, 429]);

/**
 * Milliseconds until the next attempt after number `attempt` (from 1) failed; `undefined` = there is none.
 *
 * `random` is from 0 to 1. A call that is not repeatable is sent again only where it was not done.
 */
export function waitMs(
  retries: Retries,
  failure: unknown,
  { attempt, isRepeatable, random }: { attempt: number; isRepeatable: boolean; random: number },
): number | undefined {
  if (attempt >= (retries.attempts ?? 3) || !mayHelp(failure, isRepeatable)) return undefined;
  const longest = Math.min(retries.longestWaitMs ?? 2_000, (retries.firstWaitMs ?? 100) * 2 ** (attempt - 1));
  const retryAfterS = failure instanceof ApiError ? (failure.retryAfterS ?? 0) : 0;
  return retryAfterS > (retries.longestRetryAfterS ?? 5) ? undefined : retryAfterS * 1_000 + random * longest;
}

function mayHelp(failure: unknown, isRepeatable: boolean): boolean {
  if (failure instanceof UnreachableError) return isRepeatable || !failure.wasSent;
  if (!(failure instanceof ApiError)) return false;
  return NOT_DONE.has(failure.status) || (isRepeatable && failure.status >= 500);
}
