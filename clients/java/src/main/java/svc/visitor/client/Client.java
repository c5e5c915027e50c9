package svc.visitor.client;

import java.net.URI;
import java.net.URISyntaxException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.StringJoiner;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;
import javax.net.ssl.SSLHandshakeException;
import svc.visitor.client.Types.ChangesAnswer;
import svc.visitor.client.Types.EventBody;
import svc.visitor.client.Types.EventDetailBody;
import svc.visitor.client.Types.EventsAnswer;
import svc.visitor.client.Types.ListChangesQuery;
import svc.visitor.client.Types.ListEventsQuery;

/** Calls the service with one key, and waits. Threads may share one. */
public final class Client extends Operations {
  /** Of this library. */
  public static final String VERSION = "0.3.0";

  private static final String BASE = "/api/v1";
  private static final double FEED_WAIT_MS = 1_000;

  /** Of the feed and of changes, where the caller gives none. */
  private static final int PAGE_LIMIT = 200;

  private static final Duration DEADLINE = Duration.ofSeconds(15);

  /** Of the body of a response. */
  private static final int MAX_BYTES = 16 << 20;

  private final String baseUrl;
  private final String apiKey;
  private final Duration timeout;
  private final Duration deadline;
  private final Retries retries;
  private final HttpClient http;
  private final Map<String, KeyRing> rings = new ConcurrentHashMap<>();

  /**
   * With 5 seconds for each of three attempts. {@code baseUrl} is where the service is, without {@code /api/v1}. Throws
   * {@code IllegalArgumentException} for what is no address or key.
   */
  public Client(String baseUrl, String apiKey) {
    this(baseUrl, apiKey, Duration.ofSeconds(5), Retries.of(3), HttpClient.newBuilder());
  }

  /**
   * With a time limit of each attempt, and a client of HTTP as it is built here: for a proxy or an authority of your own. It
   * never follows redirects. A call ends within 15 seconds.
   */
  public Client(String baseUrl, String apiKey, Duration timeout, Retries retries, HttpClient.Builder http) {
    this(baseUrl, apiKey, timeout, DEADLINE, retries, http);
  }

  private static boolean hasHost(String address) {
    try {
      return new URI(address).getHost() != null;
    } catch (URISyntaxException broken) {
      return false;
    }
  }

  /** As above, with a time limit of all attempts of a call and the waits between them, too. */
  public Client(
      String baseUrl, String apiKey, Duration timeout, Duration deadline, Retries retries, HttpClient.Builder http) {
    if (baseUrl == null || !baseUrl.matches("https?://.+") || !hasHost(baseUrl)) {
      throw new IllegalArgumentException(
          "baseUrl is the address of the service, such as https://id.shop.example, not " + baseUrl);
    }
    if (URI.create(baseUrl).getRawUserInfo() != null) {
      throw new IllegalArgumentException("baseUrl has a user name or a password, which are not sent");
    }
    this.baseUrl = baseUrl.replaceFirst("/+$", "").replaceFirst(BASE + "$", "");
    this.apiKey = apiKey == null ? "" : apiKey.strip();
    if (!this.apiKey.matches("[!-~]+")) {
      throw new IllegalArgumentException(
          "apiKey is empty, or has characters that no key has: svc_sk_... as it was issued");
    }
    this.timeout = timeout;
    this.deadline = deadline;
    this.retries = retries;
    this.http = http.version(HttpClient.Version.HTTP_1_1).followRedirects(HttpClient.Redirect.NEVER).build();
  }

