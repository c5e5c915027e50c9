package svc.visitor.client;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/** The checks of the backend guide: whether an identification belongs to an action, and what to do about its verdict. */
final class Checks {
  static final Duration MAX_AGE = Duration.ofMinutes(5);
  static final Duration CLOCK_SKEW = Duration.ofSeconds(30);
  private static final long KNOWN_CONFIDENCE = 90;
  /** Problems that honest visitors have, too: they ask for a second factor. */
  private static final Set<String> WEAK = Set.of("other_address", "other_network", "unproven");
  private static final Pattern REQUEST_ID = Pattern.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}");
  private static final Pattern TIME = Pattern.compile(
      "[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}(?:\\.[0-9]{1,9})?"
          + "(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])");
  private static final String OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  private static final String IPV4 = OCTET + "(?:\\." + OCTET + "){3}";
  private static final String GROUP = "[0-9A-Fa-f]{1,4}";
  /** Of IPv6 what {@code InetAddress} judges further: groups, of which the last two may be an address of IPv4. */
  private static final Pattern ADDRESS = Pattern.compile(
      IPV4 + "|(?=[^:]*:[^:]*:)(?::|" + GROUP + ")?(?::(?:" + GROUP + ")?){0,8}(?:(?<=:)" + IPV4 + ")?");

  private Checks() {}

  static boolean isRequestId(String value) {
    return value != null && REQUEST_ID.matcher(value).matches();
  }

  /**
   * The first strong problem alone, else every weak one; the first use is left out, which only a memory can tell. Throws
   * {@code IllegalArgumentException} where the action's address is none, and {@code ApiException} where what was read has not
   * the form of an event, or is another one than {@code requestId}.
   */
  static List<String> problemsWith(Types.EventDetailBody event, Action action, String requestId) {
    boolean isEvent = hasForm(event, List.of("request_id", "occurred_at"), List.of());
    Instant occurred = isEvent && event.requestId().equals(requestId) ? time(event.occurredAt()) : null;
    if (occurred == null) throw ApiException.unexpected(200, null, null);
    Duration age = Duration.between(occurred, action.time());
    if (age.compareTo(CLOCK_SKEW.negated()) <= 0 || age.compareTo(MAX_AGE) >= 0) return List.of("too_old");
    return differences(event, action);
  }

  /** What of an event or a verdict is of another action than this one, as of {@link #problemsWith}. */
  static List<String> differences(Body seen, Action action) {
    List<String> weak = new ArrayList<>();
    if (action.ip != null) {
      InetAddress one = address(seen.textAt("ip_address"));
      InetAddress other = address(action.ip);
      if (action.isNetworkEnough ? !isOneNetwork(one.getAddress(), other.getAddress()) : !one.equals(other)) {
        weak.add(action.isNetworkEnough ? "other_network" : "other_address");
      }
    }
    if (!orEmpty(seen.textAt("origin")).equals(orEmpty(action.origin))) return List.of("other_origin");
    if (!orEmpty(seen.textAt("tag")).equals(orEmpty(action.tag))) return List.of("other_tag");
    if (action.accountId != null && !action.accountId.equals(seen.textAt("account_id"))) return List.of("other_account");
    if (action.action != null && !action.action.equals(seen.textAt("action"))) return List.of("other_action");
    if (action.platform != null && !action.platform.equals(seen.textAt("platform"))) return List.of("other_platform");
    if (action.isProven && !Boolean.TRUE.equals(seen.get("proven"))) weak.add("unproven");
    return weak;
  }

  /** Whether what the checks read of an event or a verdict is there, and of its kind; so are more texts and integers. */
  static boolean hasForm(Body seen, List<String> texts, List<String> integers) {
    try {
      address(seen.textAt("ip_address"));
      for (String name : List.of("origin", "tag", "account_id", "action", "suspect_level")) seen.textAt(name);
      Types.DecisionBody rule = seen.bodyAt("decision", Types.DecisionBody::new);
      return isText(seen.get("platform"))
          && seen.flagAt("identifiable") != null
          && Json.isWhole(seen.get("visitor_confidence"))
          && texts.stream().allMatch(name -> isText(seen.get(name)))
          && integers.stream().allMatch(name -> Json.isWhole(seen.get(name)))
          && (rule == null || (rule.action() != null && rule.rule() != null));
    } catch (SvcException | IllegalArgumentException ofAnotherKind) {
      return false;
    }
  }

  static boolean isText(Object value) {
    return value instanceof String && !((String) value).isEmpty();
  }

  /** An empty text is none. */
  private static String orEmpty(String text) {
    return text == null ? "" : text;
  }

  /** A time of RFC 3339, to a millisecond; null for any other text. */
  private static Instant time(String text) {
    if (!TIME.matcher(text).matches()) return null;
    try {
      return OffsetDateTime.parse(text).toInstant().truncatedTo(ChronoUnit.MILLIS);
    } catch (DateTimeException noTime) {
      return null;
    }
  }

  /** Whether an identification counts for its action, at once or after a second factor: then it is used. */
  static boolean mayCount(List<String> problems) {
    return WEAK.containsAll(problems);
  }

  /** What speaks against accepting an event or a verdict: its name, and what it asks for, the strictest first. */
  static Map<String, Decision> against(List<String> problems, Body seen, boolean allowsUnknown) {
    Map<String, Decision> asking = new LinkedHashMap<>();
    if (seen == null || !mayCount(problems)) {
      asking.put(problems.isEmpty() ? "not_found" : problems.get(0), Decision.REFUSE);
      return asking;
    }
    Map<String, Decision> found = new LinkedHashMap<>();
    Types.DecisionBody rule = seen.bodyAt("decision", Types.DecisionBody::new);
    if (rule != null && !List.of("allow", "review").contains(rule.action())) { // one of tomorrow is no reason to accept
      (rule.action().equals("block") ? found : asking)
          .put("rule:" + rule.rule(), rule.action().equals("block") ? Decision.REFUSE : Decision.VERIFY);
    }
    String level = seen.textAt("suspect_level");
    if (level == null) asking.put("not_scored", Decision.VERIFY);
    else if (level.equals("high")) found.put("level:high", Decision.REFUSE);
    else if (!level.equals("low")) asking.put("level:" + level, Decision.VERIFY);
    for (String problem : problems) asking.put(problem, Decision.VERIFY);
    if (!Boolean.TRUE.equals(seen.flagAt("identifiable"))) asking.put("not_identifiable", Decision.VERIFY);
    Long confidence = seen.integerAt("visitor_confidence");
    boolean isKnown = confidence != null && confidence >= KNOWN_CONFIDENCE;
    if (!allowsUnknown && !isKnown) asking.put("not_known", Decision.VERIFY);
    found.putAll(asking);
    return found;
  }

  static Decision strictest(Map<String, Decision> against) {
    return against.isEmpty() ? Decision.ACCEPT : against.values().iterator().next();
  }

  /** Whether the /24 of IPv4 or the /48 of IPv6 is the same. */
  private static boolean isOneNetwork(byte[] one, byte[] other) {
    int bytes = one.length == 4 ? 3 : 6;
    return one.length == other.length && Arrays.equals(one, 0, bytes, other, 0, bytes);
  }

  /** An address in one form, whatever the notation; IPv4 inside IPv6 is IPv4. No name is looked up. */
  private static InetAddress address(String text) {
    String whole = String.valueOf(text);
    int zone = whole.indexOf('%');
    String plain = zone < 0 ? whole : whole.substring(0, zone);
    boolean isZone = zone < 0 || (plain.contains(":") && zone == whole.lastIndexOf('%') && zone + 1 < whole.length());
    if (isZone && ADDRESS.matcher(plain).matches()) {
      try {
        return InetAddress.getByName(plain);
      } catch (UnknownHostException noAddress) {
        // as below
      }
    }
    throw new IllegalArgumentException('"' + text + "\" is not an address");
  }
}
