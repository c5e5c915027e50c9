package svc.visitor.client;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/** What a server passes on of a visitor's request, when it identifies with a secret or proxy key. */
public final class VisitorHeaders {
  private static final int MAX_BYTES = 2_048;

  private VisitorHeaders() {}

  /**
   * The value of {@code IdentifyHeaders.visitorHeaders}, from the headers of a visitor's request, in any case: its {@code
   * accept-language}, {@code sec-ch-ua...} and {@code sec-fetch-...}. A header with which it would be longer than the service
   * takes is left out; no browser sends such.
   *
   * <p>Without it the service cannot tell a browser from a program that copied a report.
   */
  public static String of(Map<String, String> headers) {
    Map<String, Object> found = new LinkedHashMap<>();
    headers.forEach((name, value) -> {
      String lowered = name.toLowerCase(Locale.ROOT);
      if (!lowered.matches("accept-language|sec-ch-ua.*|sec-fetch-.*")) return;
      Map<String, Object> longer = new LinkedHashMap<>(found);
      longer.put(lowered, value);
      if (Json.write(longer).length() <= MAX_BYTES) found.put(lowered, value);
    });
    return Json.write(found);
  }
}
