package svc.visitor.client;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.http.HttpClient;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import svc.visitor.client.Types.EventDetailBody;
import svc.visitor.client.Types.IdentifyBody;
import svc.visitor.client.Types.IdentifyHeaders;
import svc.visitor.client.Types.ListChangesQuery;
import svc.visitor.client.Types.ListEventsQuery;
import svc.visitor.client.Types.UpdateEventBody;

/** What the library sends over loopback, and what it makes of the responses: {@code java Sending} prints what differs. */
final class Sending {
  private static final Duration NONE = Duration.ZERO;
  private static final List<String> FAULTS = new ArrayList<>();

  private Sending() {}

  /** A server whose responses are told by the number of the request. */
  private interface Respond {
    void to(HttpExchange exchange, int number) throws IOException;
  }

  private static final class Server implements AutoCloseable {
    final HttpServer server;
    final List<HttpExchange> seen = new ArrayList<>();

    Server(Respond respond) throws IOException {
      server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
      server.setExecutor(Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
      }));
      server.createContext("/", exchange -> {
        int number;
        synchronized (seen) {
          seen.add(exchange);
          number = seen.size();
        }
        exchange.getRequestBody().readAllBytes();
        respond.to(exchange, number);
        exchange.close();
      });
      server.start();
    }

    String url() {
      return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    Client client() {
      return client(Duration.ofSeconds(20), 3);
    }

    Client client(Duration timeout, int attempts) {
      return new Client(url(), "svc_sk_key", timeout, new Retries(attempts, NONE, NONE, NONE), HttpClient.newBuilder());
    }

    @Override
    public void close() {
      server.stop(0);
    }
  }

  private static void send(HttpExchange exchange, int status, String text) throws IOException {
    byte[] content = text.getBytes(StandardCharsets.UTF_8);
    exchange.sendResponseHeaders(status, content.length == 0 ? -1 : content.length);
    exchange.getResponseBody().write(content);
  }

  private static void same(String what, Object found, Object expected) {
    if (!Objects.equals(found, expected)) FAULTS.add(what + ": " + found + ", not " + expected);
  }

  private static Throwable thrown(Callable<?> work) {
    try {
      work.call();
      return null;
    } catch (Exception error) {
      return error;
    }
  }

  public static void main(String[] arguments) throws Exception {
    retries();
    refusals();
    noResponses();
    lostConnections();
    unprintableHeaders();
    lateBodies();
    keys();
    identifiers();
    pages();
    bodies();
    addresses();
    json();
    FAULTS.forEach(System.out::println);
    System.out.println(FAULTS.size() + " faults");
    System.exit(FAULTS.isEmpty() ? 0 : 1);
  }

  private static void retry(boolean isRead, int attempts, Integer... statuses) throws IOException {
    List<Integer> first = Arrays.asList(statuses);
    Respond respond = (exchange, number) -> {
      exchange.getResponseHeaders().set("location", "/");
      send(exchange, number <= first.size() ? first.get(number - 1) : 200, "{}");
    };
    try (Server server = new Server(respond)) {
      Client client = server.client();
      Throwable failure = thrown(() -> isRead ? client.getHealth() : client.testWebhook("org", "whk"));
      String name = (isRead ? "a read after " : "a change after ") + first;
      same(name + " fails", failure != null, attempts <= first.size());
      if (failure != null) same(name, ((ApiException) failure).code(), "unexpected_response");
      same("attempts of " + name, server.seen.size(), attempts);
    }
  }

  private static void retries() throws IOException {
    retry(true, 2, 503);
    retry(true, 3, 500, 502);
    retry(false, 2, 429);
    retry(false, 1, 503);
    retry(true, 1, 404);
    retry(true, 1, 302);
    retry(true, 3, 503, 503, 503);
  }

  private static void refusals() throws IOException {
    String text = "{\"error\":{\"code\":\"rate_limited\",\"message\":\"Later.\",\"status\":429,\"details\":"
        + "[{\"field\":\"a\",\"issue\":\"too_long\",\"location\":\"body\"}]},\"request_id\":\"r1\"}";
    Respond respond = (exchange, number) -> {
      exchange.getResponseHeaders().set("x-request-id", "r1");
      exchange.getResponseHeaders().set("retry-after", "3600");
      send(exchange, 429, text);
    };
    try (Server server = new Server(respond)) {
      ApiException refused = (ApiException) thrown(() -> server.client().getHealth());
      same("status", refused.status(), 429);
      same("message", refused.getMessage(), "429 rate_limited: Later. (a: too_long)");
      same("request id", refused.requestId(), "r1");
      same("retry after", refused.retryAfterS(), 3600L);
      same("details", refused.details().get(0).issue(), "too_long");
      same("attempts", server.seen.size(), 1);
    }
  }

  private static void noResponses() throws IOException {
    for (String text : List.of("hello", "", "[1]", "null", "{\"error\":[]}")) {
      try (Server server = new Server((exchange, number) -> send(exchange, text.startsWith("{") ? 400 : 200, text))) {
        Throwable failure = thrown(() -> server.client().getHealth());
        same(text, failure instanceof ApiException ? ((ApiException) failure).code() : failure, "unexpected_response");
      }
    }
  }

  private static void lostConnections() throws IOException {
    Respond losing = (exchange, number) -> {
      if (number > 1) send(exchange, 200, "{\"request_id\":\"r1\",\"duplicate\":true}");
    };
    try (Server server = new Server(losing)) {
      same("request id", server.client().identify(new IdentifyBody()).requestId(), "r1");
      Set<String> keys = new HashSet<>();
      for (HttpExchange one : server.seen) keys.add(one.getRequestHeaders().getFirst("Idempotency-Key"));
      same("keys", keys.size(), 1);
      same("asks for the whole response", server.seen.get(1).getRequestHeaders().getFirst("x-svc-replay"), "full");
      same("attempts", server.seen.size(), 2);
    }
    try (Server server = new Server((exchange, number) -> {})) {
      Throwable lost = thrown(() -> server.client().testWebhook("org", "whk"));
      same("a lost change was sent", lost instanceof UnreachableException && ((UnreachableException) lost).wasSent(), true);
      same("its attempts", server.seen.size(), 1);
    }
    Server closed = new Server((exchange, number) -> {});
    closed.close();
    Throwable lost = thrown(() -> closed.client().testWebhook("org", "whk"));
    same("nothing was sent", lost instanceof UnreachableException && !((UnreachableException) lost).wasSent(), true);
    same("its address", lost.getMessage().startsWith("no response from " + closed.url() + ": "), true);
  }

  private static void unprintableHeaders() throws IOException {
    try (Server server = new Server((exchange, number) -> send(exchange, 200, "{}"))) {
      for (String key : List.of("50% M\u00fc \u20ac\r\nx: y", "M\u00f6")) {
        server.client().identify(new IdentifyBody(), new IdentifyHeaders().idempotencyKey(key));
      }
      List<String> sent = new ArrayList<>();
      for (HttpExchange one : server.seen) sent.add(one.getRequestHeaders().getFirst("Idempotency-Key"));
      same("keys", sent, List.of("50% M%C3%BC %E2%82%AC%0D%0Ax: y", "M%C3%B6"));
    }
  }

  private static void lateBodies() throws IOException {
    CountDownLatch released = new CountDownLatch(1);
    Respond respond = (exchange, number) -> {
      exchange.sendResponseHeaders(200, 0);
      exchange.getResponseBody().write('{');
      exchange.getResponseBody().flush();
      try {
        released.await();
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
      }
    };
    try (Server server = new Server(respond)) {
      Throwable late = thrown(() -> server.client(Duration.ofMillis(100), 2).getHealth());
      same("a body that never ends", late instanceof UnreachableException && ((UnreachableException) late).wasSent(), true);
      same("its attempts", server.seen.size(), 2);
      Thread.currentThread().interrupt();
      thrown(() -> server.client().getHealth());
      same("an interrupted thread stays so", Thread.interrupted(), true);
    } finally {
      released.countDown();
    }
  }

  private static void keys() throws IOException {
    try (Server server = new Server((exchange, number) -> send(exchange, 200, "{}"))) {
      new Client(server.url() + "/api/v1/", " svc_sk_key\n").getHealth();
      same("path", server.seen.get(0).getRequestURI().toString(), "/api/v1/healthz");
      same("key", server.seen.get(0).getRequestHeaders().getFirst("x-api-key"), "svc_sk_key");
    }
    for (String wrong : Arrays.asList("", "svc_sk_one\nsvc_sk_two", "svc_sk_\u00e9", null)) {
      Throwable refused = thrown(() -> new Client("http://127.0.0.1:1", wrong));
      same("a wrong key is not repeated", refused != null && !refused.getMessage().contains("sk_o"), true);
    }
    for (String wrong : new String[] {"https://", "https://[::1", "https://x y"}) {
      same(wrong, thrown(() -> new Client(wrong, "svc_sk_key")) instanceof IllegalArgumentException, true);
    }
    String said = thrown(() -> new Client("id.shop.example", "svc_sk_key")).getMessage();
    same("a wrong address", said.endsWith("not id.shop.example"), true);
    Throwable named = thrown(() -> new Client("https://user:secret@id.shop.example", "svc_sk_key"));
    same("a password", named instanceof IllegalArgumentException && !named.getMessage().contains("secret"), true);
  }

  private static void identifiers() throws IOException {
    try (Server server = new Server((exchange, number) -> send(exchange, 200, "{}"))) {
      Client client = server.client();
      for (String wrong : Arrays.asList("", ".", "..", "half\ud83d", null)) {
        String said = String.valueOf(thrown(() -> client.getVisitor(wrong)));
        same("identifier " + wrong, said.contains("not an identifier"), true);
      }
      Throwable half = thrown(() -> client.listEvents(new ListEventsQuery().tag("half\ud83d")));
      same("half of a character in a query", half instanceof IllegalArgumentException, true);
      client.listAccountNotes("{}", "a/../b?c=d#e 1");
      String path = "/api/v1/management/organizations/%7B%7D/accounts/a%2F..%2Fb%3Fc%3Dd%23e%201/notes";
      same("path", server.seen.get(0).getRequestURI().toString(), path);
    }
  }

  private static void pages() throws IOException {
    String page = "{\"rows\":[],\"changes\":[],\"next_cursor\":\"c\",\"has_more\":false}";
    try (Server server = new Server((exchange, number) -> send(exchange, 200, page))) {
      Client client = server.client();
      client.iterateFeed(new ListEventsQuery(), false).iterator().next();
      client.iterateFeed(new ListEventsQuery().limit(7), false).iterator().next();
      client.iterateChanges(new ListChangesQuery(), false).iterator().next();
      client.iterateChanges(new ListChangesQuery().limit(7), false).iterator().next();
      List<String> limits = new ArrayList<>();
      for (HttpExchange one : server.seen) limits.add(one.getRequestURI().getQuery().replaceFirst(".*limit=([0-9]+).*", "$1"));
      same("limits of pages", limits, List.of("200", "7", "200", "7"));
    }
  }

  private static void bodies() {
    same("a body", new UpdateEventBody().accountId("a").tag(null).toString(), "{\"account_id\":\"a\",\"tag\":null}");
    EventDetailBody event = new EventDetailBody(Body.fieldsOf(Json.read("{\"future\":[1.5],\"identifiable\":1}")));
    same("an unknown field", event.get("future"), List.of(1.5));
    same("a field that is left out", event.tag(), null);
    same("a field of another kind", thrown(event::identifiable) instanceof SvcException, true);
  }

  private static void addresses() {
    String now = Instant.now().toString();
    EventDetailBody event = new EventDetailBody(
        Body.fieldsOf(Json.read("{\"request_id\":\"r1\",\"occurred_at\":\"" + now + "\",\"ip_address\":\"127.0.0.1\",\"platform\":\"web\","
            + "\"identifiable\":true,\"visitor_confidence\":100}")));
    for (String ip : List.of("", "nowhere", "127.0.0.1:80", "localhost", "256.0.0.1", "1:2", "cafe", ":::1", "1.2.3")) {
      Throwable refused = thrown(() -> Checks.problemsWith(event, new Action(null, ip, null), "r1"));
      same("address " + ip, refused instanceof IllegalArgumentException, true);
    }
  }

  private static void json() {
    List<String> wrong = List.of(
        "", "{", "[1,]", "{\"a\":1,}", "{a:1}", "01", "1.", ".5", "+1", "-", "1e", "nul", "\"\\x\"", "\"\\u00g0\"", "\"a",
        "\"\n\"", "[1 2]", "1 2", "'a'", "NaN", "\"\\u00", "\"\\u\uff10\uff10\uff10\uff10\"", "[".repeat(101) + "]".repeat(101), "\"\\ud83d\"");
    for (String text : wrong) same(text, thrown(() -> Json.read(text)) instanceof IllegalArgumentException, true);
    List<String> right = List.of(
        "{}", "[]", "null", "[true,false]", "-0.5", "1.0E10", "9223372036854775807", "{\"a\":{\"b\":[1,\"\\u00e9\\ud83d\\ude00\"]}}",
        "\"\\\"\\\\\\u0000\"", "[".repeat(100) + "]".repeat(100));
    for (String text : right) same(text, Json.write(Json.read(" " + text + "\n")), text);
    same("a long number", Json.read("123456789012345678901234567890"), 123456789012345678901234567890.0);
    same("escapes", Json.read("\"\\/\\b\\f\\n\\r\\t\""), "/\b\f\n\r\t");
    same("no form", thrown(() -> Json.write(Double.NaN)) instanceof IllegalArgumentException, true);
  }
}