  /**
   * Reads an event with a secret key, checks that it belongs to the action that is being served, and decides: act on {@link
   * Checked#decision}, and log {@link Checked#reasons}.
   *
   * <p>{@code requestId} is from the visitor's client: anything at all. {@code isFirstUse} stores the id and says whether it
   * was new: a unique key in your database. It is called last, for an event that counts for this action, at once or after a
   * second factor.
   *
   * <p>Throws {@link ApiException} and {@link UnreachableException}: decide beforehand what goes on without a verdict. Throws
   * {@code IllegalArgumentException} where the action's address is none.
   */
  public Checked<EventDetailBody> check(String requestId, Action action, Predicate<String> isFirstUse) {
    EventDetailBody event = eventOf(requestId);
    List<String> problems = event == null ? List.of("not_found") : Checks.problemsWith(event, action, requestId);
    if (Checks.mayCount(problems) && !isFirstUse.test(requestId)) problems = List.of("used_before");
    return new Checked<>(problems, event, action.allowsUnknown);
  }

  private EventDetailBody eventOf(String requestId) {
    if (!Checks.isRequestId(requestId)) return null;
    try {
      return getEvent(requestId);
    } catch (ApiException refused) {
      if (List.of("event_not_found", "invalid_request_id").contains(refused.code())) return null;
      throw refused;
    }
  }

  /**
   * Checks a signed verdict that the visitor's client handed over: its signature, age, environment, and that it belongs to
   * the action that is being served. Asks the service for the organization's keys once an hour, and for nothing else;
   * {@code isFirstUse} and the exceptions are those of {@link #check}. Needs Java 15, or a provider of Ed25519.
   *
   * <p>The account is the one that the identify request named: what {@code updateEvent} sets afterwards is not in a verdict.
   */
  public Checked<Verdict> checkVerdict(
      String token, String organizationId, String environment, Action action, Predicate<String> isFirstUse) {
    KeyRing ring = rings.computeIfAbsent(organizationId, id -> new KeyRing());
    if (ring.mustBeRead(token, System.nanoTime())) ring.put(getVerdictKeys(organizationId).get("keys"), System.nanoTime());
    Checked<Verdict> checked = ring.check(token, organizationId, environment, action);
    boolean isAgain = checked.mayCount() && !isFirstUse.test(checked.found().requestId());
    return isAgain ? new Checked<>(List.of("used_before"), checked.found(), action.allowsUnknown) : checked;
  }

  /** What to do with an event that belongs to its action, as {@link Checked#decision} of a log-in. */
  public static Decision decide(EventDetailBody event) {
    return Checks.strictest(Checks.against(List.of(), event, false));
  }

  /**
   * Every event of a list, newest first, page after page; {@code next} throws as {@code listEvents} does. One that is
   * corrupt in the store has {@code requestId} and {@code error} alone.
   */
  public Iterable<EventBody> iterateEvents(ListEventsQuery query) {
    return () -> new Pages(new ListEventsQuery(query));
  }

  /**
   * The pages of the feed, oldest first: each event once, behind {@code after} of the query or else from the oldest on. Store
   * {@code nextCursor} of a page together with what you made of its rows, and begin with it as {@code after}. At the end it waits
   * for a second and looks again; without {@code follow} it ends. Filters on what may change later are refused: {@code accountId},
   * {@code action}, {@code tag} and {@code label}. {@code next} throws as {@code listEvents} does, and {@code
   * IllegalStateException} where the thread is interrupted while it waits.
   */
  public Iterable<EventsAnswer> iterateFeed(ListEventsQuery query, boolean follow) {
    return () -> new Feed(query, follow);
  }

  private final class Feed implements Iterator<EventsAnswer> {
    private final boolean follows;
    private ListEventsQuery next;
    private boolean isAtEnd;

    Feed(ListEventsQuery query, boolean follow) {
      follows = follow;
      next = new ListEventsQuery(query).order("oldest");
      if (next.get("limit") == null) next.limit(PAGE_LIMIT);
    }

    @Override
    public boolean hasNext() {
      return follows || !isAtEnd;
    }

    @Override
    public EventsAnswer next() {
      if (!hasNext()) throw new NoSuchElementException();
      if (isAtEnd) pause(FEED_WAIT_MS, new IllegalStateException("interrupted while the feed was waited for"));
      EventsAnswer page = checked(listEvents(next), "rows");
      next = new ListEventsQuery(next).after(page.nextCursor()).from(null);
      isAtEnd = !Boolean.TRUE.equals(page.get("has_more"));
      return page;
    }
  }

