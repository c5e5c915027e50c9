package svc.visitor.client;

import java.time.Duration;
import java.util.Set;

/** Attempts of one call, with full-jitter backoff. */
public final class Retries {
  /** Statuses of requests that were refused before anything was done. */
  private static final Set<Integer> NOT_DONE = Set.of(408, 425, 429);

  private final int attempts;
  private final Duration firstWait;
  private final Duration longestWait;
  private final Duration longestRetryAfter;

  /**
   * With {@code attempts}, of which 1 sends every call once. {@code firstWait} is the longest wait before the second one; it
   * doubles with each further one, up to {@code longestWait}. A {@code Retry-After} beyond {@code longestRetryAfter} is not
   * waited for: the exception is thrown.
   */
  public Retries(int attempts, Duration firstWait, Duration longestWait, Duration longestRetryAfter) {
    this.attempts = attempts;
    this.firstWait = firstWait;
    this.longestWait = longestWait;
    this.longestRetryAfter = longestRetryAfter;
  }

  /** Three unless told otherwise, after 100 ms and 200 ms at most, and no {@code Retry-After} beyond 5 seconds. */
  public static Retries of(int attempts) {
    return new Retries(attempts, Duration.ofMillis(100), Duration.ofSeconds(2), Duration.ofSeconds(5));
  }

  /**
   * Milliseconds until the next attempt after number {@code attempt} (from 1) failed; null where there is none. {@code
   * random} is from 0 to 1. A call that is not repeatable is sent again only where it was not done.
   */
  Double waitMs(SvcException failure, int attempt, boolean isRepeatable, double random) {
    if (attempt >= attempts || !mayHelp(failure, isRepeatable)) return null;
    double wait = random * Math.min(longestWait.toMillis(), firstWait.toMillis() * Math.pow(2, attempt - 1));
    Long retryAfterS = failure instanceof ApiException ? ((ApiException) failure).retryAfterS() : null;
    if (retryAfterS == null) return wait;
    return retryAfterS > longestRetryAfter.toSeconds() ? null : wait + retryAfterS * 1_000;
  }

  private static boolean mayHelp(SvcException failure, boolean isRepeatable) {
    if (failure instanceof UnreachableException) return isRepeatable || !((UnreachableException) failure).wasSent();
    if (!(failure instanceof ApiException)) return false;
    int status = ((ApiException) failure).status();
    return NOT_DONE.contains(status) || (isRepeatable && status >= 500);
  }
}
