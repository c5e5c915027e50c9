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