  /**
   * The pages of changes, oldest first: new events, updates and erasures, each once, behind {@code after} of the query or else
   * from the oldest on. Store {@code nextCursor} of a page together with what you made of its changes, and begin with it as
   * {@code after}. At the end it waits for a second and looks again; without {@code follow} it ends. {@code next} throws as
   * {@code listChanges} does, and {@code IllegalStateException} where the thread is interrupted while it waits.
   */
  public Iterable<ChangesAnswer> iterateChanges(ListChangesQuery query, boolean follow) {
    return () -> new Changes(query, follow);
  }

  private final class Changes implements Iterator<ChangesAnswer> {
    private final boolean follows;
    private ListChangesQuery next;
    private boolean isAtEnd;

    Changes(ListChangesQuery query, boolean follow) {
      follows = follow;
      next = new ListChangesQuery(query);
      if (next.get("limit") == null) next.limit(PAGE_LIMIT);
    }

    @Override
    public boolean hasNext() {
      return follows || !isAtEnd;
    }

    @Override
    public ChangesAnswer next() {
      if (!hasNext()) throw new NoSuchElementException();
      if (isAtEnd) pause(FEED_WAIT_MS, new IllegalStateException("interrupted while changes were waited for"));
      ChangesAnswer page = checked(listChanges(next), "changes");
      next = new ListChangesQuery(next).after(page.nextCursor());
      isAtEnd = !Boolean.TRUE.equals(page.get("has_more"));
      return page;
    }
  }

  private final class Pages implements Iterator<EventBody> {
    private final Deque<EventBody> rows = new ArrayDeque<>();
    private ListEventsQuery next;

    Pages(ListEventsQuery first) {
      next = first;
    }

    @Override
    public boolean hasNext() {
      while (rows.isEmpty() && next != null) {
        EventsAnswer page = checked(listEvents(next), "rows");
        rows.addAll(page.rows());
        next = page.nextCursor() == null ? null : new ListEventsQuery(next).cursor(page.nextCursor());
      }
      return !rows.isEmpty();
    }

    @Override
    public EventBody next() {
      if (!hasNext()) throw new NoSuchElementException();
      return rows.remove();
    }
  }

  /** The page, where it has the form of one, whose list has this name. */
  private static <T extends Body> T checked(T page, String name) {
    Object rows = page.get(name);
    boolean isCursor = page.get("next_cursor") == null || page.get("next_cursor") instanceof String;
    boolean isPage = isCursor && rows instanceof List && ((List<?>) rows).stream().allMatch(row -> row instanceof Map);
    if (!isPage) throw ApiException.unexpected(200, null, null);
    return page;
  }

  /** Sends a call, again where that can help and is safe; the decoded body of the response, null without one. */
  @Override
  public Map<String, Object> send(Call call) {
    long end = System.nanoTime() + deadline.toNanos();
    for (int attempt = 1; ; attempt++) {
      try {
        return attempt(call, Math.max(1, Math.min(timeout.toNanos(), end - System.nanoTime())));
      } catch (ApiException | UnreachableException failure) {
        double random = ThreadLocalRandom.current().nextDouble();
        Double wait = retries.waitMs(failure, attempt, call.isRepeatable, random);
        if (wait == null || wait * 1e6 >= end - System.nanoTime()) throw failure;
        if (Thread.currentThread().isInterrupted()) throw failure;
        pause(wait, failure);
      }
    }
  }

  private static void pause(double waitMs, RuntimeException failure) {
    try {
      TimeUnit.MICROSECONDS.sleep(Math.round(waitMs * 1_000));
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw failure;
    }
  }

