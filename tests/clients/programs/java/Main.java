import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import svc.visitor.client.Action;
import svc.visitor.client.ApiException;
import svc.visitor.client.Body;
import svc.visitor.client.Checked;
import svc.visitor.client.Client;
import svc.visitor.client.Types.*;
import svc.visitor.client.UnreachableException;
import svc.visitor.client.Verdict;

/** Does with the library what its input says, against a running service, and prints what came of it. */
final class Main {
  /** The input: a value with a name in each line, its parts apart by tabs; \N is null, \n a line break. */
  private static final Map<String, List<List<String>>> INPUT = new LinkedHashMap<>();

  private static final Set<String> USED = new LinkedHashSet<>();
  private static Client client;

  public static void main(String[] arguments) throws Exception {
    String text = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
    for (String line : text.split("\n")) {
      List<String> parts = new ArrayList<>();
      for (String part : line.split("\t", -1)) parts.add(part.equals("\\N") ? null : part.replace("\\n", "\n"));
      INPUT.computeIfAbsent(parts.get(0), name -> new ArrayList<>()).add(parts.subList(1, parts.size()));
    }
    client = new Client(one("url") + "/", one("secret"));
    Told told = new Told();
    List<Object> checks = new ArrayList<>(), forged = new ArrayList<>(), verdicts = new ArrayList<>();
    for (List<String> given : INPUT.get("checks")) {
      Checked<EventDetailBody> checked = client.check(given.get(0), action(given), USED::add);
      checks.add(told(checked));
    }
    USED.clear();
    List<List<String>> cases = INPUT.get("verdicts");
    for (List<String> token : INPUT.get("forged")) {
      Checked<Verdict> checked = verdict(token.get(0), cases.get(cases.size() - 1));
      forged.add(Arrays.asList(checked.problem(), checked.found() == null));
    }
    told.put("unused", USED.size());
    for (List<String> given : cases) verdicts.add(told(verdict(one("token"), given)));
    told.put("checks", checks).put("forged", forged).put("verdicts", verdicts).put("used", new ArrayList<>(USED));
    told.put("updates", updates()).put("errors", faults()).put("identified", identified()).put("management", managed());
    LogIn logIn = new LogIn(client);
    List<String> decisions = new ArrayList<>();
    for (String tag : List.of(one("tag"), "other")) {
      decisions.add(logIn.decide(one("login"), tag, id -> true).name().toLowerCase());
    }
    System.out.println(told.put("log_in", decisions));
  }

  private static String one(String name) {
    return INPUT.get(name).get(0).get(0);
  }

  /** As the library writes JSON: as the signals of a body. */
  private static final class Told {
    private final Map<String, Object> fields = new LinkedHashMap<>();

    Told put(String name, Object value) {
      fields.put(name, value);
      return this;
    }

    @Override
    public String toString() {
      String made = new IdentifyBody().signals(fields).toString();
      return made.substring("{\"signals\":".length(), made.length() - 1);
    }
  }

  private static Action action(List<String> given) {
    Action action = new Action(given.get(4), given.get(5), given.get(6)).account(given.get(7)).action(given.get(8));
    action.platform(given.get(9)).now(Instant.ofEpochMilli(Long.parseLong(given.get(3))));
    return given.get(10) == null ? action : action.proven();
  }

  private static Checked<Verdict> verdict(String token, List<String> given) {
    return client.checkVerdict(token, given.get(1), given.get(2), action(given), USED::add);
  }

  private static List<Object> told(Checked<? extends Body> checked) {
    return Arrays.asList(checked.problem(), checked.decision().name().toLowerCase());
  }

  private static List<Object> refusal(Callable<?> work) {
    try {
      return List.of(String.valueOf(work.call()));
    } catch (ApiException refused) {
      return List.of((long) refused.status(), refused.code(), refused.details().size(), refused.requestId() != null);
    } catch (UnreachableException lost) {
      return List.of(lost.wasSent());
    } catch (Exception error) {
      return List.of(error.getMessage());
    }
  }

