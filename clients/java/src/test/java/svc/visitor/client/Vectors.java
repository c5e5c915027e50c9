package svc.visitor.client;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import svc.visitor.client.Types.DetailBody;
import svc.visitor.client.Types.EventDetailBody;
import svc.visitor.client.Types.JwkBody;

/** Runs the cases that every library passes: {@code java Vectors FOLDER} prints how many, and what differs. */
final class Vectors {
  private Vectors() {}

  public static void main(String[] arguments) throws IOException {
    List<String> faults = new ArrayList<>();
    int count = 0;
    for (String name : List.of("webhook", "verdict", "check")) count += run(Path.of(arguments[0], name + ".json"), faults);
    System.out.println(count + " cases, " + faults.size() + " faults");
    faults.forEach(System.out::println);
    System.exit(faults.isEmpty() ? 0 : 1);
  }

  /** How many cases a file has; adds to {@code faults} what is not as expected. */
  static int run(Path file, List<String> faults) throws IOException {
    List<?> cases = (List<?>) Body.fieldsOf(Json.read(Files.readString(file))).get("cases");
    for (Object one : cases) {
      Map<String, Object> fields = Body.fieldsOf(one);
      Object found = concluded((String) fields.get("kind"), Body.fieldsOf(fields.get("given")));
      Object expected = fields.get("expect");
      if (expected instanceof Long) expected = ((Long) expected).doubleValue();
      if (!Objects.equals(found, expected)) faults.add(fields.get("name") + ": " + found + ", not " + expected);
    }
    return cases.size();
  }

  private static Object concluded(String kind, Map<String, Object> given) {
    switch (kind) {
      case "webhook":
        return received(given);
      case "verdict":
        return verdict(given);
      case "check":
        EventDetailBody event = new EventDetailBody(Body.fieldsOf(given.get("event")));
        Action action = action(Body.fieldsOf(given.get("action")), given);
        List<String> problems;
        try {
          problems = Checks.problemsWith(event, action);
        } catch (ApiException refused) {
          return Map.of("error", refused.code());
        }
        boolean isAgain = Checks.mayCount(problems) && Boolean.FALSE.equals(given.get("is_first"));
        return told(new Checked<>(isAgain ? List.of("used_before") : problems, event, action.allowsUnknown));
      case "message":
        return message(given);
      case "wait":
        return waited(given);
      case "visitor_headers":
        Map<String, String> headers = new LinkedHashMap<>();
        given.forEach((name, value) -> headers.put(name, (String) value));
        String made = VisitorHeaders.of(headers);
        return made.matches("[ -~]{0,2048}") ? Json.read(made) : "what cannot be sent";
      default:
        throw new IllegalArgumentException("there is no kind " + kind);
    }
  }

  private static String message(Map<String, Object> given) {
    List<DetailBody> details = new ArrayList<>();
    for (Object one : (List<?>) given.get("details")) details.add(new DetailBody(Body.fieldsOf(one)));
    int status = ((Long) given.get("status")).intValue();
    return new ApiException(status, (String) given.get("code"), (String) given.get("message"), details, null, null).getMessage();
  }

  private static Object received(Map<String, Object> given) {
    Map<String, Object> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    headers.putAll(Body.fieldsOf(given.get("headers")));
    List<String> secrets = new ArrayList<>();
    for (Object secret : (List<?>) given.get("secrets")) secrets.add((String) secret);
    byte[] body = Base64.getDecoder().decode((String) given.get("body"));
    Instant now = Instant.ofEpochSecond((Long) given.get("now_s"));
    try {
      return Webhooks.verify(body, name -> (String) headers.get(name), secrets, now).data().get("message");
    } catch (WebhookException notAuthentic) {
      return null;
    }
  }

  private static Object verdict(Map<String, Object> given) {
    KeyRing ring = new KeyRing();
    List<JwkBody> keys = new ArrayList<>();
    for (Object key : (List<?>) given.get("keys")) keys.add(new JwkBody(Body.fieldsOf(key)));
    ring.put(keys, 0);
    Map<String, Object> expected = Body.fieldsOf(given.get("expected"));
    String organization = (String) expected.get("organization_id");
    String environment = (String) expected.get("environment");
    return told(ring.check((String) given.get("token"), organization, environment, action(expected, given)));
  }

  private static Action action(Map<String, Object> about, Map<String, Object> given) {
    Action action = new Action((String) about.get("origin"), (String) about.get("ip"), (String) about.get("tag"));
    action.account((String) about.get("account_id")).action((String) about.get("action"));
    action.platform((String) about.get("platform")).now(Instant.ofEpochMilli((Long) given.get("now_ms")));
    if (Boolean.TRUE.equals(about.get("same_network"))) action.sameNetwork();
    if (Boolean.TRUE.equals(about.get("allow_unknown"))) action.allowUnknown();
    return Boolean.TRUE.equals(about.get("proven")) ? action.proven() : action;
  }

  private static Map<String, Object> told(Checked<?> checked) {
    Map<String, Object> made = new LinkedHashMap<>();
    made.put("problem", checked.problem());
    made.put("decision", checked.decision().name().toLowerCase());
    made.put("reasons", checked.reasons());
    return made;
  }

  private static Object waited(Map<String, Object> given) {
    Object failure = given.get("failure");
    Long after = (Long) given.get("retry_after_s");
    SvcException error =
        failure instanceof Long
            ? new ApiException(((Long) failure).intValue(), "code", "message", List.of(), null, after)
            : new UnreachableException("lost", failure.equals("lost"), null);
    int attempts = ((Long) given.get("attempts")).intValue();
    int attempt = ((Long) given.get("attempt")).intValue();
    double random = ((Number) given.get("random")).doubleValue();
    return Retries.of(attempts).waitMs(error, attempt, (Boolean) given.get("is_repeatable"), random);
  }
}
