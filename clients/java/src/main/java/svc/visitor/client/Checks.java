package svc.visitor.client;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import java.util.regex.Pattern;

/** The checks of the backend guide: whether an identification belongs to an action, and what to do about its verdict. */
final class Checks {
  static final Duration MAX_AGE = Duration.ofMinutes(5);
  static final Duration CLOCK_SKEW = Duration.ofSeconds(30);
  private static final long KNOWN_CONFIDENCE = 90;
  private static final Pattern REQUEST_ID = Pattern.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}");
  private static final String OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  private static final Pattern ADDRESS =
      Pattern.compile(OCTET + "(?:\\." + OCTET + "){3}|(?=[^:]*:[^:]*:)[0-9A-Fa-f:.]{2,45}");

  private Checks() {}

  static boolean isRequestId(String value) {
    return value != null && REQUEST_ID.matcher(value).matches();
  }

  /** The first check that fails, but for the first use, which only a memory can tell. */
  static String problemWith(Types.EventDetailBody event, Action action) {
    Instant occurred;
    try {
      occurred = Instant.parse(event.occurredAt());
    } catch (DateTimeException noTime) {
      return "too_old";
    }
    Duration age = Duration.between(occurred, action.time());
    if (age.compareTo(CLOCK_SKEW.negated()) <= 0 || age.compareTo(MAX_AGE) >= 0) return "too_old";
    return difference(event, action);
  }

  /** What of an event or a verdict is of another action than this one; null where nothing is. */
  static String difference(Body seen, Action action) {
    if (!Objects.equals(seen.textAt("origin"), action.origin)) return "other_origin";
    if (action.ip != null && !address(seen.textAt("ip_address")).equals(address(action.ip))) return "other_address";
    if (!Objects.equals(seen.textAt("tag"), action.tag)) return "other_tag";
    if (action.accountId != null && !action.accountId.equals(seen.textAt("account_id"))) return "other_account";
    if (action.action != null && !action.action.equals(seen.textAt("action"))) return "other_action";
    if (action.platform != null && !action.platform.equals(seen.textAt("platform"))) return "other_platform";
    return action.isProven && !Boolean.TRUE.equals(seen.flagAt("proven")) ? "unproven" : null;
  }

  static Decision decide(Body seen) {
    String level = seen.textAt("suspect_level"); // null: the report could not be scored
    if ("high".equals(level)) return Decision.REFUSE;
    Long confidence = seen.integerAt("visitor_confidence");
    boolean isKnown =
        Boolean.TRUE.equals(seen.flagAt("identifiable")) && confidence != null && confidence >= KNOWN_CONFIDENCE;
    return "low".equals(level) && isKnown ? Decision.ACCEPT : Decision.VERIFY;
  }

  /** An address in one form, whatever the notation; IPv4 inside IPv6 is IPv4. No name is looked up. */
  private static InetAddress address(String text) {
    String plain = text.replaceFirst("%.*$", "");
    if (ADDRESS.matcher(plain).matches()) {
      try {
        return InetAddress.getByName(plain);
      } catch (UnknownHostException noAddress) {
        // as below
      }
    }
    throw new IllegalArgumentException('"' + text + "\" is no address");
  }
}
