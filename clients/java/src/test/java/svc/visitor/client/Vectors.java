package svc.visitor.client;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.http.HttpClient;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import svc.visitor.client.Types.DetailBody;
import svc.visitor.client.Types.EventDetailBody;
import svc.visitor.client.Types.ListEventsQuery;

/** Runs the cases that every library passes: {@code java Vectors FOLDER} prints how many, and what differs. */
final class Vectors {
  private static final String REQUEST_ID = "01993f0e-52a1-7c3d-9b52-6f1f3c0a9d11";
  private static Map<String, Object> answer;
  private static HttpServer service;
  private static Client client;

  private Vectors() {}

  private static HttpServer serving() throws IOException {
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext("/", exchange -> {
      exchange.getResponseHeaders().set("connection", "close"); // none waits for an acknowledgment
      byte[] body = Base64.getDecoder().decode((String) answer.get("body"));
      Body.fieldsOf(answer.getOrDefault("headers", Map.of()))
          .forEach((name, value) -> exchange.getResponseHeaders().set(name, (String) value));
      int status = ((Long) answer.getOrDefault("status", 200L)).intValue();
      exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
      exchange.getResponseBody().write(body);
      exchange.close();
    });
    server.setExecutor(Executors.newSingleThreadExecutor(task -> {
      Thread thread = new Thread(task);
      thread.setDaemon(true);
      return thread;
    }));
    server.start();
    return server;
  }

  /** What comes of a response. */
  private static Object answered(String kind, Map<String, Object> given) {
    answer = given;
    if (client == null || kind.equals("keys")) { // keys are kept
      String url = "http://127.0.0.1:" + service.getAddress().getPort();
      client = new Client(url, "svc_sk_key", Duration.ofSeconds(20), Retries.of(1), HttpClient.newBuilder());
    }
    try {
      if (kind.equals("event")) {
        Action action = action(Body.fieldsOf(given.get("action")), given);
        return told(client.check(REQUEST_ID, action, id -> true));
      }
      if (kind.equals("keys")) {
        Map<String, Object> expected = Body.fieldsOf(given.get("expected"));
        String organization = (String) expected.get("organization_id");
        String environment = (String) expected.get("environment");
        String token = (String) given.get("token");
        return told(client.checkVerdict(token, organization, environment, action(expected, given), id -> true));
      }
      if (kind.equals("page")) {
        List<String> ids = new ArrayList<>();
        client.iterateEvents(new ListEventsQuery()).forEach(row -> ids.add(row.requestId()));
        return ids;
      }
      return client.getHealth().toString();
    } catch (ApiException refused) {
      if (!kind.equals("refusal")) return Map.of("error", refused.code());
      Map<String, Object> made = new LinkedHashMap<>();
      made.put("code", refused.code());
      made.put("retry_after_s", refused.retryAfterS());
      return made;
    } catch (IllegalArgumentException wrong) {
      return Map.of("error", "argument");
    }
  }

  public static void main(String[] arguments) throws IOException {
    List<String> faults = new ArrayList<>();
    service = serving();
    int count = 0;
    for (String name : List.of("webhook", "verdict", "check", "responses")) count += run(Path.of(arguments[0], name + ".json"), faults);
    service.stop(0);
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
          problems = Checks.problemsWith(event, action, REQUEST_ID);
        } catch (ApiException refused) {
          return Map.of("error", refused.code());
        }
        boolean isAgain = Checks.mayCount(problems) && Boolean.FALSE.equals(given.get("is_first"));
        return told(new Checked<>(isAgain ? List.of("used_before") : problems, event, action.allowsUnknown));
      case "retry_after":
        Instant now = Instant.ofEpochMilli((Long) given.get("now_ms"));
        Long seconds = Retries.retryAfterS((String) given.get("value"), now);
        return seconds == null ? null : seconds.doubleValue();
      case "event":
      case "keys":
      case "page":
      case "refusal":
        return answered(kind, given);
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
    Map<String, Object> expected = Body.fieldsOf(given.get("expected"));
    String organization = (String) expected.get("organization_id");
    String environment = (String) expected.get("environment");
    String token = (String) given.get("token");
    String before = ring.check(token, organization, environment, action(expected, given)).problem();
    if (!before.equals("invalid")) throw new AssertionError(before + " before any key was read");
    ring.put(given.get("keys"), 0);
    return told(ring.check(token, organization, environment, action(expected, given)));
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