  private static List<Object> updates() {
    List<Object> told = new ArrayList<>();
    for (UpdateEventBody body : List.of(
        new UpdateEventBody().accountId("a"), new UpdateEventBody(), new UpdateEventBody().tag(null),
        new UpdateEventBody().accountId(null))) {
      EventDetailBody event = client.updateEvent(one("event"), body);
      told.add(Arrays.asList(event.accountId(), event.accountVerified(), event.action(), event.tag()));
    }
    return told;
  }

  private static Map<String, Object> faults() {
    Client stranger = new Client(one("url"), one("stranger")), lonely = new Client(one("nobody"), one("secret"));
    Map<String, Object> told = new LinkedHashMap<>();
    Instant now = Instant.ofEpochMilli(Long.parseLong(INPUT.get("expect").get(0).get(3)));
    Action nowhere = new Action(INPUT.get("expect").get(0).get(4), "nowhere", null).now(now);
    told.put("stranger", refusal(() -> stranger.getEvent(one("event"))));
    told.put("nobody", refusal(() -> lonely.testWebhook("org", "whk")));
    told.put("invalid", refusal(() -> client.listEvents(new ListEventsQuery().limit(100_000))));
    told.put("nowhere", refusal(() -> client.check(one("event"), nowhere, USED::add)));
    return told;
  }

  private static Map<String, Object> identified() {
    String tag = "a&b=é";
    List<String> ids = new ArrayList<>(), rows = new ArrayList<>();
    for (int number = 0; number < 3; number++) {
      Map<String, Object> signals = new LinkedHashMap<>();
      signals.put("components", Map.of("fonts", Map.of("value", List.of("Arial", "Verdana" + number))));
      IdentifyBody body = new IdentifyBody().sdk(new Sdk().platform("web")).signals(signals).tag(tag);
      ids.add(client.identify(body, new IdentifyHeaders().visitorIp("81.2.69.160")).requestId());
    }
    for (EventBody row : client.iterateEvents(new ListEventsQuery().tag(tag).limit(2))) rows.add(row.requestId());
    List<String> fed = new ArrayList<>();
    for (EventsAnswer page : client.iterateFeed(new ListEventsQuery().limit(1), true)) {
      for (EventBody row : page.rows()) fed.add(row.requestId());
      if (fed.size() == 2) break;
    }
    List<String> changed = new ArrayList<>();
    for (ChangesAnswer page : client.iterateChanges(new ListChangesQuery().limit(1), true)) {
      for (ChangeBody change : page.changes()) changed.add(change.type() + " " + change.event().requestId());
      if (changed.size() == 2) break;
    }
    String visitor = client.getEvent(one("event")).visitorId();
    Map<String, Object> told = new LinkedHashMap<>();
    told.put("ids", ids);
    told.put("rows", rows);
    told.put("fed", fed);
    told.put("changed", changed);
    told.put("visitor", client.getVisitor(visitor).visitorId().equals(visitor));
    return told;
  }

  private static Map<String, Object> managed() {
    Client management = new Client(one("url"), one("management"));
    String organization = management.getManagementKey().organizationId();
    IssueSdkKeyBody key = new IssueSdkKeyBody().name("a").environment("staging").kind("secret");
    String issued = management.issueSdkKey(organization, key).key().id();
    management.revokeSdkKey(organization, issued);
    Map<String, Object> told = new LinkedHashMap<>();
    told.put("again", refusal(() -> management.revokeSdkKey(organization, issued)));
    CreateWebhookBody hook = new CreateWebhookBody().url(one("hook")).environment("live").description("");
    IssuedWebhookBody made = management.createWebhook(organization, hook.events(List.of("visitor.suspect")));
    management.deleteWebhook(organization, made.endpoint().id());
    management.eraseAccount(organization, "a");
    told.put("webhooks", management.listWebhooks(organization).endpoints().size());
    return told;
  }
}
