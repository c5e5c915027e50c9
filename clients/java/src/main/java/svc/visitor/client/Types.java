// Generated from docs/openapi.json: make reference
package svc.visitor.client;

import java.util.List;
import java.util.Map;

/**
 * Bodies of requests and responses, as the service documents them.
 *
 * <p>A response may have more fields than are here, which {@link Body#get} returns, and a field that lists its values
 * may have others: both are added within version 1. A method returns {@code null} where its field was left out.
 */
public final class Types {
  private Types() {}

  /** Part of a response. */
  public static final class AccountAnswer extends Body {
    /** With the fields of an object of JSON. */
    public AccountAnswer(Map<String, Object> fields) {
      super(fields);
    }

    /** When it was seen first, to the second. */
    public String firstSeenAt() {
      return textAt("first_seen_at");
    }

    /** When it was seen last. */
    public String lastSeenAt() {
      return textAt("last_seen_at");
    }

    /** The newest 100, the one seen last first. */
    public List<SeenAddress> addresses() {
      return listAt("addresses", value -> new SeenAddress(Body.fieldsOf(value)));
    }

    /** The newest 100, the one seen last first. */
    public List<SeenCountry> countries() {
      return listAt("countries", value -> new SeenCountry(Body.fieldsOf(value)));
    }

    /** Its labeled events of the last 400 days. */
    public LabelCounts labels() {
      return bodyAt("labels", LabelCounts::new);
    }

    /** Notes about it. */
    public Long notesCount() {
      return integerAt("notes_count");
    }

    /** While counts are rebuilt after an upgrade: {@code velocity} leaves out earlier events. Else absent. */
    public String countedSince() {
      return textAt("counted_since");
    }

    /** The customer's id of the account that the visitor acts for. Opaque: no e-mail address. */
    public String accountId() {
      return textAt("account_id");
    }

    /** Of the account, now. */
    public AccountVelocity velocity() {
      return bodyAt("velocity", AccountVelocity::new);
    }

    /** The newest 100 identifiable visitors that acted for it, the one seen last first. */
    public List<VisitorOfAccount> visitors() {
      return listAt("visitors", value -> new VisitorOfAccount(Body.fieldsOf(value)));
    }
  }

  /** Part of a response. */
  public static final class AccountOfVisitor extends Body {
    /** With the fields of an object of JSON. */
    public AccountOfVisitor(Map<String, Object> fields) {
      super(fields);
    }

    /** The customer's id of the account that the visitor acts for. Opaque: no e-mail address. */
    public String accountId() {
      return textAt("account_id");
    }

    /** {@code visitor_confidence} of the visitor's last event for it. */
    public Long confidence() {
      return integerAt("confidence");
    }

    /** When it was seen first. */
    public String firstSeenAt() {
      return textAt("first_seen_at");
    }

    /** When it was seen last. */
    public String lastSeenAt() {
      return textAt("last_seen_at");
    }
  }

  /** Part of a response. */
  public static final class AccountRow extends Body {
    /** With the fields of an object of JSON. */
    public AccountRow(Map<String, Object> fields) {
      super(fields);
    }

    /** The customer's id of the account that the visitor acts for. Opaque: no e-mail address. */
    public String accountId() {
      return textAt("account_id");
    }

    /** When it was seen first, to the second. */
    public String firstSeenAt() {
      return textAt("first_seen_at");
    }

    /** When it was seen last. */
    public String lastSeenAt() {
      return textAt("last_seen_at");
    }

    /**
     * The highest suspect level of its events in the last 24 hours; left out where none was scored. Now one of {@code
     * low}, {@code medium}, {@code high}.
     */
    public String level() {
      return textAt("level");
    }

    /** Of the account, now. */
    public AccountVelocity velocity() {
      return bodyAt("velocity", AccountVelocity::new);
    }
  }

  /** Part of a response. */
  public static final class AccountThresholdsBody extends Body {
    /** With the fields of an object of JSON. */
    public AccountThresholdsBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Accounts of a visitor in 30 days from which {@code multi_account} fires. */
    public Long multiAccount() {
      return integerAt("multi_account");
    }

    /** Accounts of a visitor within an hour from which {@code account_testing} fires. */
    public Long accountTestingVisitor() {
      return integerAt("account_testing_visitor");
    }

    /** Accounts of an address within an hour from which {@code account_testing} fires. */
    public Long accountTestingAddress() {
      return integerAt("account_testing_address");
    }

    /** Visitors of an account in 30 days from which {@code account_sharing} fires. */
    public Long accountSharing() {
      return integerAt("account_sharing");
    }
  }

  /** Part of a response. */
  public static final class AccountVelocity extends Body {
    /** With the fields of an object of JSON. */
    public AccountVelocity(Map<String, Object> fields) {
      super(fields);
    }

    /** Events of the account. */
    public Map<String, Long> events() {
      return mapAt("events", Body::integerOf);
    }

    /** Identifiable visitors that acted for it. */
    public Map<String, Long> visitors() {
      return mapAt("visitors", Body::integerOf);
    }

    /** Addresses that they came from. */
    public Map<String, Long> addresses() {
      return mapAt("addresses", Body::integerOf);
    }

    /** Countries of these addresses. */
    public Map<String, Long> countries() {
      return mapAt("countries", Body::integerOf);
    }
  }

  /** Part of a response. */
  public static final class AccountsAnswer extends Body {
    /** With the fields of an object of JSON. */
    public AccountsAnswer(Map<String, Object> fields) {
      super(fields);
    }

    /** The one that was seen last first. */
    public List<AccountRow> accounts() {
      return listAt("accounts", value -> new AccountRow(Body.fieldsOf(value)));
    }

    /** Of the next page, which may be empty; left out on the last one. */
    public String nextCursor() {
      return textAt("next_cursor");
    }

    /** While counts are rebuilt after an upgrade: {@code velocity} leaves out earlier events. Else absent. */
    public String countedSince() {
      return textAt("counted_since");
    }
  }

  /** Part of a request. */
  public static final class AddEntriesBody extends Body {
    /** Without any field. */
    public AddEntriesBody() {}
    /** With the fields of an object of JSON. */
    public AddEntriesBody(Map<String, Object> fields) {
      super(fields);
    }

    /** At most 1,000. A value that is in the list gets a new note and expiry. */
    public List<NewEntryBody> entries() {
      return listAt("entries", value -> new NewEntryBody(Body.fieldsOf(value)));
    }