  private Map<String, Object> attempt(Call call, long limitNs) {
    NotedBody body = new NotedBody(call.body == null ? "" : Json.write(call.body));
    CompletableFuture<HttpResponse<byte[]>> sent =
        http.sendAsync(request(call, body, Duration.ofNanos(limitNs)), head -> new LimitedBody(MAX_BYTES));
    try {
      return read(sent.get(limitNs, TimeUnit.NANOSECONDS));
    } catch (ExecutionException error) {
      throw unreachable(error.getCause(), body);
    } catch (TimeoutException late) {
      sent.cancel(true);
      throw unreachable(late, body);
    } catch (InterruptedException interrupted) {
      sent.cancel(true);
      Thread.currentThread().interrupt();
      throw unreachable(interrupted, body);
    }
  }

  private UnreachableException unreachable(Throwable cause, NotedBody body) {
    URI address = URI.create(baseUrl);
    String origin = address.getScheme() + "://" + address.getRawAuthority();
    // An alert may be about a certificate, which TLS 1.3 sends together with the request.
    boolean isHandshake = cause instanceof SSLHandshakeException && !reasonOf(cause).contains("Received fatal alert");
    return new UnreachableException(
        "no response from " + origin + ": " + reasonOf(cause), body.wasAsked() && !isHandshake, cause);
  }

  /** The names of an exception and of its causes, up to the first that says more. */
  private static String reasonOf(Throwable cause) {
    String name = cause.getClass().getSimpleName();
    if (cause.getMessage() != null) return name + ": " + cause.getMessage();
    return cause.getCause() == null ? name : name + ": " + reasonOf(cause.getCause());
  }

  private HttpRequest request(Call call, NotedBody body, Duration limit) {
    StringJoiner query = new StringJoiner("&");
    call.query.forEach((name, value) -> query.add(Call.escaped(name) + "=" + Call.escaped(value)));
    String end = query.length() == 0 ? "" : "?" + query;
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create(baseUrl + BASE + call.path + end))
            .timeout(limit)
            .header("user-agent", "svc-client-java/" + VERSION)
            .header("x-api-key", apiKey)
            .method(call.method, body);
    if (call.body != null) request.header("content-type", "application/json");
    call.headers.forEach((name, value) -> request.header(name, Call.printable(value)));
    return request.build();
  }

  /** The object in the body of a response, null where it has none; throws {@link ApiException} for any but a success. */
  private static Map<String, Object> read(HttpResponse<byte[]> response) {
    int status = response.statusCode();
    if (status == 204) return null;
    Object body = null;
    try {
      if (response.body() != null) body = Json.read(response.body());
    } catch (IllegalArgumentException noJson) {
      // of a proxy, or of something else at this address
    }
    boolean isSuccess = status / 100 == 2;
    if (isSuccess && body instanceof Map) return Body.fieldsOf(body);
    String requestId = response.headers().firstValue("x-request-id").orElse(null);
    Long retryAfterS = Retries.retryAfterS(response.headers().firstValue("retry-after").orElse(""), Instant.now());
    Object fault = body instanceof Map ? ((Map<?, ?>) body).get("error") : null;
    if (isSuccess || !isFault(fault)) throw ApiException.unexpected(status, requestId, retryAfterS);
    Types.Fault said = new Types.Fault(Body.fieldsOf(fault));
    throw new ApiException(status, said.code(), said.message(), said.details(), requestId, retryAfterS);
  }

  private static boolean isFault(Object error) {
    if (!(error instanceof Map)) return false;
    Map<?, ?> fields = (Map<?, ?>) error;
    Object details = fields.get("details") == null ? List.of() : fields.get("details");
    return Checks.isText(fields.get("code"))
        && fields.get("message") instanceof String
        && details instanceof List
        && ((List<?>) details).stream().allMatch(Client::isDetail);
  }

  private static boolean isDetail(Object detail) {
    if (!(detail instanceof Map)) return false;
    Map<?, ?> fields = (Map<?, ?>) detail;
    return List.of("field", "issue", "location").stream()
        .allMatch(name -> fields.get(name) == null || fields.get(name) instanceof String);
  }
}
