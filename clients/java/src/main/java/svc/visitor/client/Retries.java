package svc.visitor.client;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Attempts of one call, with full-jitter backoff. */
public final class Retries {
  /** Statuses of requests that were refused before anything was done. */
  private static final Set<Integer> NOT_DONE = Set.of(408, 425, 429);

  /** What a longer {@code Retry-After} is read as: nobody waits for either. */
  private static final long LONGEST_RETRY_AFTER_S = 999_999_999;

  private static final List<String> MONTHS =
      List.of("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec");
  private static final Pattern DATE = Pattern.compile(
      "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), ([0-9]{2}) (" + String.join("|", MONTHS)
          + ") ([1-9][0-9]{3}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT");

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

  /**
   * The seconds of a {@code Retry-After}, which is a number of them or a date (RFC 9110, section 10.2.3); null for any other
   * text.
   */
  static Long retryAfterS(String value, Instant now) {
    if (value.matches("[0-9]+")) {
      String digits = value.replaceFirst("^0+(?=.)", "");
      return digits.length() > 9 ? LONGEST_RETRY_AFTER_S : Long.parseLong(digits);
    }
    Matcher date = DATE.matcher(value);
    if (!date.matches()) return null;
    int[] parts = new int[6];
    for (int i : new int[] {0, 2, 3, 4, 5}) parts[i] = Integer.parseInt(date.group(i + 1));
    try {
      Instant moment =
          LocalDateTime.of(parts[2], MONTHS.indexOf(date.group(2)) + 1, parts[0], parts[3], parts[4], parts[5])
              .toInstant(ZoneOffset.UTC);
      Duration left = Duration.between(now, moment);
      long seconds = left.getSeconds() + (left.getNano() > 0 ? 1 : 0);
      return Math.min(Math.max(0, seconds), LONGEST_RETRY_AFTER_S);
    } catch (DateTimeException noDay) {
      return null;
    }
  }

  private static boolean mayHelp(SvcException failure, boolean isRepeatable) {
    if (failure instanceof UnreachableException) return isRepeatable || !((UnreachableException) failure).wasSent();
    if (!(failure instanceof ApiException)) return false;
    int status = ((ApiException) failure).status();
    return NOT_DONE.contains(status) || (isRepeatable && status >= 500);
  }
}