    /** Sets what {@link #entries()} returns. */
    public AddEntriesBody entries(List<NewEntryBody> value) {
      setField("entries", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class AddedBody extends Body {
    /** With the fields of an object of JSON. */
    public AddedBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Values that were not in the list. */
    public Long added() {
      return integerAt("added");
    }

    /** Values that were. */
    public Long replaced() {
      return integerAt("replaced");
    }
  }

  /** Part of a response. */
  public static final class AddressVelocity extends Body {
    /** With the fields of an object of JSON. */
    public AddressVelocity(Map<String, Object> fields) {
      super(fields);
    }

    /** Events from the address. */
    public Map<String, Long> events() {
      return mapAt("events", Body::integerOf);
    }

    /** Identifiable visitors that came from it. */
    public Map<String, Long> visitors() {
      return mapAt("visitors", Body::integerOf);
    }

    /** Accounts that they acted for; each sign-up without an account is one. */
    public Map<String, Long> accounts() {
      return mapAt("accounts", Body::integerOf);
    }
  }

  /** Part of a request. */
  public static final class AssignReviewBody extends Body {
    /** Without any field. */
    public AssignReviewBody() {}
    /** With the fields of an object of JSON. */
    public AssignReviewBody(Map<String, Object> fields) {
      super(fields);
    }

    /** The member who takes care of it; {@code null} = nobody. */
    public String assignee() {
      return textAt("assignee");
    }

    /** Sets what {@link #assignee()} returns. */
    public AssignReviewBody assignee(String value) {
      setField("assignee", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class BrowserKeysBody extends Body {
    /** With the fields of an object of JSON. */
    public BrowserKeysBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Start of the window. */
    public String from() {
      return textAt("from");
    }

    /** End of the window, exclusive. */
    public String to() {
      return textAt("to");
    }

    /** Visitors who have such keys. */
    public Long visitors() {
      return integerAt("visitors");
    }

    /** The keys themselves: a browser has one on each site. */
    public Long keys() {
      return integerAt("keys");
    }
  }

  /** Part of a response. */
  public static final class ChallengeAnswer extends Body {
    /** With the fields of an object of JSON. */
    public ChallengeAnswer(Map<String, Object> fields) {
      super(fields);
    }

    /** 32 random bytes in base64, for one use. */
    public String challenge() {
      return textAt("challenge");
    }

    /** Five minutes after issue. */
    public String expiresAt() {
      return textAt("expires_at");
    }
  }

  /** Part of a response. */
  public static final class ChangeBody extends Body {
    /** With the fields of an object of JSON. */
    public ChangeBody(Map<String, Object> fields) {
      super(fields);
    }

    /** What happened. Now one of {@code event.created}, {@code event.updated}, {@code event.erased}. */
    public String type() {
      return textAt("type");
    }

    /** When: of {@code event.created} the arrival of the event. */
    public String at() {
      return textAt("at");
    }

    /** UUIDv7 of the request; it sorts by time. */
    public String requestId() {
      return textAt("request_id");
    }

    /** The event as it is now, a row of {@code GET /events}; left out once it is erased or too old to be read. */
    public EventBody event() {
      return bodyAt("event", EventBody::new);
    }

    /** Of an updated event that is too old to be read: its label; {@code null} = it has none. */
    public String label() {
      return textAt("label");
    }

    /** Of an updated event that is too old to be read: why it has it. */
    public String labelReason() {
      return textAt("label_reason");
    }
  }

  /** Part of a response. */
  public static final class ChangesAnswer extends Body {
    /** With the fields of an object of JSON. */
    public ChangesAnswer(Map<String, Object> fields) {
      super(fields);
    }

    /** Oldest first. */
    public List<ChangeBody> changes() {
      return listAt("changes", value -> new ChangeBody(Body.fieldsOf(value)));
    }

    /** For what follows; every page has one. */
    public String nextCursor() {
      return textAt("next_cursor");
    }

    /** Whether there is a next page now. */
    public Boolean hasMore() {
      return flagAt("has_more");
    }
  }

  /** Part of a request. */
  public static final class CloseReviewBody extends Body {
    /** Without any field. */
    public CloseReviewBody() {}
    /** With the fields of an object of JSON. */
    public CloseReviewBody(Map<String, Object> fields) {
      super(fields);
    }

    /** What the event turned out to be. */
    public String label() {
      return textAt("label");
    }

    /** Sets what {@link #label()} returns. */
    public CloseReviewBody label(String value) {
      setField("label", value);
      return this;
    }

    /** Why. */
    public String labelReason() {
      return textAt("label_reason");
    }

    /** Sets what {@link #labelReason()} returns. */
    public CloseReviewBody labelReason(String value) {
      setField("label_reason", value);
      return this;
    }

    /** What was found. */
    public String note() {
      return textAt("note");
    }

    /** Sets what {@link #note()} returns. */
    public CloseReviewBody note(String value) {
      setField("note", value);
      return this;
    }
  }

  /** Part of a request. */
  public static final class CreateListBody extends Body {
    /** Without any field. */
    public CreateListBody() {}
    /** With the fields of an object of JSON. */
    public CreateListBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Unique in the organization: {@code [a-z][a-z0-9_](0,47)}. Rules name the list by it. */
    public String name() {
      return textAt("name");
    }

    /** Sets what {@link #name()} returns. */
    public CreateListBody name(String value) {
      setField("name", value);
      return this;
    }

    /** What its entries are, which never changes. A list of kind {@code address} has addresses and networks. */
    public String kind() {
      return textAt("kind");
    }

    /** Sets what {@link #kind()} returns. */
    public CreateListBody kind(String value) {
      setField("kind", value);
      return this;
    }
  }

  /** Part of a request. */
  public static final class CreateWebhookBody extends Body {
    /** Without any field. */
    public CreateWebhookBody() {}
    /** With the fields of an object of JSON. */
    public CreateWebhookBody(Map<String, Object> fields) {
      super(fields);
    }

    /**
     * Where deliveries go: {@code https}, without user info or fragment, port 443 or one above 1023, and every
     * address of its host public.
     */
    public String url() {
      return textAt("url");
    }

    /** Sets what {@link #url()} returns. */
    public CreateWebhookBody url(String value) {
      setField("url", value);
      return this;
    }

    /** {@code live}: production traffic; {@code test}: staging and development. */
    public String environment() {
      return textAt("environment");
    }

    /** Sets what {@link #environment()} returns. */
    public CreateWebhookBody environment(String value) {
      setField("environment", value);
      return this;
    }

    /** Event types to subscribe to. */
    public List<String> events() {
      return listAt("events", Body::textOf);
    }

    /** Sets what {@link #events()} returns. */
    public CreateWebhookBody events(List<String> value) {
      setField("events", value);
      return this;
    }

    /** May be empty. */
    public String description() {
      return textAt("description");
    }

    /** Sets what {@link #description()} returns. */
    public CreateWebhookBody description(String value) {
      setField("description", value);
      return this;
    }

    /**
     * {@code json} is the signed envelope. {@code slack}, {@code discord} and {@code teams} (an Adaptive Card) are
     * messages for people, unsigned, and one for an identification, whichever events it causes. Default: {@code
     * "json"}.
     */
    public String format() {
      return textAt("format");
    }

    /** Sets what {@link #format()} returns. */
    public CreateWebhookBody format(String value) {
      setField("format", value);
      return this;
    }

    /** Which events are sent; {@code null} or left out for all. */
    public String filter() {
      return textAt("filter");
    }

    /** Sets what {@link #filter()} returns. */
    public CreateWebhookBody filter(String value) {
      setField("filter", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class DecisionBody extends Body {
    /** With the fields of an object of JSON. */
    public DecisionBody(Map<String, Object> fields) {
      super(fields);
    }

    /** What to do. Now one of {@code allow}, {@code review}, {@code challenge}, {@code block}. */
    public String action() {
      return textAt("action");
    }

    /** Id of the first rule that matched. */
    public String ruleId() {
      return textAt("rule_id");
    }

    /** Its name then. */
    public String rule() {
      return textAt("rule");
    }
  }

  /** Part of a response. */
  public static final class DetailBody extends Body {
    /** With the fields of an object of JSON. */
    public DetailBody(Map<String, Object> fields) {
      super(fields);
    }

    /** A path such as {@code sdk.version}; empty for the whole body. */
    public String field() {
      return textAt("field");
    }

    /**
     * What is the matter with it. Now one of {@code required}, {@code unknown_field}, {@code wrong_type}, {@code
     * malformed_json}, {@code malformed_encoding}, {@code out_of_range}, {@code too_long}, {@code too_deep}, {@code
     * invalid_url}, {@code not_public_address}, {@code unknown_event_type}, {@code requires_live}, {@code
     * invalid_origin}, {@code unknown_signal}, {@code invalid_cursor}, {@code not_with_order}, {@code invalid_value},
     * {@code invalid_condition}, {@code too_expensive}.
     */
    public String issue() {
      return textAt("issue");
    }

    /** Where it is. Now one of {@code body}, {@code query}, {@code header}, {@code path}. */
    public String location() {
      return textAt("location");
    }
  }

  /** Part of a response. */
  public static final class DuplicateAnswer extends Body {
    /** With the fields of an object of JSON. */
    public DuplicateAnswer(Map<String, Object> fields) {
      super(fields);
    }

    /** UUIDv7 of the request; it sorts by time. */
    public String requestId() {
      return textAt("request_id");
    }

    /** The same was accepted before, and nothing changed. */
    public Boolean duplicate() {
      return flagAt("duplicate");
    }
  }

  /** Part of a response. */
  public static final class EntriesBody extends Body {
    /** With the fields of an object of JSON. */
    public EntriesBody(Map<String, Object> fields) {
      super(fields);
    }

    /** In the order of their values. */
    public List<EntryBody> entries() {
      return listAt("entries", value -> new EntryBody(Body.fieldsOf(value)));
    }

    /** Of the next page; left out on the last one. */
    public String nextCursor() {
      return textAt("next_cursor");
    }
  }

  /** Part of a response. */
  public static final class EntryBody extends Body {
    /** With the fields of an object of JSON. */
    public EntryBody(Map<String, Object> fields) {
      super(fields);
    }

    /** In its one spelling: networks without host bits, lower-case origins, upper-case countries. */
    public String value() {
      return textAt("value");
    }

    /** Why it is there. */
    public String note() {
      return textAt("note");
    }

    /** When the entry expires. */
    public String expiresAt() {
      return textAt("expires_at");
    }

    /** When it was added. */
    public String createdAt() {
      return textAt("created_at");
    }

    /** The member who added it; left out where a management key did. */
    public String createdBy() {
      return textAt("created_by");
    }
  }

  /** Part of a response. */
  public static final class ErrorBody extends Body {
    /** With the fields of an object of JSON. */
    public ErrorBody(Map<String, Object> fields) {
      super(fields);
    }

    /** What was refused. */
    public Fault error() {
      return bodyAt("error", Fault::new);
    }

    /** UUIDv7 of the request; it sorts by time. */
    public String requestId() {
      return textAt("request_id");
    }
  }

  /** Part of a response. */
  public static final class EventBody extends Body {
    /** With the fields of an object of JSON. */
    public EventBody(Map<String, Object> fields) {
      super(fields);
    }

    /** UUIDv7 of the request; it sorts by time. */
    public String requestId() {
      return textAt("request_id");
    }

    /** Stable id of the visitor, within the organization. */
    public String visitorId() {
      return textAt("visitor_id");
    }

    /** Whether the organization sees this visitor for the first time. */
    public Boolean visitorIsNew() {
      return flagAt("visitor_is_new");
    }

    /** {@code false} when the report carried too little to identify anyone. The request is still scored. */
    public Boolean identifiable() {
      return flagAt("identifiable");
    }

    /**
     * {@code 90} to {@code 100}: nothing that decided could have been copied. {@code 85} to {@code 89}: the same
     * visitor by all that is known, not proven. {@code 0}: a new visitor id.
     */
    public Long visitorConfidence() {
      return integerAt("visitor_confidence");
    }

    /**
     * The browser signed the report with the key that its token had before: neither was copied to another one. {@code
     * false} on a first visit, before which there is no key.
     */
    public Boolean proven() {
      return flagAt("proven");
    }

    /** {@code enriched}, or {@code unavailable} when the network look-up could not run. */
    public String state() {
      return textAt("state");
    }

    /**
     * Why {@code state} is {@code unavailable}. Now one of {@code no_network_data}, {@code private_address}, {@code
     * lookup_failed}.
     */
    public String reason() {
      return textAt("reason");
    }

    /**
     * From the threshold in force: {@code low} below it, {@code high} from twice of it. Left out when not scored. Now
     * one of {@code low}, {@code medium}, {@code high}.
     */
    public String suspectLevel() {
      return textAt("suspect_level");
    }

    /** What the rules of the organization decided; left out where none matched. */
    public DecisionBody decision() {
      return bodyAt("decision", DecisionBody::new);
    }

    /** When the request arrived. */
    public String occurredAt() {
      return textAt("occurred_at");
    }

    /** Environment of the key. */
    public String environment() {
      return textAt("environment");
    }

    /** Scoring profile. */
    public String platform() {
      return textAt("platform");
    }

    /** Which SDK sent the report, such as {@code web}, {@code ios}, {@code flutter-android}. */
    public String sdkPlatform() {
      return textAt("sdk_platform");
    }

    /** Its version; {@code unknown} when it did not say. */
    public String sdkVersion() {
      return textAt("sdk_version");
    }

    /** Site that the request came from; left out for native apps. */
    public String origin() {
      return textAt("origin");
    }

    /** The caller's own reference, shown again on the event and in webhooks. */
    public String tag() {
      return textAt("tag");
    }

    /** The customer's id of the account that the visitor acts for. Opaque: no e-mail address. */
    public String accountId() {
      return textAt("account_id");
    }

    /** Whether a secret key named the account; beside {@code account_id} alone. */
    public Boolean accountVerified() {
      return flagAt("account_verified");
    }

    /** What the visitor does, such as {@code sign_up}, {@code log_in} or {@code checkout}. */
    public String action() {
      return textAt("action");
    }

    /** What the event turned out to be; left out where nobody has said. Now one of {@code fraud}, {@code legitimate}. */
    public String label() {
      return textAt("label");
    }

    /**
     * Why it has that label. Now one of {@code chargeback}, {@code account_takeover}, {@code multi_account}, {@code
     * promo_abuse}, {@code bot}, {@code scraping}, {@code spam}, {@code other}.
     */
    public String labelReason() {
      return textAt("label_reason");
    }

    /** The visitor's address. */
    public String ipAddress() {
      return textAt("ip_address");
    }

    /** ISO 3166-1 alpha-2. */
    public String countryCode() {
      return textAt("country_code");
    }

    /** The country in English. */
    public String countryName() {
      return textAt("country_name");
    }

    /** Number of the autonomous system. */
    public String asn() {
      return textAt("asn");
    }

    /** Name of the network. */
    public String asnName() {
      return textAt("asn_name");
    }

    /**
     * The strongest that applies; left out for an ordinary connection. Now one of {@code tor}, {@code vpn}, {@code
     * proxy}, {@code hosting}.
     */
    public String anonymityNetwork() {
      return textAt("anonymity_network");
    }

    /** Browser or app. */
    public String agent() {
      return textAt("agent");
    }

    /** Its version. */
    public String agentVersion() {
      return textAt("agent_version");
    }

    /** Operating system. */
    public String os() {
      return textAt("os");
    }

    /** What kind of device it is. Now one of {@code desktop}, {@code mobile}, {@code tablet}, {@code server}. */
    public String deviceKind() {
      return textAt("device_kind");
    }

    /** Who is at it. Now one of {@code human}, {@code ai_bot}, {@code automation}, {@code search_crawler}. */
    public String visitorKind() {
      return textAt("visitor_kind");
    }

    /** Sum of the weights of the signals that fired. Absent or {@code null} when not scored. */
    public Long suspectScore() {
      return integerAt("suspect_score");
    }

    /** What fired, heaviest first. */
    public List<EventTriggerBody> triggers() {
      return listAt("triggers", value -> new EventTriggerBody(Body.fieldsOf(value)));
    }

    /** Each signal that fired, heaviest first: the parts of {@code triggers}. Left out of events stored before 0.2.0. */
    public List<TriggerBody> signals() {
      return listAt("signals", value -> new TriggerBody(Body.fieldsOf(value)));
    }

    /** Whether the archived submission exists. */
    public Boolean hasDocument() {
      return flagAt("has_document");
    }

    /**
     * What the browser signed, beside {@code proven: true}: whose visit it is, and by a newer SDK also account,
     * action and tag of the request, or that it had none. What was set of the event later is not covered.
     */
    public List<String> proofCovers() {
      return listAt("proof_covers", Body::textOf);
    }

    /**
     * How often and with whom the visitor, the account and the address were seen, this event included; without it if
     * its report was sent before ({@code replayed}).
     */
    public VelocityBody velocity() {
      return bodyAt("velocity", VelocityBody::new);
    }

    /**
     * {@code unreadable}: the event is corrupt in the store, and its other fields are missing. The operator of the
     * service can take it out.
     */
    public String error() {
      return textAt("error");
    }
  }

  /** Part of a response. */
  public static final class EventDetailBody extends Body {
    /** With the fields of an object of JSON. */
    public EventDetailBody(Map<String, Object> fields) {
      super(fields);
    }

    /** UUIDv7 of the request; it sorts by time. */
    public String requestId() {
      return textAt("request_id");
    }

    /** Stable id of the visitor, within the organization. */
    public String visitorId() {
      return textAt("visitor_id");
    }

    /** Whether the organization sees this visitor for the first time. */
    public Boolean visitorIsNew() {
      return flagAt("visitor_is_new");
    }

    /** {@code false} when the report carried too little to identify anyone. The request is still scored. */
    public Boolean identifiable() {
      return flagAt("identifiable");
    }

    /**
     * {@code 90} to {@code 100}: nothing that decided could have been copied. {@code 85} to {@code 89}: the same
     * visitor by all that is known, not proven. {@code 0}: a new visitor id.
     */
    public Long visitorConfidence() {
      return integerAt("visitor_confidence");
    }

    /**
     * The browser signed the report with the key that its token had before: neither was copied to another one. {@code
     * false} on a first visit, before which there is no key.
     */
    public Boolean proven() {
      return flagAt("proven");
    }

    /** {@code enriched}, or {@code unavailable} when the network look-up could not run. */
    public String state() {
      return textAt("state");
    }

    /**
     * Why {@code state} is {@code unavailable}. Now one of {@code no_network_data}, {@code private_address}, {@code
     * lookup_failed}.
     */
    public String reason() {
      return textAt("reason");
    }

    /**
     * From the threshold in force: {@code low} below it, {@code high} from twice of it. Left out when not scored. Now
     * one of {@code low}, {@code medium}, {@code high}.
     */
    public String suspectLevel() {
      return textAt("suspect_level");
    }

    /** What the rules of the organization decided; left out where none matched. */
    public DecisionBody decision() {
      return bodyAt("decision", DecisionBody::new);
    }

    /** When the request arrived. */
    public String occurredAt() {
      return textAt("occurred_at");
    }

    /** Environment of the key. */
    public String environment() {
      return textAt("environment");
    }

    /** Scoring profile. */
    public String platform() {
      return textAt("platform");
    }

    /** Which SDK sent the report, such as {@code web}, {@code ios}, {@code flutter-android}. */
    public String sdkPlatform() {
      return textAt("sdk_platform");
    }

    /** Its version; {@code unknown} when it did not say. */
    public String sdkVersion() {
      return textAt("sdk_version");
    }

    /** Site that the request came from; left out for native apps. */
    public String origin() {
      return textAt("origin");
    }

    /** The caller's own reference, shown again on the event and in webhooks. */
    public String tag() {
      return textAt("tag");
    }

    /** The customer's id of the account that the visitor acts for. Opaque: no e-mail address. */
    public String accountId() {
      return textAt("account_id");
    }

    /** Whether a secret key named the account; beside {@code account_id} alone. */
    public Boolean accountVerified() {
      return flagAt("account_verified");
    }

    /** What the visitor does, such as {@code sign_up}, {@code log_in} or {@code checkout}. */
    public String action() {
      return textAt("action");
    }

    /** What the event turned out to be; left out where nobody has said. Now one of {@code fraud}, {@code legitimate}. */
    public String label() {
      return textAt("label");
    }

    /**
     * Why it has that label. Now one of {@code chargeback}, {@code account_takeover}, {@code multi_account}, {@code
     * promo_abuse}, {@code bot}, {@code scraping}, {@code spam}, {@code other}.
     */
    public String labelReason() {
      return textAt("label_reason");
    }

    /** The visitor's address. */
    public String ipAddress() {
      return textAt("ip_address");
    }

    /** ISO 3166-1 alpha-2. */
    public String countryCode() {
      return textAt("country_code");
    }

    /** The country in English. */
    public String countryName() {
      return textAt("country_name");
    }

    /** Number of the autonomous system. */
    public String asn() {
      return textAt("asn");
    }

    /** Name of the network. */
    public String asnName() {
      return textAt("asn_name");
    }

    /**
     * The strongest that applies; left out for an ordinary connection. Now one of {@code tor}, {@code vpn}, {@code
     * proxy}, {@code hosting}.
     */
    public String anonymityNetwork() {
      return textAt("anonymity_network");
    }

    /** Browser or app. */
    public String agent() {
      return textAt("agent");
    }

    /** Its version. */
    public String agentVersion() {
      return textAt("agent_version");
    }

    /** Operating system. */
    public String os() {
      return textAt("os");
    }

    /** What kind of device it is. Now one of {@code desktop}, {@code mobile}, {@code tablet}, {@code server}. */
    public String deviceKind() {
      return textAt("device_kind");
    }

    /** Who is at it. Now one of {@code human}, {@code ai_bot}, {@code automation}, {@code search_crawler}. */
    public String visitorKind() {
      return textAt("visitor_kind");
    }

    /** Sum of the weights of the signals that fired. Absent or {@code null} when not scored. */
    public Long suspectScore() {
      return integerAt("suspect_score");
    }

    /** What fired, heaviest first. */
    public List<EventTriggerBody> triggers() {
      return listAt("triggers", value -> new EventTriggerBody(Body.fieldsOf(value)));
    }

    /** Each signal that fired, heaviest first: the parts of {@code triggers}. Left out of events stored before 0.2.0. */
    public List<TriggerBody> signals() {
      return listAt("signals", value -> new TriggerBody(Body.fieldsOf(value)));
    }

    /** Whether the archived submission exists. */
    public Boolean hasDocument() {
      return flagAt("has_document");
    }

    /**
     * What the browser signed, beside {@code proven: true}: whose visit it is, and by a newer SDK also account,
     * action and tag of the request, or that it had none. What was set of the event later is not covered.
     */
    public List<String> proofCovers() {
      return listAt("proof_covers", Body::textOf);
    }

    /**
     * How often and with whom the visitor, the account and the address were seen, this event included; without it if
     * its report was sent before ({@code replayed}).
     */
    public VelocityBody velocity() {
      return bodyAt("velocity", VelocityBody::new);
    }

    /**
     * The archived submission and what scored it; {@code null} where none was kept. Its contents are not a public
     * contract.
     */
    public Map<String, Object> document() {
      return mapAt("document", value -> value);
    }

    /** Rules in shadow mode that matched; left out where none did. */
    public List<ShadowBody> shadow() {
      return listAt("shadow", value -> new ShadowBody(Body.fieldsOf(value)));
    }

    /** The deferred report, when one arrived. Its contents are not a public contract. */
    public Map<String, Object> deferredSignals() {
      return mapAt("deferred_signals", value -> value);
    }
  }

  /** Part of a response. */
  public static final class EventTriggerBody extends Body {
    /** With the fields of an object of JSON. */
    public EventTriggerBody(Map<String, Object> fields) {
      super(fields);
    }

    /**
     * The group of signals that fired. Now one of {@code bot}, {@code tampering}, {@code tor}, {@code vpn}, {@code
     * proxy}, {@code residential_proxy}, {@code ip_reputation}, {@code environment}, {@code integrity}, {@code
     * location}, {@code privacy}, {@code velocity}, {@code replay}, {@code rarity}, {@code account}.
     */
    public String signal() {
      return textAt("signal");
    }

    /** What the group added to the score. */
    public Long weight() {
      return integerAt("weight");
    }

    /** How well founded it is; it does not change the weight. Now one of {@code high}, {@code low}, {@code medium}. */
    public String confidence() {
      return textAt("confidence");
    }
  }

  /** Part of a response. */
  public static final class EventsAnswer extends Body {
    /** With the fields of an object of JSON. */
    public EventsAnswer(Map<String, Object> fields) {
      super(fields);
    }

    /**
     * Newest first, unless the {@code order} was another. An event that is corrupt in the store has a row with {@code
     * request_id} and {@code error} alone: look for {@code error} before other fields.
     */
    public List<EventBody> rows() {
      return listAt("rows", value -> new EventBody(Body.fieldsOf(value)));
    }

    /** As asked for; 1 where a cursor asked for it. */
    public Long page() {
      return integerAt("page");
    }

    /** The most events that a page has: the {@code limit} of the request. */
    public Long pageSize() {
      return integerAt("page_size");
    }

    /** For the next page; left out on the last one, of which the feed has none. */
    public String nextCursor() {
      return textAt("next_cursor");
    }

    /** Of the feed: whether there is a next page now. */
    public Boolean hasMore() {
      return flagAt("has_more");
    }
  }

  /** Part of a response. */
  public static final class Fault extends Body {
    /** With the fields of an object of JSON. */
    public Fault(Map<String, Object> fields) {
      super(fields);
    }

    /**
     * For programs. Now one of {@code bad_request}, {@code unauthorized}, {@code billing_blocked}, {@code no_credit},
     * {@code insufficient_role}, {@code cross_origin_request}, {@code secure_connection_required}, {@code not_found},
     * {@code event_not_found}, {@code method_not_allowed}, {@code request_timeout}, {@code revision_conflict}, {@code
     * sdk_key_revoked}, {@code proxy_key_revoked}, {@code key_limit}, {@code supplement_conflict}, {@code
     * list_exists}, {@code list_limit}, {@code list_permanent}, {@code list_in_use}, {@code proposal_limit}, {@code
     * review_closed}, {@code review_open}, {@code note_limit}, {@code member_exists}, {@code member_limit}, {@code
     * member_invited}, {@code member_suspended}, {@code last_admin}, {@code webhook_limit}, {@code webhook_busy},
     * {@code webhook_paused}, {@code webhook_unsigned}, {@code view_exists}, {@code view_limit}, {@code
     * payload_too_large}, {@code unsupported_media_type}, {@code invalid_visitor_metadata}, {@code
     * invalid_request_id}, {@code invalid_window}, {@code validation_error}, {@code idempotency_key_too_long}, {@code
     * invalid_supplement}, {@code rate_limited}, {@code header_fields_too_large}, {@code internal_error}, {@code
     * service_unavailable}.
     */
    public String code() {
      return textAt("code");
    }

    /** For people: what to do about it. */
    public String message() {
      return textAt("message");
    }

    /** The HTTP status. */
    public Long status() {
      return integerAt("status");
    }

    /** Each fault in the request. */
    public List<DetailBody> details() {
      return listAt("details", value -> new DetailBody(Body.fieldsOf(value)));
    }
  }

  /** Part of a response. */
  public static final class HealthBody extends Body {
    /** With the fields of an object of JSON. */
    public HealthBody(Map<String, Object> fields) {
      super(fields);
    }

    /** The process is up. Now one of {@code ok}. */
    public String status() {
      return textAt("status");
    }

    /** Version of the service. */
    public String version() {
      return textAt("version");
    }
  }

  /** Part of a response. */
  public static final class IdentifyAnswer extends Body {
    /** With the fields of an object of JSON. */
    public IdentifyAnswer(Map<String, Object> fields) {
      super(fields);
    }

    /** UUIDv7 of the request; it sorts by time. */
    public String requestId() {
      return textAt("request_id");
    }

    /** Stable id of the visitor, within the organization. */
    public String visitorId() {
      return textAt("visitor_id");
    }

    /** Whether the organization sees this visitor for the first time. */
    public Boolean visitorIsNew() {
      return flagAt("visitor_is_new");
    }

    /** {@code false} when the report carried too little to identify anyone. The request is still scored. */
    public Boolean identifiable() {
      return flagAt("identifiable");
    }

    /**
     * {@code 90} to {@code 100}: nothing that decided could have been copied. {@code 85} to {@code 89}: the same
     * visitor by all that is known, not proven. {@code 0}: a new visitor id.
     */
    public Long visitorConfidence() {
      return integerAt("visitor_confidence");
    }

    /**
     * The browser signed the report with the key that its token had before: neither was copied to another one. {@code
     * false} on a first visit, before which there is no key.
     */
    public Boolean proven() {
      return flagAt("proven");
    }

    /** {@code enriched}, or {@code unavailable} when the network look-up could not run. */
    public String state() {
      return textAt("state");
    }

    /**
     * Why {@code state} is {@code unavailable}. Now one of {@code no_network_data}, {@code private_address}, {@code
     * lookup_failed}.
     */
    public String reason() {
      return textAt("reason");
    }

    /**
     * From the threshold in force: {@code low} below it, {@code high} from twice of it. Left out when not scored. Now
     * one of {@code low}, {@code medium}, {@code high}.
     */
    public String suspectLevel() {
      return textAt("suspect_level");
    }

    /** What the rules of the organization decided; left out where none matched. */
    public DecisionBody decision() {
      return bodyAt("decision", DecisionBody::new);
    }

    /** Allows the deferred report of this request to be sent, for 24 hours. */
    public String deferredToken() {
      return textAt("deferred_token");
    }

    /** This is the response of an earlier request with the same {@code Idempotency-Key}; nothing changed. */
    public Boolean duplicate() {
      return flagAt("duplicate");
    }

    /** The web SDK renews its token and key. Only to a public key, and only {@code true}. */
    public Boolean clientTokenRenew() {
      return flagAt("client_token_renew");
    }

    /** Sum of the weights of the signals that fired. Absent or {@code null} when not scored. */
    public Long suspectScore() {
      return integerAt("suspect_score");
    }

    /** What fired, heaviest first. */
    public List<TriggerBody> triggers() {
      return listAt("triggers", value -> new TriggerBody(Body.fieldsOf(value)));
    }

    /**
     * The verdict as a JWS, for a backend that verifies it by the organization's keys ({@code getVerdictKeys}). Only
     * where the request asked for it.
     */
    public String verdict() {
      return textAt("verdict");
    }
  }

  /** Part of a request. */
  public static final class IdentifyBody extends Body {
    /** Without any field. */
    public IdentifyBody() {}
    /** With the fields of an object of JSON. */
    public IdentifyBody(Map<String, Object> fields) {
      super(fields);
    }

    /** The SDK that collected the report. */
    public Sdk sdk() {
      return bodyAt("sdk", Sdk::new);
    }

    /** Sets what {@link #sdk()} returns. */
    public IdentifyBody sdk(Sdk value) {
      setField("sdk", value);
      return this;
    }

    /** The report that an SDK collected. What is in it is not a public contract. */
    public Map<String, Object> signals() {
      return mapAt("signals", value -> value);
    }

    /** Sets what {@link #signals()} returns. */
    public IdentifyBody signals(Map<String, Object> value) {
      setField("signals", value);
      return this;
    }

    /** The caller's own reference, shown again on the event and in webhooks. */
    public String tag() {
      return textAt("tag");
    }

    /** Sets what {@link #tag()} returns. */
    public IdentifyBody tag(String value) {
      setField("tag", value);
      return this;
    }

    /** The customer's id of the account that the visitor acts for. Opaque: no e-mail address. */
    public String accountId() {
      return textAt("account_id");
    }

    /** Sets what {@link #accountId()} returns. */
    public IdentifyBody accountId(String value) {
      setField("account_id", value);
      return this;
    }

    /** What the visitor does, such as {@code sign_up}, {@code log_in} or {@code checkout}. */
    public String action() {
      return textAt("action");
    }

    /** Sets what {@link #action()} returns. */
    public IdentifyBody action(String value) {
      setField("action", value);
      return this;
    }

    /** Whether to respond with a signed {@code verdict}, too. Default: {@code false}. */
    public Boolean verdict() {
      return flagAt("verdict");
    }

    /** Sets what {@link #verdict()} returns. */
    public IdentifyBody verdict(boolean value) {
      setField("verdict", value);
      return this;
    }
  }

  /** Part of a request. */
  public static final class InviteMemberBody extends Body {
    /** Without any field. */
    public InviteMemberBody() {}
    /** With the fields of an object of JSON. */
    public InviteMemberBody(Map<String, Object> fields) {
      super(fields);
    }

    /** E-mail address, in lower case. Nothing is sent there. */
    public String email() {
      return textAt("email");
    }

    /** Sets what {@link #email()} returns. */
    public InviteMemberBody email(String value) {
      setField("email", value);
      return this;
    }

    /** For people. */
    public String name() {
      return textAt("name");
    }

    /** Sets what {@link #name()} returns. */
    public InviteMemberBody name(String value) {
      setField("name", value);
      return this;
    }

    /** What the member may do. */
    public String role() {
      return textAt("role");
    }

    /** Sets what {@link #role()} returns. */
    public InviteMemberBody role(String value) {
      setField("role", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class InvitedMemberBody extends Body {
    /** With the fields of an object of JSON. */
    public InvitedMemberBody(Map<String, Object> fields) {
      super(fields);
    }

    /** The member. */
    public MemberBody member() {
      return bodyAt("member", MemberBody::new);
    }

    /** Hand it to the member; it works once. Shown this once. */
    public String invitationUrl() {
      return textAt("invitation_url");
    }

    /** Until when it works, seven days from now. */
    public String expiresAt() {
      return textAt("expires_at");
    }
  }

  /** Part of a request. */
  public static final class IssueProxyKeyBody extends Body {
    /** Without any field. */
    public IssueProxyKeyBody() {}
    /** With the fields of an object of JSON. */
    public IssueProxyKeyBody(Map<String, Object> fields) {
      super(fields);
    }

    /** A name for people. */
    public String name() {
      return textAt("name");
    }

    /** Sets what {@link #name()} returns. */
    public IssueProxyKeyBody name(String value) {
      setField("name", value);
      return this;
    }

    /** Environment of the key. */
    public String environment() {
      return textAt("environment");
    }

    /** Sets what {@link #environment()} returns. */
    public IssueProxyKeyBody environment(String value) {
      setField("environment", value);
      return this;
    }

    /** When the key stops working; {@code null} = never. */
    public String expiresAt() {
      return textAt("expires_at");
    }

    /** Sets what {@link #expiresAt()} returns. */
    public IssueProxyKeyBody expiresAt(String value) {
      setField("expires_at", value);
      return this;
    }
  }

  /** Part of a request. */
  public static final class IssueSdkKeyBody extends Body {
    /** Without any field. */
    public IssueSdkKeyBody() {}
    /** With the fields of an object of JSON. */
    public IssueSdkKeyBody(Map<String, Object> fields) {
      super(fields);
    }

    /** A name for people. */
    public String name() {
      return textAt("name");
    }

    /** Sets what {@link #name()} returns. */
    public IssueSdkKeyBody name(String value) {
      setField("name", value);
      return this;
    }

    /** Environment of the key. */
    public String environment() {
      return textAt("environment");
    }

    /** Sets what {@link #environment()} returns. */
    public IssueSdkKeyBody environment(String value) {
      setField("environment", value);
      return this;
    }

    /** When the key stops working; {@code null} = never. */
    public String expiresAt() {
      return textAt("expires_at");
    }

    /** Sets what {@link #expiresAt()} returns. */
    public IssueSdkKeyBody expiresAt(String value) {
      setField("expires_at", value);
      return this;
    }

    /** {@code public} for SDKs, {@code secret} for servers. Default: {@code "public"}. */
    public String kind() {
      return textAt("kind");
    }

    /** Sets what {@link #kind()} returns. */
    public IssueSdkKeyBody kind(String value) {
      setField("kind", value);
      return this;
    }

    /** {@code ["web"]} when left out. */
    public List<String> platforms() {
      return listAt("platforms", Body::textOf);
    }

    /** Sets what {@link #platforms()} returns. */
    public IssueSdkKeyBody platforms(List<String> value) {
      setField("platforms", value);
      return this;
    }

    /** Sites that may use the key. Default: {@code []}. */
    public List<String> allowedOrigins() {
      return listAt("allowed_origins", Body::textOf);
    }

    /** Sets what {@link #allowedOrigins()} returns. */
    public IssueSdkKeyBody allowedOrigins(List<String> value) {
      setField("allowed_origins", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class IssuedProxyKeyBody extends Body {
    /** With the fields of an object of JSON. */
    public IssuedProxyKeyBody(Map<String, Object> fields) {
      super(fields);
    }

    /** The proxy key. */
    public ProxyKeyBody credential() {
      return bodyAt("credential", ProxyKeyBody::new);
    }

    /** Shown this once. */
    public String secret() {
      return textAt("secret");
    }
  }

  /** Part of a response. */
  public static final class IssuedSdkKeyBody extends Body {
    /** With the fields of an object of JSON. */
    public IssuedSdkKeyBody(Map<String, Object> fields) {
      super(fields);
    }

    /** The SDK key. */
    public SdkKeyBody key() {
      return bodyAt("key", SdkKeyBody::new);
    }

    /** Shown this once. */
    public String secret() {
      return textAt("secret");
    }
  }

  /** Part of a response. */
  public static final class IssuedWebhookBody extends Body {
    /** With the fields of an object of JSON. */
    public IssuedWebhookBody(Map<String, Object> fields) {
      super(fields);
    }

    /** The endpoint. */
    public WebhookBody endpoint() {
      return bodyAt("endpoint", WebhookBody::new);
    }

    /** The whole signing secret, shown this once; empty for a chat format. */
    public String secret() {
      return textAt("secret");
    }

    /** The same for a library of Standard Webhooks: {@code whsec_} and base64. Empty for a chat format. */
    public String standardSecret() {
      return textAt("standard_secret");
    }
  }

  /** Part of a response. */
  public static final class JwkBody extends Body {
    /** With the fields of an object of JSON. */
    public JwkBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Always {@code OKP}. */
    public String kty() {
      return textAt("kty");
    }

    /** Always {@code Ed25519}. */
    public String crv() {
      return textAt("crv");
    }

    /** The key, base64url. */
    public String x() {
      return textAt("x");
    }

    /** Its thumbprint (RFC 7638). */
    public String kid() {
      return textAt("kid");
    }

    /** Always {@code sig}. */
    public String use() {
      return textAt("use");
    }

    /** Always {@code EdDSA}. */
    public String alg() {
      return textAt("alg");
    }
  }

  /** Part of a response. */
  public static final class LabelAnswer extends Body {
    /** With the fields of an object of JSON. */
    public LabelAnswer(Map<String, Object> fields) {
      super(fields);
    }

    /** UUIDv7 of the request; it sorts by time. */
    public String requestId() {
      return textAt("request_id");
    }

    /** What the event turned out to be. */
    public String label() {
      return textAt("label");
    }

    /** Why it has that label. */
    public String labelReason() {
      return textAt("label_reason");
    }
  }

  /** Part of a request. */
  public static final class LabelBody extends Body {
    /** Without any field. */
    public LabelBody() {}
    /** With the fields of an object of JSON. */
    public LabelBody(Map<String, Object> fields) {
      super(fields);
    }

    /** What the event turned out to be; {@code null} removes the label. */
    public String label() {
      return textAt("label");
    }

    /** Sets what {@link #label()} returns. */
    public LabelBody label(String value) {
      setField("label", value);
      return this;
    }

    /** Why; none when left out. */
    public String labelReason() {
      return textAt("label_reason");
    }

    /** Sets what {@link #labelReason()} returns. */
    public LabelBody labelReason(String value) {
      setField("label_reason", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class LabelCounts extends Body {
    /** With the fields of an object of JSON. */
    public LabelCounts(Map<String, Object> fields) {
      super(fields);
    }

    /** Labeled {@code fraud}. */
    public Long fraud() {
      return integerAt("fraud");
    }

    /** Labeled {@code legitimate}. */
    public Long legitimate() {
      return integerAt("legitimate");
    }
  }

  /** Part of a response. */
  public static final class ListBody extends Body {
    /** With the fields of an object of JSON. */
    public ListBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Its id. */
    public String id() {
      return textAt("id");
    }

    /** Unique in the organization: {@code [a-z][a-z0-9_](0,47)}. Rules name the list by it. */
    public String name() {
      return textAt("name");
    }

    /**
     * What its entries are, which never changes. A list of kind {@code address} has addresses and networks. Now one
     * of {@code account}, {@code address}, {@code asn}, {@code country}, {@code origin}, {@code tag}, {@code
     * visitor}.
     */
    public String kind() {
      return textAt("kind");
    }

    /** How many entries it has. */
    public Long entries() {
      return integerAt("entries");
    }

    /** When it was made. */
    public String createdAt() {
      return textAt("created_at");
    }

    /** When its name or its entries were changed last. */
    public String updatedAt() {
      return textAt("updated_at");
    }
  }

  /** Part of a response. */
  public static final class ListsBody extends Body {
    /** With the fields of an object of JSON. */
    public ListsBody(Map<String, Object> fields) {
      super(fields);
    }

    /** In the order of their names. */
    public List<ListBody> lists() {
      return listAt("lists", value -> new ListBody(Body.fieldsOf(value)));
    }
  }

  /** Part of a response. */
  public static final class ManagementKeyBody extends Body {
    /** With the fields of an object of JSON. */
    public ManagementKeyBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Id of the key. */
    public String keyId() {
      return textAt("key_id");
    }

    /** The organization every management route acts on. */
    public String organizationId() {
      return textAt("organization_id");
    }

    /** A name for people. */
    public String name() {
      return textAt("name");
    }

    /** What the key may do. Now one of {@code admin}, {@code developer}. */
    public String role() {
      return textAt("role");
    }

    /** Region of the key. */
    public String region() {
      return textAt("region");
    }
  }

  /** Part of a response. */
  public static final class MemberBody extends Body {
    /** With the fields of an object of JSON. */
    public MemberBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Its id. */
    public String id() {
      return textAt("id");
    }

    /** E-mail address, in lower case. Nothing is sent there. */
    public String email() {
      return textAt("email");
    }

    /** For people. */
    public String name() {
      return textAt("name");
    }

    /** What the member may do. Now one of {@code admin}, {@code developer}, {@code analyst}, {@code viewer}. */
    public String role() {
      return textAt("role");
    }

    /**
     * {@code invited} until it comes in for the first time. Now one of {@code invited}, {@code active}, {@code
     * suspended}.
     */
    public String status() {
      return textAt("status");
    }

    /** Whether it needs a one-time code beside its password. */
    public Boolean hasTotp() {
      return flagAt("has_totp");
    }

    /** Whether it can sign in by a password. */
    public Boolean hasPassword() {
      return flagAt("has_password");
    }

    /** Whether it has signed in by the OpenID provider. */
    public Boolean hasProvider() {
      return flagAt("has_provider");
    }

    /** When it was made. */
    public String createdAt() {
      return textAt("created_at");
    }

    /** The member who invited it; left out where nobody did. */
    public String createdBy() {
      return textAt("created_by");
    }

    /** When it signed in last. */
    public String lastSignedInAt() {
      return textAt("last_signed_in_at");
    }
  }

  /** Part of a response. */
  public static final class MembersBody extends Body {
    /** With the fields of an object of JSON. */
    public MembersBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Oldest first. */
    public List<MemberBody> members() {
      return listAt("members", value -> new MemberBody(Body.fieldsOf(value)));
    }
  }

  /** Part of a request. */
  public static final class NewAccountThresholds extends Body {
    /** Without any field. */
    public NewAccountThresholds() {}
    /** With the fields of an object of JSON. */
    public NewAccountThresholds(Map<String, Object> fields) {
      super(fields);
    }

    /** Accounts of a visitor in 30 days from which {@code multi_account} fires. */
    public Long multiAccount() {
      return integerAt("multi_account");
    }

    /** Sets what {@link #multiAccount()} returns. */
    public NewAccountThresholds multiAccount(long value) {
      setField("multi_account", value);
      return this;
    }

    /** Accounts of a visitor within an hour from which {@code account_testing} fires. */
    public Long accountTestingVisitor() {
      return integerAt("account_testing_visitor");
    }

    /** Sets what {@link #accountTestingVisitor()} returns. */
    public NewAccountThresholds accountTestingVisitor(long value) {
      setField("account_testing_visitor", value);
      return this;
    }

    /** Accounts of an address within an hour from which {@code account_testing} fires. */
    public Long accountTestingAddress() {
      return integerAt("account_testing_address");
    }

    /** Sets what {@link #accountTestingAddress()} returns. */
    public NewAccountThresholds accountTestingAddress(long value) {
      setField("account_testing_address", value);
      return this;
    }

    /** Visitors of an account in 30 days from which {@code account_sharing} fires. */
    public Long accountSharing() {
      return integerAt("account_sharing");
    }

    /** Sets what {@link #accountSharing()} returns. */
    public NewAccountThresholds accountSharing(long value) {
      setField("account_sharing", value);
      return this;
    }
  }

  /** Part of a request. */
  public static final class NewEntryBody extends Body {
    /** Without any field. */
    public NewEntryBody() {}
    /** With the fields of an object of JSON. */
    public NewEntryBody(Map<String, Object> fields) {
      super(fields);
    }

    /**
     * A visitor id, an account id, an address or network, a country code, an AS number, an origin or a tag, as the
     * kind of the list is.
     */
    public String value() {
      return textAt("value");
    }

    /** Sets what {@link #value()} returns. */
    public NewEntryBody value(String value) {
      setField("value", value);
      return this;
    }

    /** Why it is there. Default: {@code ""}. */
    public String note() {
      return textAt("note");
    }

    /** Sets what {@link #note()} returns. */
    public NewEntryBody note(String value) {
      setField("note", value);
      return this;
    }

    /** When the entry expires; {@code null} = never. */
    public String expiresAt() {
      return textAt("expires_at");
    }

    /** Sets what {@link #expiresAt()} returns. */
    public NewEntryBody expiresAt(String value) {
      setField("expires_at", value);
      return this;
    }
  }

  /** Part of a request. */
  public static final class NewNoteBody extends Body {
    /** Without any field. */
    public NewNoteBody() {}
    /** With the fields of an object of JSON. */
    public NewNoteBody(Map<String, Object> fields) {
      super(fields);
    }

    /** What was written. */
    public String text() {
      return textAt("text");
    }

    /** Sets what {@link #text()} returns. */
    public NewNoteBody text(String value) {
      setField("text", value);
      return this;
    }
  }

  /** Part of a request. */
  public static final class NewProposalBody extends Body {
    /** Without any field. */
    public NewProposalBody() {}
    /** With the fields of an object of JSON. */
    public NewProposalBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Of the ruleset that it was made from. */
    public Long revision() {
      return integerAt("revision");
    }

    /** Sets what {@link #revision()} returns. */
    public NewProposalBody revision(long value) {
      setField("revision", value);
      return this;
    }

    /** All rules, in their order, as a save takes them. */
    public List<RuleFields> rules() {
      return listAt("rules", value -> new RuleFields(Body.fieldsOf(value)));
    }

    /** Sets what {@link #rules()} returns. */
    public NewProposalBody rules(List<RuleFields> value) {
      setField("rules", value);
      return this;
    }

    /** Why, for admins. Default: {@code ""}. */
    public String note() {
      return textAt("note");
    }

    /** Sets what {@link #note()} returns. */
    public NewProposalBody note(String value) {
      setField("note", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class NoteBody extends Body {
    /** With the fields of an object of JSON. */
    public NoteBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Id of the note. */
    public String id() {
      return textAt("id");
    }

    /** What was written. */
    public String text() {
      return textAt("text");
    }

    /** When it was written. */
    public String createdAt() {
      return textAt("created_at");
    }

    /** The member who wrote it; left out where a management key did. */
    public String author() {
      return textAt("author");
    }
  }

  /** Part of a response. */
  public static final class NotesBody extends Body {
    /** With the fields of an object of JSON. */
    public NotesBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Newest first: at most 100. */
    public List<NoteBody> notes() {
      return listAt("notes", value -> new NoteBody(Body.fieldsOf(value)));
    }
  }

  /** Part of a request. */
  public static final class OpenReviewBody extends Body {
    /** Without any field. */
    public OpenReviewBody() {}
    /** With the fields of an object of JSON. */
    public OpenReviewBody(Map<String, Object> fields) {
      super(fields);
    }

    /** UUIDv7 of the request; it sorts by time. */
    public String requestId() {
      return textAt("request_id");
    }

    /** Sets what {@link #requestId()} returns. */
    public OpenReviewBody requestId(String value) {
      setField("request_id", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class PerformanceBody extends Body {
    /** With the fields of an object of JSON. */
    public PerformanceBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Start of the first UTC day. */
    public String from() {
      return textAt("from");
    }

    /** End of the last UTC day. */
    public String to() {
      return textAt("to");
    }

    /** Of the whole window. */
    public PerformanceTotal total() {
      return bodyAt("total", PerformanceTotal::new);
    }

    /** Most events first. */
    public List<PerformanceLine> signals() {
      return listAt("signals", value -> new PerformanceLine(Body.fieldsOf(value)));
    }

    /** Groups of signals, most events first. */
    public List<PerformanceLine> groups() {
      return listAt("groups", value -> new PerformanceLine(Body.fieldsOf(value)));
    }

    /** Those in force in their order, then former ones. An event counts for the rule that decided and shadows. */
    public List<PerformanceLine> rules() {
      return listAt("rules", value -> new PerformanceLine(Body.fieldsOf(value)));
    }

    /** {@code low}, {@code medium} and {@code high}, each by itself. */
    public List<PerformanceLine> levels() {
      return listAt("levels", value -> new PerformanceLine(Body.fieldsOf(value)));
    }

    /** Labeled events by score, lowest first. */
    public List<PerformanceScores> scores() {
      return listAt("scores", value -> new PerformanceScores(Body.fieldsOf(value)));
    }
  }

  /** Part of a response. */
  public static final class PerformanceLine extends Body {
    /** With the fields of an object of JSON. */
    public PerformanceLine(Map<String, Object> fields) {
      super(fields);
    }

    /** Of the signal, group, rule or level. */
    public String name() {
      return textAt("name");
    }

    /** Id of the rule. */
    public String ruleId() {
      return textAt("rule_id");
    }

    /** Events in which it fired, matched, or that have this level. */
    public Long events() {
      return integerAt("events");
    }

    /** Of these, labeled ones. */
    public Long labelled() {
      return integerAt("labelled");
    }

    /** Of these, fraud. */
    public Long fraud() {
      return integerAt("fraud");
    }

    /** Of the labeled ones, legitimate. */
    public Long legitimate() {
      return integerAt("legitimate");
    }

    /** {@code fraud} of {@code labelled}. */
    public Double precision() {
      return numberAt("precision");
    }

    /** Lower end of its 95 % interval (Wilson). */
    public Double precisionLow() {
      return numberAt("precision_low");
    }

    /** Upper end. */
    public Double precisionHigh() {
      return numberAt("precision_high");
    }

    /** {@code fraud} of all fraud in the window. */
    public Double recall() {
      return numberAt("recall");
    }
  }

  /** Part of a response. */
  public static final class PerformanceScores extends Body {
    /** With the fields of an object of JSON. */
    public PerformanceScores(Map<String, Object> fields) {
      super(fields);
    }

    /** Lowest score. */
    public Long from() {
      return integerAt("from");
    }

    /** The score where the next line begins; {@code null} = there is none. */
    public Long to() {
      return integerAt("to");
    }

    /** Of the labeled ones, fraud. */
    public Long fraud() {
      return integerAt("fraud");
    }

    /** Of the labeled ones, legitimate. */
    public Long legitimate() {
      return integerAt("legitimate");
    }
  }

  /** Part of a response. */
  public static final class PerformanceTotal extends Body {
    /** With the fields of an object of JSON. */
    public PerformanceTotal(Map<String, Object> fields) {
      super(fields);
    }

    /** Events. */
    public Long events() {
      return integerAt("events");
    }

    /** Labeled events. */
    public Long labelled() {
      return integerAt("labelled");
    }

    /** Of these, fraud. */
    public Long fraud() {
      return integerAt("fraud");
    }

    /** Of these, legitimate. */
    public Long legitimate() {
      return integerAt("legitimate");
    }
  }

  /** Part of a response. */
  public static final class PlatformWeightsBody extends Body {
    /** With the fields of an object of JSON. */
    public PlatformWeightsBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Scoring profile. Now one of {@code android}, {@code ios}, {@code web}. */
    public String platform() {
      return textAt("platform");
    }

    /** Whose configuration is in force. Now one of {@code default}, {@code key}, {@code organization}. */
    public String scope() {
      return textAt("scope");
    }

    /** Whether this scope has its own saved configuration. */
    public Boolean stored() {
      return flagAt("stored");
    }

    /** Of the scope's own configuration; 0 when nothing is stored. */
    public Long revision() {
      return integerAt("revision");
    }

    /** Score from which a visitor is suspect. */
    public Long suspectThreshold() {
      return integerAt("suspect_threshold");
    }

    /** Signal -&gt; weight in force. */
    public Map<String, Long> weights() {
      return mapAt("weights", Body::integerOf);
    }

    /** Signal name to default weight. */
    public Map<String, Long> defaults() {
      return mapAt("defaults", Body::integerOf);
    }

    /** Every signal of the platform. */
    public List<String> signals() {
      return listAt("signals", Body::textOf);
    }

    /** Which half of the VPN signals counts. Now one of {@code confidence}, {@code method}. */
    public String vpnWeightsMode() {
      return textAt("vpn_weights_mode");
    }

    /** Which half of the residential-proxy signals counts. Now one of {@code confidence}, {@code method}. */
    public String residentialProxyWeightsMode() {
      return textAt("residential_proxy_weights_mode");
    }

    /** Of the scope's own configuration. */
    public String updatedAt() {
      return textAt("updated_at");
    }

    /** The member who saved it; left out where a management key did. */
    public String updatedByUserId() {
      return textAt("updated_by_user_id");
    }
  }

  /** Part of a request. */
  public static final class PreviewBody extends Body {
    /** Without any field. */
    public PreviewBody() {}
    /** With the fields of an object of JSON. */
    public PreviewBody(Map<String, Object> fields) {
      super(fields);
    }

    /** All rules, in their order. */
    public List<RuleFields> rules() {
      return listAt("rules", value -> new RuleFields(Body.fieldsOf(value)));
    }

    /** Sets what {@link #rules()} returns. */
    public PreviewBody rules(List<RuleFields> value) {
      setField("rules", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class PreviewedRule extends Body {
    /** With the fields of an object of JSON. */
    public PreviewedRule(Map<String, Object> fields) {
      super(fields);
    }

    /** Id of the rule. */
    public String ruleId() {
      return textAt("rule_id");
    }

    /** Its name: unique, up to 80 characters. */
    public String name() {
      return textAt("name");
    }

    /** Events that it would have decided, or matched in shadow mode. */
    public Long matches() {
      return integerAt("matches");
    }

    /** The newest of them. */
    public List<String> examples() {
      return listAt("examples", Body::textOf);
    }

    /** Events on which its evaluation failed: it does not match then. */
    public Long errors() {
      return integerAt("errors");
    }

    /** Why, on the newest of them. */
    public String error() {
      return textAt("error");
    }
  }

  /** Part of a response. */
  public static final class ProposalBody extends Body {
    /** With the fields of an object of JSON. */
    public ProposalBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Id of the proposal. */
    public String id() {
      return textAt("id");
    }

    /** Of the ruleset that it was made from. */
    public Long revision() {
      return integerAt("revision");
    }

    /** In their order. */
    public List<ProposedRule> rules() {
      return listAt("rules", value -> new ProposedRule(Body.fieldsOf(value)));
    }

    /** Why, for admins. */
    public String note() {
      return textAt("note");
    }

    /** When it was made. */
    public String createdAt() {
      return textAt("created_at");
    }

    /** The member who made it; left out where a management key did. */
    public String author() {
      return textAt("author");
    }
  }

  /** Part of a response. */
  public static final class ProposalsBody extends Body {
    /** With the fields of an object of JSON. */
    public ProposalsBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Oldest first: at most 20. */
    public List<ProposalBody> proposals() {
      return listAt("proposals", value -> new ProposalBody(Body.fieldsOf(value)));
    }
  }

  /** Part of a response. */
  public static final class ProposedRule extends Body {
    /** With the fields of an object of JSON. */
    public ProposedRule(Map<String, Object> fields) {
      super(fields);
    }

    /** Left out of a rule that is not in force: a save of these rules makes it. */
    public String id() {
      return textAt("id");
    }

    /** Its name: unique, up to 80 characters. */
    public String name() {
      return textAt("name");
    }

    /** When it matches, in CEL (the Common Expression Language). */
    public String condition() {
      return textAt("condition");
    }

    /** What it decides. Now one of {@code allow}, {@code block}, {@code challenge}, {@code review}. */
    public String action() {
      return textAt("action");
    }

    /**
     * {@code shadow}: it is evaluated and counted, and decides nothing. {@code off}: neither. Now one of {@code
     * active}, {@code off}, {@code shadow}.
     */
    public String mode() {
      return textAt("mode");
    }

    /** For people. */
    public String note() {
      return textAt("note");
    }
  }

  /** Part of a response. */
  public static final class ProxyKeyBody extends Body {
    /** With the fields of an object of JSON. */
    public ProxyKeyBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Its id. */
    public String id() {
      return textAt("id");
    }

    /** A name for people. */
    public String name() {
      return textAt("name");
    }

    /** Environment of the key. Now one of {@code development}, {@code production}, {@code staging}. */
    public String environment() {
      return textAt("environment");
    }

    /** Region of the key. */
    public String region() {
      return textAt("region");
    }

    /** Start of the secret. */
    public String prefix() {
      return textAt("prefix");
    }

    /** Last four characters of the secret. */
    public String last4() {
      return textAt("last4");
    }

    /** {@code active} until it is revoked, also when it has expired. Now one of {@code active}, {@code revoked}. */
    public String status() {
      return textAt("status");
    }

    /** When it was last used, to the minute. */
    public String lastUsedAt() {
      return textAt("last_used_at");
    }

    /** When it stops working. */
    public String expiresAt() {
      return textAt("expires_at");
    }

    /** When it was made. */
    public String createdAt() {
      return textAt("created_at");
    }

    /** When it was revoked. */
    public String revokedAt() {
      return textAt("revoked_at");
    }
  }

  /** Part of a response. */
  public static final class ProxyKeysBody extends Body {
    /** With the fields of an object of JSON. */
    public ProxyKeysBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Oldest first, revoked included. */
    public List<ProxyKeyBody> credentials() {
      return listAt("credentials", value -> new ProxyKeyBody(Body.fieldsOf(value)));
    }

    /** Of the next page; left out on the last one, and where no page was asked for. */
    public String nextCursor() {
      return textAt("next_cursor");
    }
  }

  /** Part of a response. */
  public static final class QualityBody extends Body {
    /** With the fields of an object of JSON. */
    public QualityBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Of the labeled events that reach it, fraud; {@code null} = none does. */
    public Double precision() {
      return numberAt("precision");
    }

    /** Of the fraud, that which reaches it. */
    public Double recall() {
      return numberAt("recall");
    }
  }

  /** Part of a response. */
  public static final class QueuedDeliveryBody extends Body {
    /** With the fields of an object of JSON. */
    public QueuedDeliveryBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Of the delivery that is on its way. */
    public String eventId() {
      return textAt("event_id");
    }
  }

  /** Part of a response. */
  public static final class ReadinessBody extends Body {
    /** With the fields of an object of JSON. */
    public ReadinessBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Whether it can serve. Now one of {@code ready}, {@code unavailable}. */
    public String status() {
      return textAt("status");
    }

    /** What that depends on, part by part. */
    public ReadinessChecks checks() {
      return bodyAt("checks", ReadinessChecks::new);
    }
  }

  /** Part of a response. */
  public static final class ReadinessChecks extends Body {
    /** With the fields of an object of JSON. */
    public ReadinessChecks(Map<String, Object> fields) {
      super(fields);
    }

    /**
     * {@code full} when there is no space for writes, {@code unreachable} while the database does not respond or the
     * service waits to start, {@code stalled} while a commit takes over 10 s, {@code failing} when writes were tried
     * for 10 s and none was stored, {@code lost} when the store's file was replaced, removed, cut or overwritten. Now
     * one of {@code failing}, {@code full}, {@code lost}, {@code ok}, {@code stalled}, {@code unreachable}.
     */
    public String store() {
      return textAt("store");
    }

    /**
     * {@code behind} while a delivery to an endpoint that responds is over a minute late, {@code stopped} while
     * nobody sends; it never fails readiness. Now one of {@code behind}, {@code ok}, {@code stopped}.
     */
    public String webhooks() {
      return textAt("webhooks");
    }

    /**
     * State of the network databases; it never fails readiness. Now one of {@code missing}, {@code ok}, {@code
     * stale}.
     */
    public String networkData() {
      return textAt("network_data");
    }
  }

  /** Part of a request. */
  public static final class RedeliverWebhookBody extends Body {
    /** Without any field. */
    public RedeliverWebhookBody() {}
    /** With the fields of an object of JSON. */
    public RedeliverWebhookBody(Map<String, Object> fields) {
      super(fields);
    }

    /** An event that was sent to this endpoint in the last 30 days. */
    public String eventId() {
      return textAt("event_id");
    }

    /** Sets what {@link #eventId()} returns. */
    public RedeliverWebhookBody eventId(String value) {
      setField("event_id", value);
      return this;
    }
  }

  /** Part of a request. */
  public static final class RemoveEntriesBody extends Body {
    /** Without any field. */
    public RemoveEntriesBody() {}
    /** With the fields of an object of JSON. */
    public RemoveEntriesBody(Map<String, Object> fields) {
      super(fields);
    }

    /** At most 1,000. One that is not in the list is passed over. */
    public List<String> values() {
      return listAt("values", Body::textOf);
    }

    /** Sets what {@link #values()} returns. */
    public RemoveEntriesBody values(List<String> value) {
      setField("values", value);
      return this;
    }
  }

  /** Part of a request. */
  public static final class ReplaceOriginsBody extends Body {
    /** Without any field. */
    public ReplaceOriginsBody() {}
    /** With the fields of an object of JSON. */
    public ReplaceOriginsBody(Map<String, Object> fields) {
      super(fields);
    }

    /** The whole new list, such as {@code https://shop.example} or {@code https://*.shop.example}. */
    public List<String> allowedOrigins() {
      return listAt("allowed_origins", Body::textOf);
    }

    /** Sets what {@link #allowedOrigins()} returns. */
    public ReplaceOriginsBody allowedOrigins(List<String> value) {
      setField("allowed_origins", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class ReviewAnswer extends Body {
    /** With the fields of an object of JSON. */
    public ReviewAnswer(Map<String, Object> fields) {
      super(fields);
    }

    /** The review. */
    public ReviewBody review() {
      return bodyAt("review", ReviewBody::new);
    }
  }

  /** Part of a response. */
  public static final class ReviewBody extends Body {
    /** With the fields of an object of JSON. */
    public ReviewBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Id of the review; it sorts by time. */
    public String id() {
      return textAt("id");
    }

    /** {@code open} or {@code closed}. */
    public String state() {
      return textAt("state");
    }

    /** Of its event. */
    public String environment() {
      return textAt("environment");
    }

    /** UUIDv7 of the request; it sorts by time. */
    public String requestId() {
      return textAt("request_id");
    }

    /** Stable id of the visitor, within the organization. */
    public String visitorId() {
      return textAt("visitor_id");
    }

    /** The customer's id of the account that the visitor acts for. Opaque: no e-mail address. */
    public String accountId() {
      return textAt("account_id");
    }

    /** Sum of the weights of the signals that fired. Absent or {@code null} when not scored. */
    public Long suspectScore() {
      return integerAt("suspect_score");
    }

    /** Of its event; left out when not scored. */
    public String suspectLevel() {
      return textAt("suspect_level");
    }

    /** Id of the rule that opened it; left out where a person did. */
    public String ruleId() {
      return textAt("rule_id");
    }

    /** Name of that rule then. */
    public String rule() {
      return textAt("rule");
    }

    /** When it was opened. */
    public String openedAt() {
      return textAt("opened_at");
    }

    /** The member who opened it by hand. */
    public String openedBy() {
      return textAt("opened_by");
    }

    /** When it was last opened again after it was closed; left out if never. */
    public String reopenedAt() {
      return textAt("reopened_at");
    }

    /** The member who opened it again. */
    public String reopenedBy() {
      return textAt("reopened_by");
    }

    /** The member who takes care of it; {@code null} = nobody. */
    public String assignee() {
      return textAt("assignee");
    }

    /** When it was closed; left out while it is open. */
    public String closedAt() {
      return textAt("closed_at");
    }

    /** The member who closed it. */
    public String closedBy() {
      return textAt("closed_by");
    }

    /** What the event turned out to be; left out where nobody has said. Now one of {@code fraud}, {@code legitimate}. */
    public String label() {
      return textAt("label");
    }

    /**
     * Why it has that label. Now one of {@code chargeback}, {@code account_takeover}, {@code multi_account}, {@code
     * promo_abuse}, {@code bot}, {@code scraping}, {@code spam}, {@code other}.
     */
    public String labelReason() {
      return textAt("label_reason");
    }

    /** What the person who closed it wrote. */
    public String note() {
      return textAt("note");
    }
  }

  /** Part of a response. */
  public static final class ReviewsBody extends Body {
    /** With the fields of an object of JSON. */
    public ReviewsBody(Map<String, Object> fields) {
      super(fields);
    }

    /** The one that was opened last first. */
    public List<ReviewBody> reviews() {
      return listAt("reviews", value -> new ReviewBody(Body.fieldsOf(value)));
    }

    /** Of the next page, which may be empty; left out on the last one. */
    public String nextCursor() {
      return textAt("next_cursor");
    }
  }

  /** Part of a request. */
  public static final class RevokeBrowserKeysBody extends Body {
    /** Without any field. */
    public RevokeBrowserKeysBody() {}
    /** With the fields of an object of JSON. */
    public RevokeBrowserKeysBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Start of the window. */
    public String from() {
      return textAt("from");
    }

    /** Sets what {@link #from()} returns. */
    public RevokeBrowserKeysBody from(String value) {
      setField("from", value);
      return this;
    }

    /** End of the window, exclusive; now when left out, which is best. */
    public String to() {
      return textAt("to");
    }

    /** Sets what {@link #to()} returns. */
    public RevokeBrowserKeysBody to(String value) {
      setField("to", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class RiskWeightsBody extends Body {
    /** With the fields of an object of JSON. */
    public RiskWeightsBody(Map<String, Object> fields) {
      super(fields);
    }

    /** The organization that the key acts on. */
    public String organizationId() {
      return textAt("organization_id");
    }

    /** Whose weights they are. Now one of {@code key}, {@code organization}. */
    public String scope() {
      return textAt("scope");
    }

    /** The SDK key; left out for those of the organization. */
    public String sdkKeyId() {
      return textAt("sdk_key_id");
    }

    /** The largest weight that may be given. */
    public Long maxWeight() {
      return integerAt("max_weight");
    }

    /** Each platform once. */
    public List<PlatformWeightsBody> platforms() {
      return listAt("platforms", value -> new PlatformWeightsBody(Body.fieldsOf(value)));
    }
  }

  /** Part of a request. */
  public static final class RotateVerdictKeyBody extends Body {
    /** Without any field. */
    public RotateVerdictKeyBody() {}
    /** With the fields of an object of JSON. */
    public RotateVerdictKeyBody(Map<String, Object> fields) {
      super(fields);
    }

    /** For how long verdicts by the previous key are accepted. Default: {@code 24}. */
    public Long previousKeyValidHours() {
      return integerAt("previous_key_valid_hours");
    }

    /** Sets what {@link #previousKeyValidHours()} returns. */
    public RotateVerdictKeyBody previousKeyValidHours(long value) {
      setField("previous_key_valid_hours", value);
      return this;
    }
  }

  /** Part of a request. */
  public static final class RotateWebhookSecretBody extends Body {
    /** Without any field. */
    public RotateWebhookSecretBody() {}
    /** With the fields of an object of JSON. */
    public RotateWebhookSecretBody(Map<String, Object> fields) {
      super(fields);
    }

    /** For how long the previous secret signs along. Default: {@code 24}. */
    public Long previousSecretValidHours() {
      return integerAt("previous_secret_valid_hours");
    }

    /** Sets what {@link #previousSecretValidHours()} returns. */
    public RotateWebhookSecretBody previousSecretValidHours(long value) {
      setField("previous_secret_valid_hours", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class RuleCounts extends Body {
    /** With the fields of an object of JSON. */
    public RuleCounts(Map<String, Object> fields) {
      super(fields);
    }

    /** Events of the last 24 hours, from a full hour on, that it decided or matched in shadow mode. */
    public Long matched24h() {
      return integerAt("matched_24h");
    }

    /** The same of the last 30 days. */
    public Long matched30d() {
      return integerAt("matched_30d");
    }

    /** Events of the last 24 hours for which its evaluation failed. */
    public Long errors24h() {
      return integerAt("errors_24h");
    }
  }

  /** Part of a request. */
  public static final class RuleFields extends Body {
    /** Without any field. */
    public RuleFields() {}
    /** With the fields of an object of JSON. */
    public RuleFields(Map<String, Object> fields) {
      super(fields);
    }

    /** Id of the rule. */
    public String id() {
      return textAt("id");
    }

    /** Sets what {@link #id()} returns. */
    public RuleFields id(String value) {
      setField("id", value);
      return this;
    }

    /** Its name: unique, up to 80 characters. */
    public String name() {
      return textAt("name");
    }

    /** Sets what {@link #name()} returns. */
    public RuleFields name(String value) {
      setField("name", value);
      return this;
    }

    /** When it matches, in CEL (the Common Expression Language). */
    public String condition() {
      return textAt("condition");
    }

    /** Sets what {@link #condition()} returns. */
    public RuleFields condition(String value) {
      setField("condition", value);
      return this;
    }

    /** What it decides. */
    public String action() {
      return textAt("action");
    }

    /** Sets what {@link #action()} returns. */
    public RuleFields action(String value) {
      setField("action", value);
      return this;
    }

    /**
     * {@code shadow}: it is evaluated and counted, and decides nothing. {@code off}: neither. Default: {@code
     * "active"}.
     */
    public String mode() {
      return textAt("mode");
    }

    /** Sets what {@link #mode()} returns. */
    public RuleFields mode(String value) {
      setField("mode", value);
      return this;
    }

    /** For people. Default: {@code ""}. */
    public String note() {
      return textAt("note");
    }

    /** Sets what {@link #note()} returns. */
    public RuleFields note(String value) {
      setField("note", value);
      return this;
    }

    /** Ignored, so that a rule can be sent as it was read. */
    public Object counts() {
      return get("counts");
    }

    /** Sets what {@link #counts()} returns. */
    public RuleFields counts(Object value) {
      setField("counts", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class RuleRow extends Body {
    /** With the fields of an object of JSON. */
    public RuleRow(Map<String, Object> fields) {
      super(fields);
    }

    /** Id of the rule. */
    public String id() {
      return textAt("id");
    }

    /** Its name: unique, up to 80 characters. */
    public String name() {
      return textAt("name");
    }

    /** When it matches, in CEL (the Common Expression Language). */
    public String condition() {
      return textAt("condition");
    }

    /** What it decides. Now one of {@code allow}, {@code block}, {@code challenge}, {@code review}. */
    public String action() {
      return textAt("action");
    }

    /**
     * {@code shadow}: it is evaluated and counted, and decides nothing. {@code off}: neither. Now one of {@code
     * active}, {@code off}, {@code shadow}.
     */
    public String mode() {
      return textAt("mode");
    }

    /** For people. */
    public String note() {
      return textAt("note");
    }

    /** Whole hours: those that the window touches. */
    public RuleCounts counts() {
      return bodyAt("counts", RuleCounts::new);
    }
  }

  /** Part of a response. */
  public static final class RulesAnswer extends Body {
    /** With the fields of an object of JSON. */
    public RulesAnswer(Map<String, Object> fields) {
      super(fields);
    }

    /** {@code live} is production, {@code test} staging and development. */
    public String environment() {
      return textAt("environment");
    }

    /** Grows by one at each save; 0 = the initial ruleset. */
    public Long revision() {
      return integerAt("revision");
    }

    /** In their order: the first active one that matches decides. */
    public List<RuleRow> rules() {
      return listAt("rules", value -> new RuleRow(Body.fieldsOf(value)));
    }

    /** What may not be meant: see previews. */
    public List<String> warnings() {
      return listAt("warnings", Body::textOf);
    }
  }

  /** Part of a request. */
  public static final class RulesBody extends Body {
    /** Without any field. */
    public RulesBody() {}
    /** With the fields of an object of JSON. */
    public RulesBody(Map<String, Object> fields) {
      super(fields);
    }

    /** The revision that was read. */
    public Long revision() {
      return integerAt("revision");
    }

    /** Sets what {@link #revision()} returns. */
    public RulesBody revision(long value) {
      setField("revision", value);
      return this;
    }

    /** All rules, in their order: the first that matches decides. */
    public List<RuleFields> rules() {
      return listAt("rules", value -> new RuleFields(Body.fieldsOf(value)));
    }

    /** Sets what {@link #rules()} returns. */
    public RulesBody rules(List<RuleFields> value) {
      setField("rules", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class RulesPreview extends Body {
    /** With the fields of an object of JSON. */
    public RulesPreview(Map<String, Object> fields) {
      super(fields);
    }

    /** Events that were looked at. */
    public Long events() {
      return integerAt("events");
    }

    /** In the order in which they were sent. */
    public List<PreviewedRule> rules() {
      return listAt("rules", value -> new PreviewedRule(Body.fieldsOf(value)));
    }

    /** Action -&gt; events as they were decided; {@code none} = by no rule. */
    public Map<String, Long> before() {
      return mapAt("before", Body::integerOf);
    }

    /** The same by these rules. */
    public Map<String, Long> after() {
      return mapAt("after", Body::integerOf);
    }

    /** In words: rules that match every event or read labels, literals that no event can have. */
    public List<String> warnings() {
      return listAt("warnings", Body::textOf);
    }
  }

  /** Part of a request. */
  public static final class SaveWeightsBody extends Body {
    /** Without any field. */
    public SaveWeightsBody() {}
    /** With the fields of an object of JSON. */
    public SaveWeightsBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Score from which a visitor is suspect. */
    public Long suspectThreshold() {
      return integerAt("suspect_threshold");
    }

    /** Sets what {@link #suspectThreshold()} returns. */
    public SaveWeightsBody suspectThreshold(long value) {
      setField("suspect_threshold", value);
      return this;
    }

    /** Signal name to weight. Default: {@code ()}. */
    public Map<String, Long> weights() {
      return mapAt("weights", Body::integerOf);
    }

    /** Sets what {@link #weights()} returns. */
    public SaveWeightsBody weights(Map<String, Long> value) {
      setField("weights", value);
      return this;
    }

    /** Which half of the VPN signals counts. */
    public String vpnWeightsMode() {
      return textAt("vpn_weights_mode");
    }

    /** Sets what {@link #vpnWeightsMode()} returns. */
    public SaveWeightsBody vpnWeightsMode(String value) {
      setField("vpn_weights_mode", value);
      return this;
    }

    /** Which half of the residential-proxy signals counts. */
    public String residentialProxyWeightsMode() {
      return textAt("residential_proxy_weights_mode");
    }

    /** Sets what {@link #residentialProxyWeightsMode()} returns. */
    public SaveWeightsBody residentialProxyWeightsMode(String value) {
      setField("residential_proxy_weights_mode", value);
      return this;
    }

    /** The stored revision that the change was made upon; left out = whatever it is. */
    public Long revision() {
      return integerAt("revision");
    }

    /** Sets what {@link #revision()} returns. */
    public SaveWeightsBody revision(long value) {
      setField("revision", value);
      return this;
    }
  }

  /** Part of a request. */
  public static final class Sdk extends Body {
    /** Without any field. */
    public Sdk() {}
    /** With the fields of an object of JSON. */
    public Sdk(Map<String, Object> fields) {
      super(fields);
    }

    /**
     * {@code web}, {@code ios}, {@code android}, or a bridge such as {@code react-native-ios}; {@code web} when left
     * out.
     */
    public String platform() {
      return textAt("platform");
    }

    /** Sets what {@link #platform()} returns. */
    public Sdk platform(String value) {
      setField("platform", value);
      return this;
    }

    /** Version of the SDK. */
    public String version() {
      return textAt("version");
    }

    /** Sets what {@link #version()} returns. */
    public Sdk version(String value) {
      setField("version", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class SdkKeyBody extends Body {
    /** With the fields of an object of JSON. */
    public SdkKeyBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Its id. */
    public String id() {
      return textAt("id");
    }

    /** A name for people. */
    public String name() {
      return textAt("name");
    }

    /** Environment of the key. Now one of {@code development}, {@code production}, {@code staging}. */
    public String environment() {
      return textAt("environment");
    }

    /** Region of the key. */
    public String region() {
      return textAt("region");
    }

    /** Start of the secret. */
    public String prefix() {
      return textAt("prefix");
    }

    /** Last four characters of the secret. */
    public String last4() {
      return textAt("last4");
    }

    /** {@code active} until it is revoked, also when it has expired. Now one of {@code active}, {@code revoked}. */
    public String status() {
      return textAt("status");
    }

    /** When it was last used, to the minute. */
    public String lastUsedAt() {
      return textAt("last_used_at");
    }

    /** When it stops working. */
    public String expiresAt() {
      return textAt("expires_at");
    }

    /** When it was made. */
    public String createdAt() {
      return textAt("created_at");
    }

    /** When it was revoked. */
    public String revokedAt() {
      return textAt("revoked_at");
    }

    /** {@code public} for SDKs, {@code secret} for servers. */
    public String kind() {
      return textAt("kind");
    }

    /** Public keys only. Now one of {@code android}, {@code ios}, {@code web}. */
    public List<String> platforms() {
      return listAt("platforms", Body::textOf);
    }

    /** Public keys only. */
    public List<String> allowedOrigins() {
      return listAt("allowed_origins", Body::textOf);
    }

    /** The member who did it; left out where a management key did. */
    public String createdBy() {
      return textAt("created_by");
    }

    /** The member who revoked it. */
    public String revokedBy() {
      return textAt("revoked_by");
    }
  }

  /** Part of a response. */
  public static final class SdkKeysBody extends Body {
    /** With the fields of an object of JSON. */
    public SdkKeysBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Oldest first, revoked included. */
    public List<SdkKeyBody> keys() {
      return listAt("keys", value -> new SdkKeyBody(Body.fieldsOf(value)));
    }

    /** Of the next page; left out on the last one, and where no page was asked for. */
    public String nextCursor() {
      return textAt("next_cursor");
    }
  }

  /** Part of a response. */
  public static final class SeenAddress extends Body {
    /** With the fields of an object of JSON. */
    public SeenAddress(Map<String, Object> fields) {
      super(fields);
    }

    /** The address. */
    public String ipAddress() {
      return textAt("ip_address");
    }

    /** ISO 3166-1 alpha-2. */
    public String countryCode() {
      return textAt("country_code");
    }

    /** When it was seen first. */
    public String firstSeenAt() {
      return textAt("first_seen_at");
    }

    /** When it was seen last. */
    public String lastSeenAt() {
      return textAt("last_seen_at");
    }
  }

  /** Part of a response. */
  public static final class SeenCountry extends Body {
    /** With the fields of an object of JSON. */
    public SeenCountry(Map<String, Object> fields) {
      super(fields);
    }

    /** ISO 3166-1 alpha-2. */
    public String countryCode() {
      return textAt("country_code");
    }

    /** When it was seen first. */
    public String firstSeenAt() {
      return textAt("first_seen_at");
    }

    /** When it was seen last. */
    public String lastSeenAt() {
      return textAt("last_seen_at");
    }
  }

  /** Part of a response. */
  public static final class SeenVisitorAnswer extends Body {
    /** With the fields of an object of JSON. */
    public SeenVisitorAnswer(Map<String, Object> fields) {
      super(fields);
    }

    /** When it was seen first, to the second. */
    public String firstSeenAt() {
      return textAt("first_seen_at");
    }

    /** When it was seen last. */
    public String lastSeenAt() {
      return textAt("last_seen_at");
    }

    /** The newest 100, the one seen last first. */
    public List<SeenAddress> addresses() {
      return listAt("addresses", value -> new SeenAddress(Body.fieldsOf(value)));
    }

    /** The newest 100, the one seen last first. */
    public List<SeenCountry> countries() {
      return listAt("countries", value -> new SeenCountry(Body.fieldsOf(value)));
    }

    /** Its labeled events of the last 400 days. */
    public LabelCounts labels() {
      return bodyAt("labels", LabelCounts::new);
    }

    /** Notes about it. */
    public Long notesCount() {
      return integerAt("notes_count");
    }

    /** While counts are rebuilt after an upgrade: {@code velocity} leaves out earlier events. Else absent. */
    public String countedSince() {
      return textAt("counted_since");
    }

    /** Stable id of the visitor, within the organization. */
    public String visitorId() {
      return textAt("visitor_id");
    }

    /** Of the visitor, now. */
    public VisitorVelocity velocity() {
      return bodyAt("velocity", VisitorVelocity::new);
    }

    /** The newest 100 accounts that it acted for, the one seen last first. */
    public List<AccountOfVisitor> accounts() {
      return listAt("accounts", value -> new AccountOfVisitor(Body.fieldsOf(value)));
    }
  }

  /** Part of a response. */
  public static final class SeenVisitorRow extends Body {
    /** With the fields of an object of JSON. */
    public SeenVisitorRow(Map<String, Object> fields) {
      super(fields);
    }

    /** Stable id of the visitor, within the organization. */
    public String visitorId() {
      return textAt("visitor_id");
    }

    /** When it was seen first, to the second. */
    public String firstSeenAt() {
      return textAt("first_seen_at");
    }

    /** When it was seen last. */
    public String lastSeenAt() {
      return textAt("last_seen_at");
    }

    /**
     * The highest suspect level of its events in the last 24 hours; left out where none was scored. Now one of {@code
     * low}, {@code medium}, {@code high}.
     */
    public String level() {
      return textAt("level");
    }

    /** Of the visitor, now. */
    public VisitorVelocity velocity() {
      return bodyAt("velocity", VisitorVelocity::new);
    }
  }

  /** Part of a response. */
  public static final class SeenVisitorsAnswer extends Body {
    /** With the fields of an object of JSON. */
    public SeenVisitorsAnswer(Map<String, Object> fields) {
      super(fields);
    }

    /** The one that was seen last first. */
    public List<SeenVisitorRow> visitors() {
      return listAt("visitors", value -> new SeenVisitorRow(Body.fieldsOf(value)));
    }

    /** Of the next page, which may be empty; left out on the last one. */
    public String nextCursor() {
      return textAt("next_cursor");
    }

    /** While counts are rebuilt after an upgrade: {@code velocity} leaves out earlier events. Else absent. */
    public String countedSince() {
      return textAt("counted_since");
    }
  }

  /** Part of a response. */
  public static final class SettingsBody extends Body {
    /** With the fields of an object of JSON. */
    public SettingsBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Whether responses and signed verdicts for public keys have the decision of the rules. */
    public Boolean decisionInResponse() {
      return flagAt("decision_in_response");
    }

    /** Of the signals of the group {@code account}. */
    public AccountThresholdsBody accountThresholds() {
      return bodyAt("account_thresholds", AccountThresholdsBody::new);
    }

    /** Identifications that it may send in a second; 0 = any number. Its operator sets it: {@code svc org rate-limit}. */
    public Long rateLimitPerS() {
      return integerAt("rate_limit_per_s");
    }

    /** For how many days its events are readable. The operator's setting of the service. */
    public Long eventRetentionDays() {
      return integerAt("event_retention_days");
    }
  }

  /** Part of a response. */
  public static final class ShadowBody extends Body {
    /** With the fields of an object of JSON. */
    public ShadowBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Id of the rule. */
    public String ruleId() {
      return textAt("rule_id");
    }

    /** Its name then. */
    public String rule() {
      return textAt("rule");
    }

    /** What it would have decided. */
    public String action() {
      return textAt("action");
    }
  }

  /** Part of a response. */
  public static final class SignalBody extends Body {
    /** With the fields of an object of JSON. */
    public SignalBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Permanent name of the signal. */
    public String name() {
      return textAt("name");
    }

    /**
     * The group that the signal belongs to. Now one of {@code bot}, {@code tampering}, {@code tor}, {@code vpn},
     * {@code proxy}, {@code residential_proxy}, {@code ip_reputation}, {@code environment}, {@code integrity}, {@code
     * location}, {@code privacy}, {@code velocity}, {@code replay}, {@code rarity}, {@code account}.
     */
    public String group() {
      return textAt("group");
    }

    /** What it means. */
    public String description() {
      return textAt("description");
    }

    /** Platforms on which it exists. Now one of {@code android}, {@code ios}, {@code web}. */
    public List<String> platforms() {
      return listAt("platforms", Body::textOf);
    }

    /** Platform to default weight. */
    public Map<String, Long> defaultWeights() {
      return mapAt("default_weights", Body::integerOf);
    }

    /**
     * Of the VPN and residential-proxy families: the mode in which the signal fires. Now one of {@code confidence},
     * {@code method}.
     */
    public String mode() {
      return textAt("mode");
    }

    /** Version of the catalog that introduced it. */
    public String since() {
      return textAt("since");
    }
  }

  /** Part of a response. */
  public static final class SignalsBody extends Body {
    /** With the fields of an object of JSON. */
    public SignalsBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Every signal. */
    public List<SignalBody> signals() {
      return listAt("signals", value -> new SignalBody(Body.fieldsOf(value)));
    }

    /** The largest weight that may be given. */
    public Long maxWeight() {
      return integerAt("max_weight");
    }
  }

  /** Part of a response. */
  public static final class SuggestedWeightBody extends Body {
    /** With the fields of an object of JSON. */
    public SuggestedWeightBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Name of the signal. */
    public String signal() {
      return textAt("signal");
    }

    /** Its weight in force. */
    public Long before() {
      return integerAt("before");
    }

    /** The suggested one. */
    public Long after() {
      return integerAt("after");
    }

    /** Labeled events in which it fired: at least 10. */
    public Long events() {
      return integerAt("events");
    }

    /** Of these, fraud. */
    public Long fraud() {
      return integerAt("fraud");
    }
  }

  /** Part of a response. */
  public static final class SuggestionBody extends Body {
    /** With the fields of an object of JSON. */
    public SuggestionBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Platform whose weights they are. */
    public String platform() {
      return textAt("platform");
    }

    /** Events labeled as fraud. */
    public Long fraud() {
      return integerAt("fraud");
    }

    /** Events labeled as legitimate. */
    public Long legitimate() {
      return integerAt("legitimate");
    }

    /** The threshold in force, which keeps its meaning. */
    public Long suspectThreshold() {
      return integerAt("suspect_threshold");
    }

    /** Events of each label without which nothing is suggested. */
    public Long needed() {
      return integerAt("needed");
    }

    /**
     * Whether every label was looked at; {@code false} = older ones were left out. {@code svc weights suggest} takes
     * all.
     */
    public Boolean isComplete() {
      return flagAt("is_complete");
    }

    /** By the weights in force; left out while there are too few labels. */
    public QualityBody before() {
      return bodyAt("before", QualityBody::new);
    }

    /** By the suggested weights; left out then, too. */
    public QualityBody after() {
      return bodyAt("after", QualityBody::new);
    }

    /** Signals that fired in at least 10 labeled events. All others keep theirs. */
    public List<SuggestedWeightBody> weights() {
      return listAt("weights", value -> new SuggestedWeightBody(Body.fieldsOf(value)));
    }
  }

  /** Part of a response. */
  public static final class SupplementAnswer extends Body {
    /** With the fields of an object of JSON. */
    public SupplementAnswer(Map<String, Object> fields) {
      super(fields);
    }

    /** UUIDv7 of the request; it sorts by time. */
    public String requestId() {
      return textAt("request_id");
    }

    /** The same was accepted before, and nothing changed. */
    public Boolean duplicate() {
      return flagAt("duplicate");
    }
  }

  /** Part of a request. */
  public static final class SupplementBody extends Body {
    /** Without any field. */
    public SupplementBody() {}
    /** With the fields of an object of JSON. */
    public SupplementBody(Map<String, Object> fields) {
      super(fields);
    }

    /** The {@code deferred_token} of the identification. */
    public String token() {
      return textAt("token");
    }

    /** Sets what {@link #token()} returns. */
    public SupplementBody token(String value) {
      setField("token", value);
      return this;
    }

    /** The SDK that collected the report. */
    public Sdk sdk() {
      return bodyAt("sdk", Sdk::new);
    }

    /** Sets what {@link #sdk()} returns. */
    public SupplementBody sdk(Sdk value) {
      setField("sdk", value);
      return this;
    }

    /** The deferred report that an SDK collected. What is in it is not a public contract. */
    public Map<String, Object> signals() {
      return mapAt("signals", value -> value);
    }

    /** Sets what {@link #signals()} returns. */
    public SupplementBody signals(Map<String, Object> value) {
      setField("signals", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class TriggerBody extends Body {
    /** With the fields of an object of JSON. */
    public TriggerBody(Map<String, Object> fields) {
      super(fields);
    }

    /**
     * The signal. Names are permanent. Now one of {@code automation}, {@code headless}, {@code bot_user_agent},
     * {@code spoofed_crawler}, {@code ai_agent}, {@code search_crawler}, {@code anti_detect_browser}, {@code
     * browser_tampering}, {@code os_mismatch}, {@code engine_mismatch}, {@code gpu_mismatch}, {@code
     * developer_tools}, {@code app_tampering}, {@code forged_report}, {@code proof_failed}, {@code tor}, {@code
     * vpn_public}, {@code vpn_timezone_mismatch}, {@code vpn_os_mismatch}, {@code vpn_auxiliary_mobile}, {@code
     * vpn_relay}, {@code vpn_low}, {@code vpn_medium}, {@code vpn_high}, {@code public_proxy}, {@code hosting},
     * {@code residential_proxy_listed}, {@code residential_proxy_behavior}, {@code residential_proxy_low}, {@code
     * residential_proxy_medium}, {@code residential_proxy_high}, {@code ip_attack_source}, {@code ip_email_spam},
     * {@code virtual_machine}, {@code emulator}, {@code simulator}, {@code cloned_app}, {@code rooted}, {@code
     * jailbroken}, {@code frida}, {@code hooked}, {@code debugger}, {@code developer_options}, {@code
     * unofficial_store}, {@code mitm_attack}, {@code attestation_failed}, {@code attestation_missing}, {@code
     * factory_reset}, {@code clock_tampered}, {@code location_spoofing}, {@code incognito}, {@code privacy_settings},
     * {@code high_activity}, {@code velocity_ip}, {@code velocity_country}, {@code storage_renewed}, {@code
     * new_visitor_burst}, {@code token_conflict}, {@code network_new_for_visitor}, {@code replayed}, {@code
     * repeated_report}, {@code repeated_rare_report}, {@code key_shared}, {@code rare_device}, {@code
     * unseen_rendering}, {@code multi_account}, {@code account_testing}, {@code account_sharing}, {@code
     * account_new_device}.
     */
    public String signal() {
      return textAt("signal");
    }

    /**
     * The group that the signal belongs to. Now one of {@code bot}, {@code tampering}, {@code tor}, {@code vpn},
     * {@code proxy}, {@code residential_proxy}, {@code ip_reputation}, {@code environment}, {@code integrity}, {@code
     * location}, {@code privacy}, {@code velocity}, {@code replay}, {@code rarity}, {@code account}.
     */
    public String group() {
      return textAt("group");
    }

    /** What the signal added to the score. */
    public Long weight() {
      return integerAt("weight");
    }

    /** How well founded it is; it does not change the weight. Now one of {@code high}, {@code low}, {@code medium}. */
    public String confidence() {
      return textAt("confidence");
    }
  }

  /** Part of a response. */
  public static final class UnreadableEventBody extends Body {
    /** With the fields of an object of JSON. */
    public UnreadableEventBody(Map<String, Object> fields) {
      super(fields);
    }

    /** UUIDv7 of the request; it sorts by time. */
    public String requestId() {
      return textAt("request_id");
    }

    /**
     * {@code unreadable}: the event is corrupt in the store, and its other fields are missing. The operator of the
     * service can take it out.
     */
    public String error() {
      return textAt("error");
    }
  }

  /** Part of a request. */
  public static final class UpdateEventBody extends Body {
    /** Without any field. */
    public UpdateEventBody() {}
    /** With the fields of an object of JSON. */
    public UpdateEventBody(Map<String, Object> fields) {
      super(fields);
    }

    /** The account; {@code null} removes it. */
    public String accountId() {
      return textAt("account_id");
    }

    /** Sets what {@link #accountId()} returns. */
    public UpdateEventBody accountId(String value) {
      setField("account_id", value);
      return this;
    }

    /** The action; {@code null} removes it. */
    public String action() {
      return textAt("action");
    }

    /** Sets what {@link #action()} returns. */
    public UpdateEventBody action(String value) {
      setField("action", value);
      return this;
    }

    /** The tag; {@code null} removes it. */
    public String tag() {
      return textAt("tag");
    }

    /** Sets what {@link #tag()} returns. */
    public UpdateEventBody tag(String value) {
      setField("tag", value);
      return this;
    }

    /** What the event turned out to be, for 400 days; {@code null} removes it, and the reason with it. */
    public String label() {
      return textAt("label");
    }

    /** Sets what {@link #label()} returns. */
    public UpdateEventBody label(String value) {
      setField("label", value);
      return this;
    }

    /** Why it has that label; only with a label. */
    public String labelReason() {
      return textAt("label_reason");
    }

    /** Sets what {@link #labelReason()} returns. */
    public UpdateEventBody labelReason(String value) {
      setField("label_reason", value);
      return this;
    }
  }

  /** Part of a request. */
  public static final class UpdateListBody extends Body {
    /** Without any field. */
    public UpdateListBody() {}
    /** With the fields of an object of JSON. */
    public UpdateListBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Unique in the organization: {@code [a-z][a-z0-9_](0,47)}. Rules name the list by it. */
    public String name() {
      return textAt("name");
    }

    /** Sets what {@link #name()} returns. */
    public UpdateListBody name(String value) {
      setField("name", value);
      return this;
    }
  }

  /** Part of a request. */
  public static final class UpdateMemberBody extends Body {
    /** Without any field. */
    public UpdateMemberBody() {}
    /** With the fields of an object of JSON. */
    public UpdateMemberBody(Map<String, Object> fields) {
      super(fields);
    }

    /** For people. */
    public String name() {
      return textAt("name");
    }

    /** Sets what {@link #name()} returns. */
    public UpdateMemberBody name(String value) {
      setField("name", value);
      return this;
    }

    /** What the member may do. */
    public String role() {
      return textAt("role");
    }

    /** Sets what {@link #role()} returns. */
    public UpdateMemberBody role(String value) {
      setField("role", value);
      return this;
    }

    /** {@code suspended}: may not sign in, and its sessions end. */
    public String status() {
      return textAt("status");
    }

    /** Sets what {@link #status()} returns. */
    public UpdateMemberBody status(String value) {
      setField("status", value);
      return this;
    }
  }

  /** Part of a request. */
  public static final class UpdateSettingsBody extends Body {
    /** Without any field. */
    public UpdateSettingsBody() {}
    /** With the fields of an object of JSON. */
    public UpdateSettingsBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Whether responses and signed verdicts for public keys have the decision of the rules. */
    public Boolean decisionInResponse() {
      return flagAt("decision_in_response");
    }

    /** Sets what {@link #decisionInResponse()} returns. */
    public UpdateSettingsBody decisionInResponse(boolean value) {
      setField("decision_in_response", value);
      return this;
    }

    /** Of the signals of the group {@code account}. */
    public NewAccountThresholds accountThresholds() {
      return bodyAt("account_thresholds", NewAccountThresholds::new);
    }

    /** Sets what {@link #accountThresholds()} returns. */
    public UpdateSettingsBody accountThresholds(NewAccountThresholds value) {
      setField("account_thresholds", value);
      return this;
    }
  }

  /** Part of a request. */
  public static final class UpdateWebhookBody extends Body {
    /** Without any field. */
    public UpdateWebhookBody() {}
    /** With the fields of an object of JSON. */
    public UpdateWebhookBody(Map<String, Object> fields) {
      super(fields);
    }

    /**
     * Where deliveries go: {@code https}, without user info or fragment, port 443 or one above 1023, and every
     * address of its host public.
     */
    public String url() {
      return textAt("url");
    }

    /** Sets what {@link #url()} returns. */
    public UpdateWebhookBody url(String value) {
      setField("url", value);
      return this;
    }

    /** {@code live}: production traffic; {@code test}: staging and development. */
    public String environment() {
      return textAt("environment");
    }

    /** Sets what {@link #environment()} returns. */
    public UpdateWebhookBody environment(String value) {
      setField("environment", value);
      return this;
    }

    /** The whole new list. */
    public List<String> events() {
      return listAt("events", Body::textOf);
    }

    /** Sets what {@link #events()} returns. */
    public UpdateWebhookBody events(List<String> value) {
      setField("events", value);
      return this;
    }

    /** A note for people. */
    public String description() {
      return textAt("description");
    }

    /** Sets what {@link #description()} returns. */
    public UpdateWebhookBody description(String value) {
      setField("description", value);
      return this;
    }

    /** {@code true} holds deliveries back, {@code false} lets them go on. */
    public Boolean paused() {
      return flagAt("paused");
    }

    /** Sets what {@link #paused()} returns. */
    public UpdateWebhookBody paused(boolean value) {
      setField("paused", value);
      return this;
    }

    /**
     * {@code json} is the signed envelope. {@code slack}, {@code discord} and {@code teams} (an Adaptive Card) are
     * messages for people, unsigned, and one for an identification, whichever events it causes.
     */
    public String format() {
      return textAt("format");
    }

    /** Sets what {@link #format()} returns. */
    public UpdateWebhookBody format(String value) {
      setField("format", value);
      return this;
    }

    /** {@code null} removes it. */
    public String filter() {
      return textAt("filter");
    }

    /** Sets what {@link #filter()} returns. */
    public UpdateWebhookBody filter(String value) {
      setField("filter", value);
      return this;
    }
  }

  /** Part of a response. */
  public static final class VelocityBody extends Body {
    /** With the fields of an object of JSON. */
    public VelocityBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Of the visitor. */
    public VisitorVelocity visitor() {
      return bodyAt("visitor", VisitorVelocity::new);
    }

    /** Of the address. */
    public AddressVelocity address() {
      return bodyAt("address", AddressVelocity::new);
    }

    /** Of the account; left out without one. */
    public AccountVelocity account() {
      return bodyAt("account", AccountVelocity::new);
    }
  }

  /** Part of a response. */
  public static final class VerdictKeysBody extends Body {
    /** With the fields of an object of JSON. */
    public VerdictKeysBody(Map<String, Object> fields) {
      super(fields);
    }

    /** The key in force first, then the next one, then the previous one until it expires. */
    public List<JwkBody> keys() {
      return listAt("keys", value -> new JwkBody(Body.fieldsOf(value)));
    }
  }

  /** Part of a response. */
  public static final class VisitorOfAccount extends Body {
    /** With the fields of an object of JSON. */
    public VisitorOfAccount(Map<String, Object> fields) {
      super(fields);
    }

    /** Stable id of the visitor, within the organization. */
    public String visitorId() {
      return textAt("visitor_id");
    }

    /** {@code visitor_confidence} of its last event for the account. */
    public Long confidence() {
      return integerAt("confidence");
    }

    /** When it was seen first. */
    public String firstSeenAt() {
      return textAt("first_seen_at");
    }

    /** When it was seen last. */
    public String lastSeenAt() {
      return textAt("last_seen_at");
    }
  }

  /** Part of a response. */
  public static final class VisitorVelocity extends Body {
    /** With the fields of an object of JSON. */
    public VisitorVelocity(Map<String, Object> fields) {
      super(fields);
    }

    /** Events of the visitor. */
    public Map<String, Long> events() {
      return mapAt("events", Body::integerOf);
    }

    /** Accounts that it acted for; each sign-up without an account is one. */
    public Map<String, Long> accounts() {
      return mapAt("accounts", Body::integerOf);
    }

    /** Addresses that it came from; of IPv6, the /64. */
    public Map<String, Long> addresses() {
      return mapAt("addresses", Body::integerOf);
    }

    /** Countries of these addresses. */
    public Map<String, Long> countries() {
      return mapAt("countries", Body::integerOf);
    }
  }

  /** Part of a response. */
  public static final class WebhookBody extends Body {
    /** With the fields of an object of JSON. */
    public WebhookBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Id of the endpoint. */
    public String id() {
      return textAt("id");
    }

    /**
     * Where deliveries go: {@code https}, without user info or fragment, port 443 or one above 1023, and every
     * address of its host public.
     */
    public String url() {
      return textAt("url");
    }

    /** A note for people. */
    public String description() {
      return textAt("description");
    }

    /** {@code live}: production traffic; {@code test}: staging and development. */
    public String environment() {
      return textAt("environment");
    }

    /**
     * Types of events that it subscribes to. Now one of {@code billing.status_changed}, {@code
     * identification.completed}, {@code identification.refused}, {@code review.closed}, {@code review.opened}, {@code
     * usage.daily_settled}, {@code visitor.suspect}, {@code webhook.test}.
     */
    public List<String> events() {
      return listAt("events", Body::textOf);
    }

    /**
     * {@code failing} after five failed attempts in a row over at least ten minutes, a delivery that failed for good,
     * or a {@code 410}. It is never switched off: the first {@code 2xx} makes it {@code active} again. Now one of
     * {@code active}, {@code failing}, {@code paused}.
     */
    public String status() {
      return textAt("status");
    }

    /**
     * When the first of its failed attempts in a row began, whatever its status; left out where the last attempt
     * succeeded. After five of them an endpoint for which more than 100 deliveries wait is tried after a twelfth of
     * the time since then, between 5 seconds and 5 minutes; the first success sends all that wait.
     */
    public String failingSince() {
      return textAt("failing_since");
    }

    /**
     * {@code json} is the signed envelope. {@code slack}, {@code discord} and {@code teams} (an Adaptive Card) are
     * messages for people, unsigned, and one for an identification, whichever events it causes.
     */
    public String format() {
      return textAt("format");
    }

    /**
     * Condition in CEL, as of a rule. Events of identifications and reviews are sent only where it is true; all
     * others whatever it says.
     */
    public String filter() {
      return textAt("filter");
    }

    /**
     * Identifications of the last 24 hours that were held back because the evaluation of the filter failed; with a
     * filter alone. Whole hours: those that the window touches.
     */
    public Long filterErrors24h() {
      return integerAt("filter_errors_24h");
    }

    /** Last four characters of the signing secret; empty for a chat format. */
    public String secretLast4() {
      return textAt("secret_last4");
    }

    /** During a rotation: when the previous secret stops signing. */
    public String previousSecretExpiresAt() {
      return textAt("previous_secret_expires_at");
    }

    /** Attempts in the last 24 hours that succeeded. */
    public Long delivered24h() {
      return integerAt("delivered_24h");
    }

    /** Attempts in the last 24 hours that failed. */
    public Long failed24h() {
      return integerAt("failed_24h");
    }

    /** When it was last sent to, whatever came of it. */
    public String lastDeliveryAt() {
      return textAt("last_delivery_at");
    }

    /** When it was made. */
    public String createdAt() {
      return textAt("created_at");
    }
  }

  /** Part of a response. */
  public static final class WebhookDeliveriesBody extends Body {
    /** With the fields of an object of JSON. */
    public WebhookDeliveriesBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Newest first. */
    public List<WebhookDeliveryBody> deliveries() {
      return listAt("deliveries", value -> new WebhookDeliveryBody(Body.fieldsOf(value)));
    }

    /** Of the next page, which may be empty; left out on the last one. */
    public String nextCursor() {
      return textAt("next_cursor");
    }
  }

  /** Part of a response. */
  public static final class WebhookDeliveryBody extends Body {
    /** With the fields of an object of JSON. */
    public WebhookDeliveryBody(Map<String, Object> fields) {
      super(fields);
    }

    /** UUIDv7 of the attempt; it sorts by time. */
    public String id() {
      return textAt("id");
    }

    /** Id of the endpoint. */
    public String endpointId() {
      return textAt("endpoint_id");
    }

    /** As it was when this was sent. */
    public String endpointUrl() {
      return textAt("endpoint_url");
    }

    /** The same on every attempt, and on a redelivery. */
    public String eventId() {
      return textAt("event_id");
    }

    /**
     * Type of the event. Now one of {@code billing.status_changed}, {@code identification.completed}, {@code
     * identification.refused}, {@code review.closed}, {@code review.opened}, {@code usage.daily_settled}, {@code
     * visitor.suspect}, {@code webhook.test}.
     */
    public String event() {
      return textAt("event");
    }

    /** Environment of the endpoint when the event happened. Now one of {@code live}, {@code test}. */
    public String environment() {
      return textAt("environment");
    }

    /**
     * {@code delivered}; {@code retrying}: failed, and another attempt will follow; {@code failed}: failed, and none
     * will.
     */
    public String status() {
      return textAt("status");
    }

    /** The receiver's status. Left out without one. */
    public Long responseCode() {
      return integerAt("response_code");
    }

    /** How long the attempt took, in milliseconds. */
    public Long durationMs() {
      return integerAt("duration_ms");
    }

    /** Which attempt of its delivery it was, from 1. */
    public Long attempt() {
      return integerAt("attempt");
    }

    /**
     * Why it failed; left out on success. Now one of {@code blocked_address}, {@code connect_error}, {@code
     * connection_reset}, {@code dns_error}, {@code http_status}, {@code paused}, {@code redirect}, {@code removed},
     * {@code response_too_large}, {@code timeout}, {@code tls_error}.
     */
    public String error() {
      return textAt("error");
    }

    /** When the attempt began. */
    public String occurredAt() {
      return textAt("occurred_at");
    }
  }

  /** Part of a response. */
  public static final class WebhooksBody extends Body {
    /** With the fields of an object of JSON. */
    public WebhooksBody(Map<String, Object> fields) {
      super(fields);
    }

    /** Newest first. */
    public List<WebhookBody> endpoints() {
      return listAt("endpoints", value -> new WebhookBody(Body.fieldsOf(value)));
    }
  }

  /** Of {@link Operations#identify}. */
  public static final class IdentifyHeaders extends Body {
    /** Without any field. */
    public IdentifyHeaders() {}

    /** With the fields of another one. */
    public IdentifyHeaders(IdentifyHeaders other) {
      super(other.fields());
    }

    /**
     * Makes a retry safe: a request whose key was used in the last 24 hours is a duplicate and costs nothing. Its
     * scope is the organization with all its environments: use random keys, or keys unique across environments.
     */
    public IdentifyHeaders idempotencyKey(String value) {
      setField("Idempotency-Key", value);
      return this;
    }

    /**
     * {@code full}: a duplicate within a minute of its original, by the same key and from the same origin, gets the
     * original's whole response and {@code duplicate: true}, if it comes from the same address or has the same {@code
     * signals}. For a retry whose first response was lost or late.
     */
    public IdentifyHeaders replay(String value) {
      setField("x-svc-replay", value);
      return this;
    }

    /** Platform of the SDK, where the body does not say. */
    public IdentifyHeaders sdkPlatform(String value) {
      setField("x-svc-sdk-platform", value);
      return this;
    }

    /**
     * From a proxy key (required) or a secret key: the visitor's IPv4 or IPv6 address. With any other key it is
     * ignored, and so are the other {@code x-svc-visitor-} headers.
     */
    public IdentifyHeaders visitorIp(String value) {
      setField("x-svc-visitor-ip", value);
      return this;
    }

    /** The site that the visitor is at. */
    public IdentifyHeaders visitorOrigin(String value) {
      setField("x-svc-visitor-origin", value);
      return this;
    }

    /** The visitor's user agent. */
    public IdentifyHeaders visitorUserAgent(String value) {
      setField("x-svc-visitor-user-agent", value);
      return this;
    }

    /**
     * The visitor's {@code accept-language}, {@code sec-ch-ua...} and {@code sec-fetch-...} headers as a JSON object
     * of texts. Without them {@code forged_report} stays silent.
     */
    public IdentifyHeaders visitorHeaders(String value) {
      setField("x-svc-visitor-headers", value);
      return this;
    }

    /** From a proxy key: the visitor's public key, whose origins, platforms and weights then apply. */
    public IdentifyHeaders publicKey(String value) {
      setField("x-svc-public-key", value);
      return this;
    }
  }

  /** Of {@link Operations#issueAttestationChallenge}. */
  public static final class IssueAttestationChallengeHeaders extends Body {
    /** Without any field. */
    public IssueAttestationChallengeHeaders() {}

    /** With the fields of another one. */
    public IssueAttestationChallengeHeaders(IssueAttestationChallengeHeaders other) {
      super(other.fields());
    }

    /** Platform of the SDK, where the body does not say. */
    public IssueAttestationChallengeHeaders sdkPlatform(String value) {
      setField("x-svc-sdk-platform", value);
      return this;
    }
  }

  /** Of {@link Operations#supplementEvent}. */
  public static final class SupplementEventHeaders extends Body {
    /** Without any field. */
    public SupplementEventHeaders() {}

    /** With the fields of another one. */
    public SupplementEventHeaders(SupplementEventHeaders other) {
      super(other.fields());
    }

    /** Platform of the SDK, where the body does not say. */
    public SupplementEventHeaders sdkPlatform(String value) {
      setField("x-svc-sdk-platform", value);
      return this;
    }

    /**
     * From a proxy key (required) or a secret key: the visitor's IPv4 or IPv6 address. With any other key it is
     * ignored, and so are the other {@code x-svc-visitor-} headers.
     */
    public SupplementEventHeaders visitorIp(String value) {
      setField("x-svc-visitor-ip", value);
      return this;
    }

    /** The site that the visitor is at. */
    public SupplementEventHeaders visitorOrigin(String value) {
      setField("x-svc-visitor-origin", value);
      return this;
    }

    /** The visitor's user agent. */
    public SupplementEventHeaders visitorUserAgent(String value) {
      setField("x-svc-visitor-user-agent", value);
      return this;
    }

    /**
     * The visitor's {@code accept-language}, {@code sec-ch-ua...} and {@code sec-fetch-...} headers as a JSON object
     * of texts. Without them {@code forged_report} stays silent.
     */
    public SupplementEventHeaders visitorHeaders(String value) {
      setField("x-svc-visitor-headers", value);
      return this;
    }

    /** From a proxy key: the visitor's public key, whose origins, platforms and weights then apply. */
    public SupplementEventHeaders publicKey(String value) {
      setField("x-svc-public-key", value);
      return this;
    }
  }

  /** Of {@link Operations#listEvents}. */
  public static final class ListEventsQuery extends Body {
    /** Without any field. */
    public ListEventsQuery() {}

    /** With the fields of another one. */
    public ListEventsQuery(ListEventsQuery other) {
      super(other.fields());
    }

    /** Only events of this visitor. */
    public ListEventsQuery visitor(String value) {
      setField("visitor", value);
      return this;
    }

    /** Only events of this suspect level. */
    public ListEventsQuery level(String value) {
      setField("level", value);
      return this;
    }

    /** Only events with this tag. */
    public ListEventsQuery tag(String value) {
      setField("tag", value);
      return this;
    }

    /** Only events from this IPv4 or IPv6 address. */
    public ListEventsQuery ipAddress(String value) {
      setField("ip_address", value);
      return this;
    }

    /** Only events from this country: two letters. */
    public ListEventsQuery country(String value) {
      setField("country", value);
      return this;
    }

    /** Only events in which this signal fired. */
    public ListEventsQuery signal(String value) {
      setField("signal", value);
      return this;
    }

    /** Only events of this kind of visitor. */
    public ListEventsQuery kind(String value) {
      setField("kind", value);
      return this;
    }

    /** Only events of this account. */
    public ListEventsQuery accountId(String value) {
      setField("account_id", value);
      return this;
    }

    /** Only events with this action. */
    public ListEventsQuery action(String value) {
      setField("action", value);
      return this;
    }

    /** Only events from this autonomous system. */
    public ListEventsQuery asn(String value) {
      setField("asn", value);
      return this;
    }

    /** Only events with this decision. */
    public ListEventsQuery decision(String value) {
      setField("decision", value);
      return this;
    }

    /** Only events with this label. */
    public ListEventsQuery label(String value) {
      setField("label", value);
      return this;
    }

    /** Only events that the rule with this id decided, also where it was deleted since. */
    public ListEventsQuery rule(String value) {
      setField("rule", value);
      return this;
    }

    /** With {@code rule}: only events that the rule matched in shadow mode instead. */
    public ListEventsQuery shadow(boolean value) {
      setField("shadow", value);
      return this;
    }

    /** Only events in which any signal of this group fired. */
    public ListEventsQuery group(String value) {
      setField("group", value);
      return this;
    }

    /** Start of the window, inclusive; 24 hours before its end when left out. */
    public ListEventsQuery from(String value) {
      setField("from", value);
      return this;
    }

    /** End of the window, exclusive; now when left out. */
    public ListEventsQuery to(String value) {
      setField("to", value);
      return this;
    }

    /** The first page when it and {@code cursor} are left out. */
    public ListEventsQuery page(long value) {
      setField("page", value);
      return this;
    }

    /** {@code next_cursor} of the page before; the first page when left out. */
    public ListEventsQuery cursor(String value) {
      setField("cursor", value);
      return this;
    }

    /** How many per page, at most. */
    public ListEventsQuery limit(long value) {
      setField("limit", value);
      return this;
    }

    /** {@code oldest} reads the feed; {@code newest} when left out. */
    public ListEventsQuery order(String value) {
      setField("order", value);
      return this;
    }

    /** With {@code order=oldest}: {@code next_cursor} of the page before; from the oldest when left out. */
    public ListEventsQuery after(String value) {
      setField("after", value);
      return this;
    }
  }

  /** Of {@link Operations#listChanges}. */
  public static final class ListChangesQuery extends Body {
    /** Without any field. */
    public ListChangesQuery() {}

    /** With the fields of another one. */
    public ListChangesQuery(ListChangesQuery other) {
      super(other.fields());
    }

    /** {@code next_cursor} of the page before; from the oldest that is kept when left out. */
    public ListChangesQuery after(String value) {
      setField("after", value);
      return this;
    }

    /** How many per page, at most. */
    public ListChangesQuery limit(long value) {
      setField("limit", value);
      return this;
    }
  }

  /** Of {@link Operations#listAccounts}. */
  public static final class ListAccountsQuery extends Body {
    /** Without any field. */
    public ListAccountsQuery() {}

    /** With the fields of another one. */
    public ListAccountsQuery(ListAccountsQuery other) {
      super(other.fields());
    }

    /** Only those seen from this country in 30 days: two letters. */
    public ListAccountsQuery country(String value) {
      setField("country", value);
      return this;
    }

    /** Only those whose events of the last 24 hours have this as their highest suspect level. */
    public ListAccountsQuery level(String value) {
      setField("level", value);
      return this;
    }

    /** Only those whose id begins with this. */
    public ListAccountsQuery q(String value) {
      setField("q", value);
      return this;
    }

    /** {@code next_cursor} of the page before; the first page when left out. */
    public ListAccountsQuery cursor(String value) {
      setField("cursor", value);
      return this;
    }

    /** How many per page, at most. */
    public ListAccountsQuery limit(long value) {
      setField("limit", value);
      return this;
    }

    /** The least number of visitors in 30 days. */
    public ListAccountsQuery minVisitors(long value) {
      setField("min_visitors", value);
      return this;
    }
  }

  /** Of {@link Operations#listVisitors}. */
  public static final class ListVisitorsQuery extends Body {
    /** Without any field. */
    public ListVisitorsQuery() {}

    /** With the fields of another one. */
    public ListVisitorsQuery(ListVisitorsQuery other) {
      super(other.fields());
    }

    /** Only those seen from this country in 30 days: two letters. */
    public ListVisitorsQuery country(String value) {
      setField("country", value);
      return this;
    }

    /** Only those whose events of the last 24 hours have this as their highest suspect level. */
    public ListVisitorsQuery level(String value) {
      setField("level", value);
      return this;
    }

    /** Only those whose id begins with this. */
    public ListVisitorsQuery q(String value) {
      setField("q", value);
      return this;
    }

    /** {@code next_cursor} of the page before; the first page when left out. */
    public ListVisitorsQuery cursor(String value) {
      setField("cursor", value);
      return this;
    }

    /** How many per page, at most. */
    public ListVisitorsQuery limit(long value) {
      setField("limit", value);
      return this;
    }

    /** The least number of accounts in 30 days, sign-ups without one included. */
    public ListVisitorsQuery minAccounts(long value) {
      setField("min_accounts", value);
      return this;
    }
  }

  /** Of {@link Operations#listProxyKeys}. */
  public static final class ListProxyKeysQuery extends Body {
    /** Without any field. */
    public ListProxyKeysQuery() {}

    /** With the fields of another one. */
    public ListProxyKeysQuery(ListProxyKeysQuery other) {
      super(other.fields());
    }

    /** How many per page, at most. */
    public ListProxyKeysQuery limit(long value) {
      setField("limit", value);
      return this;
    }

    /** {@code next_cursor} of the page before; the first page when left out. */
    public ListProxyKeysQuery cursor(String value) {
      setField("cursor", value);
      return this;
    }
  }

  /** Of {@link Operations#listSdkKeys}. */
  public static final class ListSdkKeysQuery extends Body {
    /** Without any field. */
    public ListSdkKeysQuery() {}

    /** With the fields of another one. */
    public ListSdkKeysQuery(ListSdkKeysQuery other) {
      super(other.fields());
    }

    /** How many per page, at most. */
    public ListSdkKeysQuery limit(long value) {
      setField("limit", value);
      return this;
    }

    /** {@code next_cursor} of the page before; the first page when left out. */
    public ListSdkKeysQuery cursor(String value) {
      setField("cursor", value);
      return this;
    }
  }

  /** Of {@link Operations#countBrowserKeys}. */
  public static final class CountBrowserKeysQuery extends Body {
    /** Without any field. */
    public CountBrowserKeysQuery() {}

    /** With the fields of another one. */
    public CountBrowserKeysQuery(CountBrowserKeysQuery other) {
      super(other.fields());
    }

    /** Start of the window; all keys when left out. */
    public CountBrowserKeysQuery from(String value) {
      setField("from", value);
      return this;
    }

    /** End of the window, exclusive; now when left out, which is best. */
    public CountBrowserKeysQuery to(String value) {
      setField("to", value);
      return this;
    }
  }

  /** Of {@link Operations#listWebhookDeliveries}. */
  public static final class ListWebhookDeliveriesQuery extends Body {
    /** Without any field. */
    public ListWebhookDeliveriesQuery() {}

    /** With the fields of another one. */
    public ListWebhookDeliveriesQuery(ListWebhookDeliveriesQuery other) {
      super(other.fields());
    }

    /** Only attempts of these endpoints. */
    public ListWebhookDeliveriesQuery environment(String value) {
      setField("environment", value);
      return this;
    }

    /** Only attempts to the endpoint of this id. */
    public ListWebhookDeliveriesQuery endpointId(String value) {
      setField("endpoint_id", value);
      return this;
    }

    /** How many per page, at most. */
    public ListWebhookDeliveriesQuery limit(long value) {
      setField("limit", value);
      return this;
    }

    /** {@code next_cursor} of the page before; the first page when left out. */
    public ListWebhookDeliveriesQuery cursor(String value) {
      setField("cursor", value);
      return this;
    }
  }

  /** Of {@link Operations#getRules}. */
  public static final class GetRulesQuery extends Body {
    /** Without any field. */
    public GetRulesQuery() {}

    /** With the fields of another one. */
    public GetRulesQuery(GetRulesQuery other) {
      super(other.fields());
    }

    /** {@code live} is production, {@code test} staging and development. */
    public GetRulesQuery environment(String value) {
      setField("environment", value);
      return this;
    }
  }

  /** Of {@link Operations#saveRules}. */
  public static final class SaveRulesQuery extends Body {
    /** Without any field. */
    public SaveRulesQuery() {}

    /** With the fields of another one. */
    public SaveRulesQuery(SaveRulesQuery other) {
      super(other.fields());
    }

    /** {@code live} is production, {@code test} staging and development. */
    public SaveRulesQuery environment(String value) {
      setField("environment", value);
      return this;
    }
  }

  /** Of {@link Operations#previewRules}. */
  public static final class PreviewRulesQuery extends Body {
    /** Without any field. */
    public PreviewRulesQuery() {}

    /** With the fields of another one. */
    public PreviewRulesQuery(PreviewRulesQuery other) {
      super(other.fields());
    }

    /** {@code live} is production, {@code test} staging and development. */
    public PreviewRulesQuery environment(String value) {
      setField("environment", value);
      return this;
    }
  }

  /** Of {@link Operations#listRuleProposals}. */
  public static final class ListRuleProposalsQuery extends Body {
    /** Without any field. */
    public ListRuleProposalsQuery() {}

    /** With the fields of another one. */
    public ListRuleProposalsQuery(ListRuleProposalsQuery other) {
      super(other.fields());
    }

    /** {@code live} is production, {@code test} staging and development. */
    public ListRuleProposalsQuery environment(String value) {
      setField("environment", value);
      return this;
    }
  }

  /** Of {@link Operations#proposeRules}. */
  public static final class ProposeRulesQuery extends Body {
    /** Without any field. */
    public ProposeRulesQuery() {}

    /** With the fields of another one. */
    public ProposeRulesQuery(ProposeRulesQuery other) {
      super(other.fields());
    }

    /** {@code live} is production, {@code test} staging and development. */
    public ProposeRulesQuery environment(String value) {
      setField("environment", value);
      return this;
    }
  }

  /** Of {@link Operations#dismissRuleProposal}. */
  public static final class DismissRuleProposalQuery extends Body {
    /** Without any field. */
    public DismissRuleProposalQuery() {}

    /** With the fields of another one. */
    public DismissRuleProposalQuery(DismissRuleProposalQuery other) {
      super(other.fields());
    }

    /** {@code live} is production, {@code test} staging and development. */
    public DismissRuleProposalQuery environment(String value) {
      setField("environment", value);
      return this;
    }
  }

  /** Of {@link Operations#getWeightsSuggestion}. */
  public static final class GetWeightsSuggestionQuery extends Body {
    /** Without any field. */
    public GetWeightsSuggestionQuery() {}

    /** With the fields of another one. */
    public GetWeightsSuggestionQuery(GetWeightsSuggestionQuery other) {
      super(other.fields());
    }

    /** {@code live} is production, {@code test} staging and development. */
    public GetWeightsSuggestionQuery environment(String value) {
      setField("environment", value);
      return this;
    }
  }

  /** Of {@link Operations#listListEntries}. */
  public static final class ListListEntriesQuery extends Body {
    /** Without any field. */
    public ListListEntriesQuery() {}

    /** With the fields of another one. */
    public ListListEntriesQuery(ListListEntriesQuery other) {
      super(other.fields());
    }

    /** Beginning of the value. */
    public ListListEntriesQuery q(String value) {
      setField("q", value);
      return this;
    }

    /** How many per page, at most. */
    public ListListEntriesQuery limit(long value) {
      setField("limit", value);
      return this;
    }

    /** {@code next_cursor} of the page before; the first page when left out. */
    public ListListEntriesQuery cursor(String value) {
      setField("cursor", value);
      return this;
    }
  }

  /** Of {@link Operations#getPerformance}. */
  public static final class GetPerformanceQuery extends Body {
    /** Without any field. */
    public GetPerformanceQuery() {}

    /** With the fields of another one. */
    public GetPerformanceQuery(GetPerformanceQuery other) {
      super(other.fields());
    }

    /** {@code live} is production, {@code test} staging and development. */
    public GetPerformanceQuery environment(String value) {
      setField("environment", value);
      return this;
    }

    /** Start of the window; 30 days before its end when left out. */
    public GetPerformanceQuery from(String value) {
      setField("from", value);
      return this;
    }

    /** End of the window, exclusive; now when left out. */
    public GetPerformanceQuery to(String value) {
      setField("to", value);
      return this;
    }
  }

  /** Of {@link Operations#listReviews}. */
  public static final class ListReviewsQuery extends Body {
    /** Without any field. */
    public ListReviewsQuery() {}

    /** With the fields of another one. */
    public ListReviewsQuery(ListReviewsQuery other) {
      super(other.fields());
    }

    /** Only reviews of this state. */
    public ListReviewsQuery state(String value) {
      setField("state", value);
      return this;
    }

    /** Only those that the member with this id takes care of, or with {@code none} nobody does. */
    public ListReviewsQuery assignee(String value) {
      setField("assignee", value);
      return this;
    }

    /** How many per page, at most. */
    public ListReviewsQuery limit(long value) {
      setField("limit", value);
      return this;
    }

    /** {@code next_cursor} of the page before; the first page when left out. */
    public ListReviewsQuery cursor(String value) {
      setField("cursor", value);
      return this;
    }
  }
}
