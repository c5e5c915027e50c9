package svc.visitor.client;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;

/**
 * What an operation asks of the service. The methods of {@link Client} make it; one of your own reaches what this
 * version of the library does not know.
 */
public final class Call {
  final String method;
  final String path;
  final Map<String, String> query = new LinkedHashMap<>();
  final Map<String, String> headers = new LinkedHashMap<>();
  Body body;
  boolean isRepeatable;

  /**
   * The pattern is below {@code /api/v1}, with {@code {}} for each segment. Throws {@code IllegalArgumentException} for a
   * segment that would lead to another path.
   */
  public Call(String method, String pattern, String... segments) {
    String made = pattern;
    for (String segment : segments) {
      if (segment == null || segment.isEmpty() || segment.equals(".") || segment.equals("..")) {
        throw new IllegalArgumentException('"' + String.valueOf(segment) + "\" is not an identifier");
      }
      // Brackets are escaped, so that no segment is a place for the next one.
      int place = made.indexOf("{}");
      made = made.substring(0, place) + escaped(segment) + made.substring(place + 2);
    }
    this.method = method;
    this.path = made;
  }

  /** Throws {@code IllegalArgumentException} for half of a surrogate pair, in whose place a question mark would be sent. */
  static String escaped(String text) {
    if (!StandardCharsets.UTF_8.newEncoder().canEncode(text)) {
      throw new IllegalArgumentException("half of a surrogate pair is not an identifier or a filter");
    }
    return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
  }

  /** Sends a body as JSON. */
  public Call body(Body sent) {
    body = sent;
    return this;
  }

  /** Sends fields that are not null in the query. */
  public Call query(Body sent) {
    put(sent, query);
    return this;
  }

  /** Sends fields that are not null as headers. */
  public Call headers(Body sent) {
    put(sent, headers);
    return this;
  }

  private static void put(Body sent, Map<String, String> place) {
    sent.fields().forEach((name, value) -> {
      if (value != null) place.put(name, value.toString());
    });
  }

  /** Says that sending it twice does no more than sending it once. */
  public Call repeatable() {
    isRepeatable = true;
    return this;
  }

  /** A value of a header with what is not of ASCII percent-encoded, so that each text has a value of its own. */
  static String printable(String value) {
    StringBuilder made = new StringBuilder();
    for (byte one : value.getBytes(StandardCharsets.UTF_8)) {
      if (one < ' ' || one > '~') made.append(String.format("%%%02X", one));
      else made.append((char) one);
    }
    return made.toString();
  }

  /**
   * With a random key unless it has one, so that the attempts of one call are one identification, and the last one has the
   * whole response.
   */
  Call idempotent() {
    headers.putIfAbsent("x-svc-replay", "full");
    headers.putIfAbsent("Idempotency-Key", UUID.randomUUID().toString());
    return this;
  }
}
