// Bodies of requests and responses, as the service documents them.
// Generated from docs/openapi.json: make reference
//
// A response may have more fields than are here: they are added within version 1.

/** The values that there are now. Others may come. */
export type Open<Values extends string> = Values | (string & {});

export interface AccountAnswer {
  /** When it was seen first, to the second. */
  first_seen_at: string;
  /** When it was seen last. */
  last_seen_at: string;
  /** The newest 100, the one seen last first. */
  addresses: Array<SeenAddress>;
  /** The newest 100, the one seen last first. */
  countries: Array<SeenCountry>;
  /** Its labeled events of the last 400 days. */
  labels: LabelCounts;
  /** Notes about it. */
  notes_count: number;
  /** While counts are rebuilt after an upgrade: `velocity` leaves out earlier events. Else absent. */
  counted_since?: string;
  /** The customer's id of the account that the visitor acts for. Opaque: no e-mail address. */
  account_id: string;
  /** Of the account, now. */
  velocity: AccountVelocity;
  /** The newest 100 identifiable visitors that acted for it, the one seen last first. */
  visitors: Array<VisitorOfAccount>;
}

export interface AccountOfVisitor {
  /** The customer's id of the account that the visitor acts for. Opaque: no e-mail address. */
  account_id: string;
  /** `visitor_confidence` of the visitor's last event for it. */
  confidence: number;
  /** When it was seen first. */
  first_seen_at: string;
  /** When it was seen last. */
  last_seen_at: string;
}

export interface AccountRow {
  /** The customer's id of the account that the visitor acts for. Opaque: no e-mail address. */
  account_id: string;
  /** When it was seen first, to the second. */
  first_seen_at: string;
  /** When it was seen last. */
  last_seen_at: string;
  /** The highest suspect level of its events in the last 24 hours; left out where none was scored. */
  level?: Open<"low" | "medium" | "high">;
  /** Of the account, now. */
  velocity: AccountVelocity;
}

export interface AccountThresholdsBody {
  /** Accounts of a visitor in 30 days from which `multi_account` fires. */
  multi_account: number;
  /** Accounts of a visitor within an hour from which `account_testing` fires. */
  account_testing_visitor: number;
  /** Accounts of an address within an hour from which `account_testing` fires. */
  account_testing_address: number;
  /** Visitors of an account in 30 days from which `account_sharing` fires. */
  account_sharing: number;
}

export interface AccountVelocity {
  /** Events of the account. */
  events: Record<string, number>;
  /** Identifiable visitors that acted for it. */
  visitors: Record<string, number>;
  /** Addresses that they came from. */
  addresses: Record<string, number>;
  /** Countries of these addresses. */
  countries: Record<string, number>;
}

export interface AccountsAnswer {
  /** The one that was seen last first. */
  accounts: Array<AccountRow>;
  /** Of the next page, which may be empty; left out on the last one. */
  next_cursor?: string;
  /** While counts are rebuilt after an upgrade: `velocity` leaves out earlier events. Else absent. */
  counted_since?: string;
}

export interface AddEntriesBody {
  /** At most 1,000. A value that is in the list gets a new note and expiry. */
  entries: Array<NewEntryBody>;
}

export interface AddedBody {
  /** Values that were not in the list. */
  added: number;
  /** Values that were. */
  replaced: number;
}

export interface AddressVelocity {
  /** Events from the address. */
  events: Record<string, number>;
  /** Identifiable visitors that came from it. */
  visitors: Record<string, number>;
  /** Accounts that they acted for; each sign-up without an account is one. */
  accounts: Record<string, number>;
}

export interface AssignReviewBody {
  /** The member who takes care of it; `null` = nobody. */
  assignee?: string | null;
}

export interface BrowserKeysBody {
  /** Start of the window. */
  from: string;
  /** End of the window, exclusive. */
  to: string;
  /** Visitors who have such keys. */
  visitors: number;
  /** The keys themselves: a browser has one on each site. */
  keys: number;
}

export interface ChallengeAnswer {
  /** 32 random bytes in base64, for one use. */
  challenge: string;
  /** Five minutes after issue. */
  expires_at: string;
}

export interface ChangeBody {
  /** What happened. */
  type: Open<"event.created" | "event.updated" | "event.erased">;
  /** When: of `event.created` the arrival of the event. */
  at: string;
  /** UUIDv7 of the request; it sorts by time. */
  request_id: string;
  /** The event as it is now, a row of `GET /events`; left out once it is erased or too old to be read. */
  event?: EventBody | UnreadableEventBody;
  /** Of an updated event that is too old to be read: its label; `null` = it has none. */
  label?: Open<"fraud" | "legitimate"> | null;
  /** Of an updated event that is too old to be read: why it has it. */
  label_reason?: string | null;
}

export interface ChangesAnswer {
  /** Oldest first. */
  changes: Array<ChangeBody>;
  /** For what follows; every page has one. */
  next_cursor: string;
  /** Whether there is a next page now. */
  has_more: boolean;
}

export interface CloseReviewBody {
  /** What the event turned out to be. */
  label: "fraud" | "legitimate";
  /** Why. */
  label_reason?:
    | "account_takeover"
    | "bot"
    | "chargeback"
    | "multi_account"
    | "other"
    | "promo_abuse"
    | "scraping"
    | "spam";
  /** What was found. */
  note?: string;
}

export interface CreateListBody {
  /** Unique in the organization: `[a-z][a-z0-9_]{0,47}`. Rules name the list by it. */
  name: string;
  /** What its entries are, which never changes. A list of kind `address` has addresses and networks. */
  kind: "account" | "address" | "asn" | "country" | "origin" | "tag" | "visitor";
}

export interface CreateWebhookBody {
  /**
   * Where deliveries go: `https`, without user info or fragment, port 443 or one above 1023, and every address of
   * its host public.
   */
  url: string;
  /** `live`: production traffic; `test`: staging and development. */
  environment: "live" | "test";
  /** Event types to subscribe to. */
  events: Array<
    | "identification.completed"
    | "visitor.suspect"
    | "identification.refused"
    | "billing.status_changed"
    | "usage.daily_settled"
    | "webhook.test"
    | "review.opened"
    | "review.closed"
  >;
  /** May be empty. */
  description: string;
  /**
   * `json` is the signed envelope. `slack`, `discord` and `teams` (an Adaptive Card) are messages for people,
   * unsigned, and one for an identification, whichever events it causes. Default: `"json"`.
   */
  format?: "discord" | "json" | "slack" | "teams";
  /** Which events are sent; `null` or left out for all. */
  filter?: string | null;
}

export interface DecisionBody {
  /** What to do. */
  action: Open<"allow" | "review" | "challenge" | "block">;
  /** Id of the first rule that matched. */
  rule_id: string;
  /** Its name then. */
  rule: string;
}

export interface DetailBody {
  /** A path such as `sdk.version`; empty for the whole body. */
  field: string;
  /** What is the matter with it. */
  issue: Open<
    | "required"
    | "unknown_field"
    | "wrong_type"
    | "malformed_json"
    | "malformed_encoding"
    | "out_of_range"
    | "too_long"
    | "too_deep"
    | "invalid_url"
    | "not_public_address"
    | "unknown_event_type"
    | "requires_live"
    | "invalid_origin"
    | "unknown_signal"
    | "invalid_cursor"
    | "not_with_order"
    | "invalid_value"
    | "invalid_condition"
    | "too_expensive"
  >;
  /** Where it is. */
  location: Open<"body" | "query" | "header" | "path">;
}

export interface DuplicateAnswer {
  /** UUIDv7 of the request; it sorts by time. */
  request_id: string;
  /** The same was accepted before, and nothing changed. */
  duplicate?: boolean;
}

export interface EntriesBody {
  /** In the order of their values. */
  entries: Array<EntryBody>;
  /** Of the next page; left out on the last one. */
  next_cursor?: string;
}

export interface EntryBody {
  /** In its one spelling: networks without host bits, lower-case origins, upper-case countries. */
  value: string;
  /** Why it is there. */
  note: string;
  /** When the entry expires. */
  expires_at: string | null;
  /** When it was added. */
  created_at: string;
  /** The member who added it; left out where a management key did. */
  created_by?: string;
}

export interface ErrorBody {
  /** What was refused. */
  error: Fault;
  /** UUIDv7 of the request; it sorts by time. */
  request_id: string;
}

export interface EventBody {
  /** UUIDv7 of the request; it sorts by time. */
  request_id: string;
  /** Stable id of the visitor, within the organization. */
  visitor_id: string;
  /** Whether the organization sees this visitor for the first time. */
  visitor_is_new: boolean;
  /** `false` when the report carried too little to identify anyone. The request is still scored. */
  identifiable: boolean;
  /**
   * `90` to `100`: nothing that decided could have been copied. `85` to `89`: the same visitor by all that is known,
   * not proven. `0`: a new visitor id.
   */
  visitor_confidence: number;
  /**
   * The browser signed the report with the key that its token had before: neither was copied to another one. `false`
   * on a first visit, before which there is no key.
   */
  proven: boolean;
  /** `enriched`, or `unavailable` when the network look-up could not run. */
  state: Open<"enriched" | "unavailable">;
  /** Why `state` is `unavailable`. */
  reason?: Open<"no_network_data" | "private_address" | "lookup_failed">;
  /** From the threshold in force: `low` below it, `high` from twice of it. Left out when not scored. */
  suspect_level?: Open<"low" | "medium" | "high">;
  /** What the rules of the organization decided; left out where none matched. */
  decision?: DecisionBody;
  /** When the request arrived. */
  occurred_at: string;
  /** Environment of the key. */
  environment: string;
  /** Scoring profile. */
  platform: string;
  /** Which SDK sent the report, such as `web`, `ios`, `flutter-android`. */
  sdk_platform: string;
  /** Its version; `unknown` when it did not say. */
  sdk_version: string;
  /** Site that the request came from; left out for native apps. */
  origin?: string;
  /** The caller's own reference, shown again on the event and in webhooks. */
  tag?: string;
  /** The customer's id of the account that the visitor acts for. Opaque: no e-mail address. */
  account_id?: string;
  /** Whether a secret key named the account; beside `account_id` alone. */
  account_verified?: boolean;
  /** What the visitor does, such as `sign_up`, `log_in` or `checkout`. */
  action?: string;
  /** What the event turned out to be; left out where nobody has said. */
  label?: Open<"fraud" | "legitimate">;
  /** Why it has that label. */
  label_reason?: Open<
    | "chargeback"
    | "account_takeover"
    | "multi_account"
    | "promo_abuse"
    | "bot"
    | "scraping"
    | "spam"
    | "other"
  >;
  /** The visitor's address. */
  ip_address: string;
  /** ISO 3166-1 alpha-2. */
  country_code?: string;
  /** The country in English. */
  country_name?: string;
  /** Number of the autonomous system. */
  asn?: string;
  /** Name of the network. */
  asn_name?: string;
  /** The strongest that applies; left out for an ordinary connection. */
  anonymity_network?: Open<"tor" | "vpn" | "proxy" | "hosting">;
  /** Browser or app. */
  agent?: string;
  /** Its version. */
  agent_version?: string;
  /** Operating system. */
  os?: string;
  /** What kind of device it is. */
  device_kind?: Open<"desktop" | "mobile" | "tablet" | "server">;
  /** Who is at it. */
  visitor_kind?: Open<"human" | "ai_bot" | "automation" | "search_crawler">;
  /** Sum of the weights of the signals that fired. Absent or `null` when not scored. */
  suspect_score: number | null;
  /** What fired, heaviest first. */
  triggers: Array<EventTriggerBody>;
  /** Each signal that fired, heaviest first: the parts of `triggers`. Left out of events stored before 0.2.0. */
  signals?: Array<TriggerBody>;
  /** Whether the archived submission exists. */
  has_document: boolean;
  /**
   * What the browser signed, beside `proven: true`: whose visit it is, and by a newer SDK also account, action and
   * tag of the request, or that it had none. What was set of the event later is not covered.
   */
  proof_covers?: Array<string>;
  /**
   * How often and with whom the visitor, the account and the address were seen, this event included; without it if
   * its report was sent before (`replayed`).
   */
  velocity?: VelocityBody;
}

export interface EventDetailBody {
  /** UUIDv7 of the request; it sorts by time. */
  request_id: string;
  /** Stable id of the visitor, within the organization. */
  visitor_id: string;
  /** Whether the organization sees this visitor for the first time. */
  visitor_is_new: boolean;
  /** `false` when the report carried too little to identify anyone. The request is still scored. */
  identifiable: boolean;
  /**
   * `90` to `100`: nothing that decided could have been copied. `85` to `89`: the same visitor by all that is known,
   * not proven. `0`: a new visitor id.
   */
  visitor_confidence: number;
  /**
   * The browser signed the report with the key that its token had before: neither was copied to another one. `false`
   * on a first visit, before which there is no key.
   */
  proven: boolean;
  /** `enriched`, or `unavailable` when the network look-up could not run. */
  state: Open<"enriched" | "unavailable">;
  /** Why `state` is `unavailable`. */
  reason?: Open<"no_network_data" | "private_address" | "lookup_failed">;
  /** From the threshold in force: `low` below it, `high` from twice of it. Left out when not scored. */
  suspect_level?: Open<"low" | "medium" | "high">;
  /** What the rules of the organization decided; left out where none matched. */
  decision?: DecisionBody;
  /** When the request arrived. */
  occurred_at: string;
  /** Environment of the key. */
  environment: string;
  /** Scoring profile. */
  platform: string;
  /** Which SDK sent the report, such as `web`, `ios`, `flutter-android`. */
  sdk_platform: string;
  /** Its version; `unknown` when it did not say. */
  sdk_version: string;
  /** Site that the request came from; left out for native apps. */
  origin?: string;
  /** The caller's own reference, shown again on the event and in webhooks. */
  tag?: string;
  /** The customer's id of the account that the visitor acts for. Opaque: no e-mail address. */
  account_id?: string;
  /** Whether a secret key named the account; beside `account_id` alone. */
  account_verified?: boolean;
  /** What the visitor does, such as `sign_up`, `log_in` or `checkout`. */
  action?: string;
  /** What the event turned out to be; left out where nobody has said. */
  label?: Open<"fraud" | "legitimate">;
  /** Why it has that label. */
  label_reason?: Open<
    | "chargeback"
    | "account_takeover"
    | "multi_account"
    | "promo_abuse"
    | "bot"
    | "scraping"
    | "spam"
    | "other"
  >;
  /** The visitor's address. */
  ip_address: string;
  /** ISO 3166-1 alpha-2. */
  country_code?: string;
  /** The country in English. */
  country_name?: string;
  /** Number of the autonomous system. */
  asn?: string;
  /** Name of the network. */
  asn_name?: string;
  /** The strongest that applies; left out for an ordinary connection. */
  anonymity_network?: Open<"tor" | "vpn" | "proxy" | "hosting">;
  /** Browser or app. */
  agent?: string;
  /** Its version. */
  agent_version?: string;
  /** Operating system. */
  os?: string;
  /** What kind of device it is. */
  device_kind?: Open<"desktop" | "mobile" | "tablet" | "server">;
  /** Who is at it. */
  visitor_kind?: Open<"human" | "ai_bot" | "automation" | "search_crawler">;
  /** Sum of the weights of the signals that fired. Absent or `null` when not scored. */
  suspect_score: number | null;
  /** What fired, heaviest first. */
  triggers: Array<EventTriggerBody>;
  /** Each signal that fired, heaviest first: the parts of `triggers`. Left out of events stored before 0.2.0. */
  signals?: Array<TriggerBody>;
  /** Whether the archived submission exists. */
  has_document: boolean;
  /**
   * What the browser signed, beside `proven: true`: whose visit it is, and by a newer SDK also account, action and
   * tag of the request, or that it had none. What was set of the event later is not covered.
   */
  proof_covers?: Array<string>;
  /**
   * How often and with whom the visitor, the account and the address were seen, this event included; without it if
   * its report was sent before (`replayed`).
   */
  velocity?: VelocityBody;
  /** The archived submission and what scored it; `null` where none was kept. Its contents are not a public contract. */
  document: Record<string, unknown> | null;
  /** Rules in shadow mode that matched; left out where none did. */
  shadow?: Array<ShadowBody>;
  /** The deferred report, when one arrived. Its contents are not a public contract. */
  deferred_signals?: Record<string, unknown>;
}

export interface EventTriggerBody {
  /** The group of signals that fired. */
  signal: Open<
    | "bot"
    | "tampering"
    | "tor"
    | "vpn"
    | "proxy"
    | "residential_proxy"
    | "ip_reputation"
    | "environment"
    | "integrity"
    | "location"
    | "privacy"
    | "velocity"
    | "replay"
    | "rarity"
    | "account"
  >;
  /** What the group added to the score. */
  weight: number;
  /** How well founded it is; it does not change the weight. */
  confidence: Open<"high" | "low" | "medium">;
}

export interface EventsAnswer {
  /**
   * Newest first, unless the `order` was another. An event that is corrupt in the store has a row with `request_id`
   * and `error` alone: look for `error` before other fields.
   */
  rows: Array<EventBody | UnreadableEventBody>;
  /** As asked for; 1 where a cursor asked for it. */
  page: number;
  /** The most events that a page has: the `limit` of the request. */
  page_size: number;
  /** For the next page; left out on the last one, of which the feed has none. */
  next_cursor?: string;
  /** Of the feed: whether there is a next page now. */
  has_more?: boolean;
}

export interface Fault {
  /** For programs. */
  code: Open<
    | "bad_request"
    | "unauthorized"
    | "billing_blocked"
    | "no_credit"
    | "insufficient_role"
    | "cross_origin_request"
    | "secure_connection_required"
    | "not_found"
    | "event_not_found"
    | "method_not_allowed"
    | "request_timeout"
    | "revision_conflict"
    | "sdk_key_revoked"
    | "proxy_key_revoked"
    | "key_limit"
    | "supplement_conflict"
    | "list_exists"
    | "list_limit"
    | "list_permanent"
    | "list_in_use"
    | "proposal_limit"
    | "review_closed"
    | "review_open"
    | "note_limit"
    | "member_exists"
    | "member_limit"
    | "member_invited"
    | "member_suspended"
    | "last_admin"
    | "webhook_limit"
    | "webhook_busy"
    | "webhook_paused"
    | "webhook_unsigned"
    | "view_exists"
    | "view_limit"
    | "payload_too_large"
    | "unsupported_media_type"
    | "invalid_visitor_metadata"
    | "invalid_request_id"
    | "invalid_window"
    | "validation_error"
    | "idempotency_key_too_long"
    | "invalid_supplement"
    | "rate_limited"
    | "header_fields_too_large"
    | "internal_error"
    | "service_unavailable"
  >;
  /** For people: what to do about it. */
  message: string;
  /** The HTTP status. */
  status: number;
  /** Each fault in the request. */
  details?: Array<DetailBody>;
}

export interface HealthBody {
  /** The process is up. */
  status: Open<"ok">;
  /** Version of the service. */
  version: string;
}

export interface IdentifyAnswer {
  /** UUIDv7 of the request; it sorts by time. */
  request_id: string;
  /** Stable id of the visitor, within the organization. */
  visitor_id: string;
  /** Whether the organization sees this visitor for the first time. */
  visitor_is_new: boolean;
  /** `false` when the report carried too little to identify anyone. The request is still scored. */
  identifiable: boolean;
  /**
   * `90` to `100`: nothing that decided could have been copied. `85` to `89`: the same visitor by all that is known,
   * not proven. `0`: a new visitor id.
   */
  visitor_confidence: number;
  /**
   * The browser signed the report with the key that its token had before: neither was copied to another one. `false`
   * on a first visit, before which there is no key.
   */
  proven: boolean;
  /** `enriched`, or `unavailable` when the network look-up could not run. */
  state: Open<"enriched" | "unavailable">;
  /** Why `state` is `unavailable`. */
  reason?: Open<"no_network_data" | "private_address" | "lookup_failed">;
  /** From the threshold in force: `low` below it, `high` from twice of it. Left out when not scored. */
  suspect_level?: Open<"low" | "medium" | "high">;
  /** What the rules of the organization decided; left out where none matched. */
  decision?: DecisionBody;
  /** Allows the deferred report of this request to be sent, for 24 hours. */
  deferred_token: string;
  /** This is the response of an earlier request with the same `Idempotency-Key`; nothing changed. */
  duplicate?: boolean;
  /** The web SDK renews its token and key. Only to a public key, and only `true`. */
  client_token_renew?: boolean;
  /** Sum of the weights of the signals that fired. Absent or `null` when not scored. */
  suspect_score?: number;
  /** What fired, heaviest first. */
  triggers?: Array<TriggerBody>;
  /**
   * The verdict as a JWS, for a backend that verifies it by the organization's keys (`getVerdictKeys`). Only where
   * the request asked for it.
   */
  verdict?: string;
}

export interface IdentifyBody {
  /** The SDK that collected the report. */
  sdk: Sdk;
  /** The report that an SDK collected. What is in it is not a public contract. */
  signals: Record<string, unknown>;
  /** The caller's own reference, shown again on the event and in webhooks. */
  tag?: string;
  /** The customer's id of the account that the visitor acts for. Opaque: no e-mail address. */
  account_id?: string;
  /** What the visitor does, such as `sign_up`, `log_in` or `checkout`. */
  action?: string;
  /** Whether to respond with a signed `verdict`, too. Default: `false`. */
  verdict?: boolean;
}

export interface InviteMemberBody {
  /** E-mail address, in lower case. Nothing is sent there. */
  email: string;
  /** For people. */
  name: string;
  /** What the member may do. */
  role: "admin" | "analyst" | "developer" | "viewer";
}

export interface InvitedMemberBody {
  /** The member. */
  member: MemberBody;
  /** Hand it to the member; it works once. Shown this once. */
  invitation_url: string;
  /** Until when it works, seven days from now. */
  expires_at: string;
}

export interface IssueProxyKeyBody {
  /** A name for people. */
  name: string;
  /** Environment of the key. */
  environment: "development" | "production" | "staging";
  /** When the key stops working; `null` = never. */
  expires_at?: string | null;
}

export interface IssueSdkKeyBody {
  /** A name for people. */
  name: string;
  /** Environment of the key. */
  environment: "development" | "production" | "staging";
  /** When the key stops working; `null` = never. */
  expires_at?: string | null;
  /** `public` for SDKs, `secret` for servers. Default: `"public"`. */
  kind?: "public" | "secret";
  /** `["web"]` when left out. */
  platforms?: Array<"android" | "ios" | "web">;
  /** Sites that may use the key. Default: `[]`. */
  allowed_origins?: Array<string>;
}

export interface IssuedProxyKeyBody {
  /** The proxy key. */
  credential: ProxyKeyBody;
  /** Shown this once. */
  secret: string;
}

export interface IssuedSdkKeyBody {
  /** The SDK key. */
  key: SdkKeyBody;
  /** Shown this once. */
  secret: string;
}

export interface IssuedWebhookBody {
  /** The endpoint. */
  endpoint: WebhookBody;
  /** The whole signing secret, shown this once; empty for a chat format. */
  secret: string;
  /** The same for a library of Standard Webhooks: `whsec_` and base64. Empty for a chat format. */
  standard_secret: string;
}

export interface JwkBody {
  /** Always `OKP`. */
  kty: string;
  /** Always `Ed25519`. */
  crv: string;
  /** The key, base64url. */
  x: string;
  /** Its thumbprint (RFC 7638). */
  kid: string;
  /** Always `sig`. */
  use: string;
  /** Always `EdDSA`. */
  alg: string;
}

export interface LabelAnswer {
  /** UUIDv7 of the request; it sorts by time. */
  request_id: string;
  /** What the event turned out to be. */
  label: Open<"fraud" | "legitimate"> | null;
  /** Why it has that label. */
  label_reason: string | null;
}

export interface LabelBody {
  /** What the event turned out to be; `null` removes the label. */
  label: "fraud" | "legitimate" | null;
  /** Why; none when left out. */
  label_reason?:
    | "account_takeover"
    | "bot"
    | "chargeback"
    | "multi_account"
    | "other"
    | "promo_abuse"
    | "scraping"
    | "spam" | null;
}

export interface LabelCounts {
  /** Labeled `fraud`. */
  fraud: number;
  /** Labeled `legitimate`. */
  legitimate: number;
}

export interface ListBody {
  /** Its id. */
  id: string;
  /** Unique in the organization: `[a-z][a-z0-9_]{0,47}`. Rules name the list by it. */
  name: string;
  /** What its entries are, which never changes. A list of kind `address` has addresses and networks. */
  kind: Open<"account" | "address" | "asn" | "country" | "origin" | "tag" | "visitor">;
  /** How many entries it has. */
  entries: number;
  /** When it was made. */
  created_at: string;
  /** When its name or its entries were changed last. */
  updated_at: string;
}

export interface ListsBody {
  /** In the order of their names. */
  lists: Array<ListBody>;
}

export interface ManagementKeyBody {
  /** Id of the key. */
  key_id: string;
  /** The organization every management route acts on. */
  organization_id: string;
  /** A name for people. */
  name: string;
  /** What the key may do. */
  role: Open<"admin" | "developer">;
  /** Region of the key. */
  region: string;
}

export interface MemberBody {
  /** Its id. */
  id: string;
  /** E-mail address, in lower case. Nothing is sent there. */
  email: string;
  /** For people. */
  name: string;
  /** What the member may do. */
  role: Open<"admin" | "developer" | "analyst" | "viewer">;
  /** `invited` until it comes in for the first time. */
  status: Open<"invited" | "active" | "suspended">;
  /** Whether it needs a one-time code beside its password. */
  has_totp: boolean;
  /** Whether it can sign in by a password. */
  has_password: boolean;
  /** Whether it has signed in by the OpenID provider. */
  has_provider: boolean;
  /** When it was made. */
  created_at: string;
  /** The member who invited it; left out where nobody did. */
  created_by?: string;
  /** When it signed in last. */
  last_signed_in_at: string | null;
}

export interface MembersBody {
  /** Oldest first. */
  members: Array<MemberBody>;
}

export interface NewAccountThresholds {
  /** Accounts of a visitor in 30 days from which `multi_account` fires. */
  multi_account?: number;
  /** Accounts of a visitor within an hour from which `account_testing` fires. */
  account_testing_visitor?: number;
  /** Accounts of an address within an hour from which `account_testing` fires. */
  account_testing_address?: number;
  /** Visitors of an account in 30 days from which `account_sharing` fires. */
  account_sharing?: number;
}

export interface NewEntryBody {
  /**
   * A visitor id, an account id, an address or network, a country code, an AS number, an origin or a tag, as the
   * kind of the list is.
   */
  value: string;
  /** Why it is there. Default: `""`. */
  note?: string;
  /** When the entry expires; `null` = never. */
  expires_at?: string | null;
}

export interface NewNoteBody {
  /** What was written. */
  text: string;
}

export interface NewProposalBody {
  /** Of the ruleset that it was made from. */
  revision: number;
  /** All rules, in their order, as a save takes them. */
  rules: Array<RuleFields>;
  /** Why, for admins. Default: `""`. */
  note?: string;
}

export interface NoteBody {
  /** Id of the note. */
  id: string;
  /** What was written. */
  text: string;
  /** When it was written. */
  created_at: string;
  /** The member who wrote it; left out where a management key did. */
  author?: string;
}

export interface NotesBody {
  /** Newest first: at most 100. */
  notes: Array<NoteBody>;
}

export interface OpenReviewBody {
  /** UUIDv7 of the request; it sorts by time. */
  request_id: string;
}

export interface PerformanceBody {
  /** Start of the first UTC day. */
  from: string;
  /** End of the last UTC day. */
  to: string;
  /** Of the whole window. */
  total: PerformanceTotal;
  /** Most events first. */
  signals: Array<PerformanceLine>;
  /** Groups of signals, most events first. */
  groups: Array<PerformanceLine>;
  /** Those in force in their order, then former ones. An event counts for the rule that decided and shadows. */
  rules: Array<PerformanceLine>;
  /** `low`, `medium` and `high`, each by itself. */
  levels: Array<PerformanceLine>;
  /** Labeled events by score, lowest first. */
  scores: Array<PerformanceScores>;
}

export interface PerformanceLine {
  /** Of the signal, group, rule or level. */
  name: string;
  /** Id of the rule. */
  rule_id?: string;
  /** Events in which it fired, matched, or that have this level. */
  events: number;
  /** Of these, labeled ones. */
  labelled: number;
  /** Of these, fraud. */
  fraud: number;
  /** Of the labeled ones, legitimate. */
  legitimate: number;
  /** `fraud` of `labelled`. */
  precision: number | null;
  /** Lower end of its 95 % interval (Wilson). */
  precision_low: number | null;
  /** Upper end. */
  precision_high: number | null;
  /** `fraud` of all fraud in the window. */
  recall: number | null;
}

export interface PerformanceScores {
  /** Lowest score. */
  from: number;
  /** The score where the next line begins; `null` = there is none. */
  to: number | null;
  /** Of the labeled ones, fraud. */
  fraud: number;
  /** Of the labeled ones, legitimate. */
  legitimate: number;
}

export interface PerformanceTotal {
  /** Events. */
  events: number;
  /** Labeled events. */
  labelled: number;
  /** Of these, fraud. */
  fraud: number;
  /** Of these, legitimate. */
  legitimate: number;
}

export interface PlatformWeightsBody {
  /** Scoring profile. */
  platform: Open<"android" | "ios" | "web">;
  /** Whose configuration is in force. */
  scope: Open<"default" | "key" | "organization">;
  /** Whether this scope has its own saved configuration. */
  stored: boolean;
  /** Of the scope's own configuration; 0 when nothing is stored. */
  revision: number;
  /** Score from which a visitor is suspect. */
  suspect_threshold: number;
  /** Signal -> weight in force. */
  weights: Record<string, number>;
  /** Signal name to default weight. */
  defaults: Record<string, number>;
  /** Every signal of the platform. */
  signals: Array<string>;
  /** Which half of the VPN signals counts. */
  vpn_weights_mode: Open<"confidence" | "method">;
  /** Which half of the residential-proxy signals counts. */
  residential_proxy_weights_mode: Open<"confidence" | "method">;
  /** Of the scope's own configuration. */
  updated_at?: string;
  /** The member who saved it; left out where a management key did. */
  updated_by_user_id?: string;
}

export interface PreviewBody {
  /** All rules, in their order. */
  rules: Array<RuleFields>;
}

export interface PreviewedRule {
  /** Id of the rule. */
  rule_id?: string;
  /** Its name: unique, up to 80 characters. */
  name: string;
  /** Events that it would have decided, or matched in shadow mode. */
  matches: number;
  /** The newest of them. */
  examples: Array<string>;
  /** Events on which its evaluation failed: it does not match then. */
  errors: number;
  /** Why, on the newest of them. */
  error?: string;
}

export interface ProposalBody {
  /** Id of the proposal. */
  id: string;
  /** Of the ruleset that it was made from. */
  revision: number;
  /** In their order. */
  rules: Array<ProposedRule>;
  /** Why, for admins. */
  note: string;
  /** When it was made. */
  created_at: string;
  /** The member who made it; left out where a management key did. */
  author?: string;
}

export interface ProposalsBody {
  /** Oldest first: at most 20. */
  proposals: Array<ProposalBody>;
}

export interface ProposedRule {
  /** Left out of a rule that is not in force: a save of these rules makes it. */
  id?: string;
  /** Its name: unique, up to 80 characters. */
  name: string;
  /** When it matches, in CEL (the Common Expression Language). */
  condition: string;
  /** What it decides. */
  action: Open<"allow" | "block" | "challenge" | "review">;
  /** `shadow`: it is evaluated and counted, and decides nothing. `off`: neither. */
  mode: Open<"active" | "off" | "shadow">;
  /** For people. */
  note: string;
}

export interface ProxyKeyBody {
  /** Its id. */
  id: string;
  /** A name for people. */
  name: string;
  /** Environment of the key. */
  environment: Open<"development" | "production" | "staging">;
  /** Region of the key. */
  region: string;
  /** Start of the secret. */
  prefix: string;
  /** Last four characters of the secret. */
  last4: string;
  /** `active` until it is revoked, also when it has expired. */
  status: Open<"active" | "revoked">;
  /** When it was last used, to the minute. */
  last_used_at: string | null;
  /** When it stops working. */
  expires_at: string | null;
  /** When it was made. */
  created_at: string;
  /** When it was revoked. */
  revoked_at: string | null;
}

export interface ProxyKeysBody {
  /** Oldest first, revoked included. */
  credentials: Array<ProxyKeyBody>;
  /** Of the next page; left out on the last one, and where no page was asked for. */
  next_cursor?: string;
}

export interface QualityBody {
  /** Of the labeled events that reach it, fraud; `null` = none does. */
  precision: number | null;
  /** Of the fraud, that which reaches it. */
  recall: number | null;
}

export interface QueuedDeliveryBody {
  /** Of the delivery that is on its way. */
  event_id: string;
}

export interface ReadinessBody {
  /** Whether it can serve. */
  status: Open<"ready" | "unavailable">;
  /** What that depends on, part by part. */
  checks: ReadinessChecks;
}

export interface ReadinessChecks {
  /**
   * `full` when there is no space for writes, `unreachable` while the database does not respond or the service waits
   * to start, `stalled` while a commit takes over 10 s, `failing` when writes were tried for 10 s and none was
   * stored, `lost` when the store's file was replaced, removed, cut or overwritten.
   */
  store: Open<"failing" | "full" | "lost" | "ok" | "stalled" | "unreachable">;
  /**
   * `behind` while a delivery to an endpoint that responds is over a minute late, `stopped` while nobody sends; it
   * never fails readiness.
   */
  webhooks: Open<"behind" | "ok" | "stopped">;
  /** State of the network databases; it never fails readiness. */
  network_data: Open<"missing" | "ok" | "stale">;
}

export interface RedeliverWebhookBody {
  /** An event that was sent to this endpoint in the last 30 days. */
  event_id: string;
}

export interface RemoveEntriesBody {
  /** At most 1,000. One that is not in the list is passed over. */
  values: Array<string>;
}

export interface ReplaceOriginsBody {
  /** The whole new list, such as `https://shop.example` or `https://*.shop.example`. */
  allowed_origins: Array<string>;
}

export interface ReviewAnswer {
  /** The review. */
  review: ReviewBody;
}

export interface ReviewBody {
  /** Id of the review; it sorts by time. */
  id: string;
  /** `open` or `closed`. */
  state: Open<"open" | "closed">;
  /** Of its event. */
  environment: string;
  /** UUIDv7 of the request; it sorts by time. */
  request_id: string;
  /** Stable id of the visitor, within the organization. */
  visitor_id: string;
  /** The customer's id of the account that the visitor acts for. Opaque: no e-mail address. */
  account_id?: string;
  /** Sum of the weights of the signals that fired. Absent or `null` when not scored. */
  suspect_score: number | null;
  /** Of its event; left out when not scored. */
  suspect_level?: string;
  /** Id of the rule that opened it; left out where a person did. */
  rule_id?: string;
  /** Name of that rule then. */
  rule?: string;
  /** When it was opened. */
  opened_at: string;
  /** The member who opened it by hand. */
  opened_by?: string;
  /** When it was last opened again after it was closed; left out if never. */
  reopened_at?: string;
  /** The member who opened it again. */
  reopened_by?: string;
  /** The member who takes care of it; `null` = nobody. */
  assignee: string | null;
  /** When it was closed; left out while it is open. */
  closed_at?: string;
  /** The member who closed it. */
  closed_by?: string;
  /** What the event turned out to be; left out where nobody has said. */
  label?: Open<"fraud" | "legitimate">;
  /** Why it has that label. */
  label_reason?: Open<
    | "chargeback"
    | "account_takeover"
    | "multi_account"
    | "promo_abuse"
    | "bot"
    | "scraping"
    | "spam"
    | "other"
  >;
  /** What the person who closed it wrote. */
  note?: string;
}

export interface ReviewsBody {
  /** The one that was opened last first. */
  reviews: Array<ReviewBody>;
  /** Of the next page, which may be empty; left out on the last one. */
  next_cursor?: string;
}

export interface RevokeBrowserKeysBody {
  /** Start of the window. */
  from: string;
  /** End of the window, exclusive; now when left out, which is best. */
  to?: string;
}

export interface RiskWeightsBody {
  /** The organization that the key acts on. */
  organization_id: string;
  /** Whose weights they are. */
  scope: Open<"key" | "organization">;
  /** The SDK key; left out for those of the organization. */
  sdk_key_id?: string;
  /** The largest weight that may be given. */
  max_weight: number;
  /** Each platform once. */
  platforms: Array<PlatformWeightsBody>;
}

export interface RotateVerdictKeyBody {
  /** For how long verdicts by the previous key are accepted. Default: `24`. */
  previous_key_valid_hours?: number;
}

export interface RotateWebhookSecretBody {
  /** For how long the previous secret signs along. Default: `24`. */
  previous_secret_valid_hours?: number;
}

export interface RuleCounts {
  /** Events of the last 24 hours, from a full hour on, that it decided or matched in shadow mode. */
  matched_24h: number;
  /** The same of the last 30 days. */
  matched_30d: number;
  /** Events of the last 24 hours for which its evaluation failed. */
  errors_24h: number;
}

export interface RuleFields {
  /** Id of the rule. */
  id?: string;
  /** Its name: unique, up to 80 characters. */
  name: string;
  /** When it matches, in CEL (the Common Expression Language). */
  condition: string;
  /** What it decides. */
  action: "allow" | "block" | "challenge" | "review";
  /** `shadow`: it is evaluated and counted, and decides nothing. `off`: neither. Default: `"active"`. */
  mode?: "active" | "off" | "shadow";
  /** For people. Default: `""`. */
  note?: string;
  /** Ignored, so that a rule can be sent as it was read. */
  counts?: unknown;
}

export interface RuleRow {
  /** Id of the rule. */
  id: string;
  /** Its name: unique, up to 80 characters. */
  name: string;
  /** When it matches, in CEL (the Common Expression Language). */
  condition: string;
  /** What it decides. */
  action: Open<"allow" | "block" | "challenge" | "review">;
  /** `shadow`: it is evaluated and counted, and decides nothing. `off`: neither. */
  mode: Open<"active" | "off" | "shadow">;
  /** For people. */
  note: string;
  /** Whole hours: those that the window touches. */
  counts: RuleCounts;
}

export interface RulesAnswer {
  /** `live` is production, `test` staging and development. */
  environment: Open<"live" | "test">;
  /** Grows by one at each save; 0 = the initial ruleset. */
  revision: number;
  /** In their order: the first active one that matches decides. */
  rules: Array<RuleRow>;
  /** What may not be meant: see previews. */
  warnings?: Array<string>;
}

export interface RulesBody {
  /** The revision that was read. */
  revision: number;
  /** All rules, in their order: the first that matches decides. */
  rules: Array<RuleFields>;
}

export interface RulesPreview {
  /** Events that were looked at. */
  events: number;
  /** In the order in which they were sent. */
  rules: Array<PreviewedRule>;
  /** Action -> events as they were decided; `none` = by no rule. */
  before: Record<string, number>;
  /** The same by these rules. */
  after: Record<string, number>;
  /** In words: rules that match every event or read labels, literals that no event can have. */
  warnings?: Array<string>;
}

export interface SaveWeightsBody {
  /** Score from which a visitor is suspect. */
  suspect_threshold?: number;
  /** Signal name to weight. Default: `{}`. */
  weights?: Record<string, number>;
  /** Which half of the VPN signals counts. */
  vpn_weights_mode?: "confidence" | "method";
  /** Which half of the residential-proxy signals counts. */
  residential_proxy_weights_mode?: "confidence" | "method";
  /** The stored revision that the change was made upon; left out = whatever it is. */
  revision?: number;
}

export interface Sdk {
  /** `web`, `ios`, `android`, or a bridge such as `react-native-ios`; `web` when left out. */
  platform?: string;
  /** Version of the SDK. */
  version?: string;
}

export interface SdkKeyBody {
  /** Its id. */
  id: string;
  /** A name for people. */
  name: string;
  /** Environment of the key. */
  environment: Open<"development" | "production" | "staging">;
  /** Region of the key. */
  region: string;
  /** Start of the secret. */
  prefix: string;
  /** Last four characters of the secret. */
  last4: string;
  /** `active` until it is revoked, also when it has expired. */
  status: Open<"active" | "revoked">;
  /** When it was last used, to the minute. */
  last_used_at: string | null;
  /** When it stops working. */
  expires_at: string | null;
  /** When it was made. */
  created_at: string;
  /** When it was revoked. */
  revoked_at: string | null;
  /** `public` for SDKs, `secret` for servers. */
  kind: Open<"public" | "secret">;
  /** Public keys only. */
  platforms?: Array<Open<"android" | "ios" | "web">>;
  /** Public keys only. */
  allowed_origins?: Array<string>;
  /** The member who did it; left out where a management key did. */
  created_by?: string;
  /** The member who revoked it. */
  revoked_by?: string;
}

export interface SdkKeysBody {
  /** Oldest first, revoked included. */
  keys: Array<SdkKeyBody>;
  /** Of the next page; left out on the last one, and where no page was asked for. */
  next_cursor?: string;
}

export interface SeenAddress {
  /** The address. */
  ip_address: string;
  /** ISO 3166-1 alpha-2. */
  country_code?: string;
  /** When it was seen first. */
  first_seen_at: string;
  /** When it was seen last. */
  last_seen_at: string;
}

export interface SeenCountry {
  /** ISO 3166-1 alpha-2. */
  country_code: string;
  /** When it was seen first. */
  first_seen_at: string;
  /** When it was seen last. */
  last_seen_at: string;
}

export interface SeenVisitorAnswer {
  /** When it was seen first, to the second. */
  first_seen_at: string;
  /** When it was seen last. */
  last_seen_at: string;
  /** The newest 100, the one seen last first. */
  addresses: Array<SeenAddress>;
  /** The newest 100, the one seen last first. */
  countries: Array<SeenCountry>;
  /** Its labeled events of the last 400 days. */
  labels: LabelCounts;
  /** Notes about it. */
  notes_count: number;
  /** While counts are rebuilt after an upgrade: `velocity` leaves out earlier events. Else absent. */
  counted_since?: string;
  /** Stable id of the visitor, within the organization. */
  visitor_id: string;
  /** Of the visitor, now. */
  velocity: VisitorVelocity;
  /** The newest 100 accounts that it acted for, the one seen last first. */
  accounts: Array<AccountOfVisitor>;
}

export interface SeenVisitorRow {
  /** Stable id of the visitor, within the organization. */
  visitor_id: string;
  /** When it was seen first, to the second. */
  first_seen_at: string;
  /** When it was seen last. */
  last_seen_at: string;
  /** The highest suspect level of its events in the last 24 hours; left out where none was scored. */
  level?: Open<"low" | "medium" | "high">;
  /** Of the visitor, now. */
  velocity: VisitorVelocity;
}

export interface SeenVisitorsAnswer {
  /** The one that was seen last first. */
  visitors: Array<SeenVisitorRow>;
  /** Of the next page, which may be empty; left out on the last one. */
  next_cursor?: string;
  /** While counts are rebuilt after an upgrade: `velocity` leaves out earlier events. Else absent. */
  counted_since?: string;
}

export interface SettingsBody {
  /** Whether responses and signed verdicts for public keys have the decision of the rules. */
  decision_in_response: boolean;
  /** Of the signals of the group `account`. */
  account_thresholds: AccountThresholdsBody;
  /** Identifications that it may send in a second; 0 = any number. Its operator sets it: `svc org rate-limit`. */
  rate_limit_per_s: number;
  /** For how many days its events are readable. The operator's setting of the service. */
  event_retention_days: number;
}

export interface ShadowBody {
  /** Id of the rule. */
  rule_id: string;
  /** Its name then. */
  rule: string;
  /** What it would have decided. */
  action: string;
}

export interface SignalBody {
  /** Permanent name of the signal. */
  name: string;
  /** The group that the signal belongs to. */
  group: Open<
    | "bot"
    | "tampering"
    | "tor"
    | "vpn"
    | "proxy"
    | "residential_proxy"
    | "ip_reputation"
    | "environment"
    | "integrity"
    | "location"
    | "privacy"
    | "velocity"
    | "replay"
    | "rarity"
    | "account"
  >;
  /** What it means. */
  description: string;
  /** Platforms on which it exists. */
  platforms: Array<Open<"android" | "ios" | "web">>;
  /** Platform to default weight. */
  default_weights: Record<string, number>;
  /** Of the VPN and residential-proxy families: the mode in which the signal fires. */
  mode?: Open<"confidence" | "method">;
  /** Version of the catalog that introduced it. */
  since: string;
}

export interface SignalsBody {
  /** Every signal. */
  signals: Array<SignalBody>;
  /** The largest weight that may be given. */
  max_weight: number;
}

export interface SuggestedWeightBody {
  /** Name of the signal. */
  signal: string;
  /** Its weight in force. */
  before: number;
  /** The suggested one. */
  after: number;
  /** Labeled events in which it fired: at least 10. */
  events: number;
  /** Of these, fraud. */
  fraud: number;
}

export interface SuggestionBody {
  /** Platform whose weights they are. */
  platform: string;
  /** Events labeled as fraud. */
  fraud: number;
  /** Events labeled as legitimate. */
  legitimate: number;
  /** The threshold in force, which keeps its meaning. */
  suspect_threshold: number;
  /** Events of each label without which nothing is suggested. */
  needed?: number;
  /** Whether every label was looked at; `false` = older ones were left out. `svc weights suggest` takes all. */
  is_complete?: boolean;
  /** By the weights in force; left out while there are too few labels. */
  before?: QualityBody;
  /** By the suggested weights; left out then, too. */
  after?: QualityBody;
  /** Signals that fired in at least 10 labeled events. All others keep theirs. */
  weights: Array<SuggestedWeightBody>;
}

export interface SupplementAnswer {
  /** UUIDv7 of the request; it sorts by time. */
  request_id: string;
  /** The same was accepted before, and nothing changed. */
  duplicate?: boolean;
}

export interface SupplementBody {
  /** The `deferred_token` of the identification. */
  token: string;
  /** The SDK that collected the report. */
  sdk: Sdk;
  /** The deferred report that an SDK collected. What is in it is not a public contract. */
  signals: Record<string, unknown>;
}

export interface TriggerBody {
  /** The signal. Names are permanent. */
  signal: Open<
    | "automation"
    | "headless"
    | "bot_user_agent"
    | "spoofed_crawler"
    | "ai_agent"
    | "search_crawler"
    | "anti_detect_browser"
    | "browser_tampering"
    | "os_mismatch"
    | "engine_mismatch"
    | "gpu_mismatch"
    | "developer_tools"
    | "app_tampering"
    | "forged_report"
    | "proof_failed"
    | "tor"
    | "vpn_public"
    | "vpn_timezone_mismatch"
    | "vpn_os_mismatch"
    | "vpn_auxiliary_mobile"
    | "vpn_relay"
    | "vpn_low"
    | "vpn_medium"
    | "vpn_high"
    | "public_proxy"
    | "hosting"
    | "residential_proxy_listed"
    | "residential_proxy_behavior"
    | "residential_proxy_low"
    | "residential_proxy_medium"
    | "residential_proxy_high"
    | "ip_attack_source"
    | "ip_email_spam"
    | "virtual_machine"
    | "emulator"
    | "simulator"
    | "cloned_app"
    | "rooted"
    | "jailbroken"
    | "frida"
    | "hooked"
    | "debugger"
    | "developer_options"
    | "unofficial_store"
    | "mitm_attack"
    | "attestation_failed"
    | "attestation_missing"
    | "factory_reset"
    | "clock_tampered"
    | "location_spoofing"
    | "incognito"
    | "privacy_settings"
    | "high_activity"
    | "velocity_ip"
    | "velocity_country"
    | "storage_renewed"
    | "new_visitor_burst"
    | "token_conflict"
    | "network_new_for_visitor"
    | "replayed"
    | "repeated_report"
    | "repeated_rare_report"
    | "key_shared"
    | "rare_device"
    | "unseen_rendering"
    | "multi_account"
    | "account_testing"
    | "account_sharing"
    | "account_new_device"
  >;
  /** The group that the signal belongs to. */
  group: Open<
    | "bot"
    | "tampering"
    | "tor"
    | "vpn"
    | "proxy"
    | "residential_proxy"
    | "ip_reputation"
    | "environment"
    | "integrity"
    | "location"
    | "privacy"
    | "velocity"
    | "replay"
    | "rarity"
    | "account"
  >;
  /** What the signal added to the score. */
  weight: number;
  /** How well founded it is; it does not change the weight. */
  confidence: Open<"high" | "low" | "medium">;
}

export interface UnreadableEventBody {
  /** UUIDv7 of the request; it sorts by time. */
  request_id: string;
  /**
   * `unreadable`: the event is corrupt in the store, and its other fields are missing. The operator of the service
   * can take it out.
   */
  error: Open<"unreadable">;
}

export interface UpdateEventBody {
  /** The account; `null` removes it. */
  account_id?: string | null;
  /** The action; `null` removes it. */
  action?: string | null;
  /** The tag; `null` removes it. */
  tag?: string | null;
  /** What the event turned out to be, for 400 days; `null` removes it, and the reason with it. */
  label?: "fraud" | "legitimate" | null;
  /** Why it has that label; only with a label. */
  label_reason?:
    | "account_takeover"
    | "bot"
    | "chargeback"
    | "multi_account"
    | "other"
    | "promo_abuse"
    | "scraping"
    | "spam" | null;
}

export interface UpdateListBody {
  /** Unique in the organization: `[a-z][a-z0-9_]{0,47}`. Rules name the list by it. */
  name?: string;
}

export interface UpdateMemberBody {
  /** For people. */
  name?: string;
  /** What the member may do. */
  role?: "admin" | "analyst" | "developer" | "viewer";
  /** `suspended`: may not sign in, and its sessions end. */
  status?: "active" | "suspended";
}

export interface UpdateSettingsBody {
  /** Whether responses and signed verdicts for public keys have the decision of the rules. */
  decision_in_response?: boolean;
  /** Of the signals of the group `account`. */
  account_thresholds?: NewAccountThresholds;
}

export interface UpdateWebhookBody {
  /**
   * Where deliveries go: `https`, without user info or fragment, port 443 or one above 1023, and every address of
   * its host public.
   */
  url?: string;
  /** `live`: production traffic; `test`: staging and development. */
  environment?: "live" | "test";
  /** The whole new list. */
  events?: Array<
    | "identification.completed"
    | "visitor.suspect"
    | "identification.refused"
    | "billing.status_changed"
    | "usage.daily_settled"
    | "webhook.test"
    | "review.opened"
    | "review.closed"
  >;
  /** A note for people. */
  description?: string;
  /** `true` holds deliveries back, `false` lets them go on. */
  paused?: boolean;
  /**
   * `json` is the signed envelope. `slack`, `discord` and `teams` (an Adaptive Card) are messages for people,
   * unsigned, and one for an identification, whichever events it causes.
   */
  format?: "discord" | "json" | "slack" | "teams";
  /** `null` removes it. */
  filter?: string | null;
}

export interface VelocityBody {
  /** Of the visitor. */
  visitor: VisitorVelocity;
  /** Of the address. */
  address: AddressVelocity;
  /** Of the account; left out without one. */
  account?: AccountVelocity;
}

export interface VerdictKeysBody {
  /** The key in force first, then the next one, then the previous one until it expires. */
  keys: Array<JwkBody>;
}

export interface VisitorOfAccount {
  /** Stable id of the visitor, within the organization. */
  visitor_id: string;
  /** `visitor_confidence` of its last event for the account. */
  confidence: number;
  /** When it was seen first. */
  first_seen_at: string;
  /** When it was seen last. */
  last_seen_at: string;
}

export interface VisitorVelocity {
  /** Events of the visitor. */
  events: Record<string, number>;
  /** Accounts that it acted for; each sign-up without an account is one. */
  accounts: Record<string, number>;
  /** Addresses that it came from; of IPv6, the /64. */
  addresses: Record<string, number>;
  /** Countries of these addresses. */
  countries: Record<string, number>;
}

export interface WebhookBody {
  /** Id of the endpoint. */
  id: string;
  /**
   * Where deliveries go: `https`, without user info or fragment, port 443 or one above 1023, and every address of
   * its host public.
   */
  url: string;
  /** A note for people. */
  description: string;
  /** `live`: production traffic; `test`: staging and development. */
  environment: Open<"live" | "test">;
  /** Types of events that it subscribes to. */
  events: Array<Open<
    | "billing.status_changed"
    | "identification.completed"
    | "identification.refused"
    | "review.closed"
    | "review.opened"
    | "usage.daily_settled"
    | "visitor.suspect"
    | "webhook.test"
  >
  >;
  /**
   * `failing` after five failed attempts in a row over at least ten minutes, a delivery that failed for good, or a
   * `410`. It is never switched off: the first `2xx` makes it `active` again.
   */
  status: Open<"active" | "failing" | "paused">;
  /**
   * When the first of its failed attempts in a row began, whatever its status; left out where the last attempt
   * succeeded. After five of them an endpoint for which more than 100 deliveries wait is tried after a twelfth of
   * the time since then, between 5 seconds and 5 minutes; the first success sends all that wait.
   */
  failing_since?: string;
  /**
   * `json` is the signed envelope. `slack`, `discord` and `teams` (an Adaptive Card) are messages for people,
   * unsigned, and one for an identification, whichever events it causes.
   */
  format: Open<"discord" | "json" | "slack" | "teams">;
  /**
   * Condition in CEL, as of a rule. Events of identifications and reviews are sent only where it is true; all others
   * whatever it says.
   */
  filter?: string;
  /**
   * Identifications of the last 24 hours that were held back because the evaluation of the filter failed; with a
   * filter alone. Whole hours: those that the window touches.
   */
  filter_errors_24h?: number;
  /** Last four characters of the signing secret; empty for a chat format. */
  secret_last4: string;
  /** During a rotation: when the previous secret stops signing. */
  previous_secret_expires_at?: string;
  /** Attempts in the last 24 hours that succeeded. */
  delivered_24h: number;
  /** Attempts in the last 24 hours that failed. */
  failed_24h: number;
  /** When it was last sent to, whatever came of it. */
  last_delivery_at?: string;
  /** When it was made. */
  created_at: string;
}

export interface WebhookDeliveriesBody {
  /** Newest first. */
  deliveries: Array<WebhookDeliveryBody>;
  /** Of the next page, which may be empty; left out on the last one. */
  next_cursor?: string;
}

export interface WebhookDeliveryBody {
  /** UUIDv7 of the attempt; it sorts by time. */
  id: string;
  /** Id of the endpoint. */
  endpoint_id: string;
  /** As it was when this was sent. */
  endpoint_url: string;
  /** The same on every attempt, and on a redelivery. */
  event_id: string;
  /** Type of the event. */
  event: Open<
    | "billing.status_changed"
    | "identification.completed"
    | "identification.refused"
    | "review.closed"
    | "review.opened"
    | "usage.daily_settled"
    | "visitor.suspect"
    | "webhook.test"
  >;
  /** Environment of the endpoint when the event happened. */
  environment: Open<"live" | "test">;
  /** `delivered`; `retrying`: failed, and another attempt will follow; `failed`: failed, and none will. */
  status: Open<"delivered" | "failed" | "retrying">;
  /** The receiver's status. Left out without one. */
  response_code?: number;
  /** How long the attempt took, in milliseconds. */
  duration_ms: number;
  /** Which attempt of its delivery it was, from 1. */
  attempt: number;
  /** Why it failed; left out on success. */
  error?: Open<
    | "blocked_address"
    | "connect_error"
    | "connection_reset"
    | "dns_error"
    | "http_status"
    | "paused"
    | "redirect"
    | "removed"
    | "response_too_large"
    | "timeout"
    | "tls_error"
  >;
  /** When the attempt began. */
  occurred_at: string;
}

export interface WebhooksBody {
  /** Newest first. */
  endpoints: Array<WebhookBody>;
}

/** Of `identify`. */
export interface IdentifyHeaders {
  /**
   * Makes a retry safe: a request whose key was used in the last 24 hours is a duplicate and costs nothing. Its
   * scope is the organization with all its environments: use random keys, or keys unique across environments.
   */
  idempotencyKey?: string;
  /**
   * `full`: a duplicate within a minute of its original, by the same key and from the same origin, gets the
   * original's whole response and `duplicate: true`, if it comes from the same address or has the same `signals`.
   * For a retry whose first response was lost or late.
   */
  replay?: string;
  /** Platform of the SDK, where the body does not say. */
  sdkPlatform?: string;
  /**
   * From a proxy key (required) or a secret key: the visitor's IPv4 or IPv6 address. With any other key it is
   * ignored, and so are the other `x-svc-visitor-` headers.
   */
  visitorIp?: string;
  /** The site that the visitor is at. */
  visitorOrigin?: string;
  /** The visitor's user agent. */
  visitorUserAgent?: string;
  /**
   * The visitor's `accept-language`, `sec-ch-ua...` and `sec-fetch-...` headers as a JSON object of texts. Without
   * them `forged_report` stays silent.
   */
  visitorHeaders?: string;
  /** From a proxy key: the visitor's public key, whose origins, platforms and weights then apply. */
  publicKey?: string;
}

/** Of `issueAttestationChallenge`. */
export interface IssueAttestationChallengeHeaders {
  /** Platform of the SDK, where the body does not say. */
  sdkPlatform?: string;
}

/** Of `supplementEvent`. */
export interface SupplementEventHeaders {
  /** Platform of the SDK, where the body does not say. */
  sdkPlatform?: string;
  /**
   * From a proxy key (required) or a secret key: the visitor's IPv4 or IPv6 address. With any other key it is
   * ignored, and so are the other `x-svc-visitor-` headers.
   */
  visitorIp?: string;
  /** The site that the visitor is at. */
  visitorOrigin?: string;
  /** The visitor's user agent. */
  visitorUserAgent?: string;
  /**
   * The visitor's `accept-language`, `sec-ch-ua...` and `sec-fetch-...` headers as a JSON object of texts. Without
   * them `forged_report` stays silent.
   */
  visitorHeaders?: string;
  /** From a proxy key: the visitor's public key, whose origins, platforms and weights then apply. */
  publicKey?: string;
}

/** Of `listEvents`. */
export interface ListEventsQuery {
  /** Only events of this visitor. */
  visitor?: string;
  /** Only events of this suspect level. */
  level?: "low" | "medium" | "high";
  /** Only events with this tag. */
  tag?: string;
  /** Only events from this IPv4 or IPv6 address. */
  ip_address?: string;
  /** Only events from this country: two letters. */
  country?: string;
  /** Only events in which this signal fired. */
  signal?:
    | "automation"
    | "headless"
    | "bot_user_agent"
    | "spoofed_crawler"
    | "ai_agent"
    | "search_crawler"
    | "anti_detect_browser"
    | "browser_tampering"
    | "os_mismatch"
    | "engine_mismatch"
    | "gpu_mismatch"
    | "developer_tools"
    | "app_tampering"
    | "forged_report"
    | "proof_failed"
    | "tor"
    | "vpn_public"
    | "vpn_timezone_mismatch"
    | "vpn_os_mismatch"
    | "vpn_auxiliary_mobile"
    | "vpn_relay"
    | "vpn_low"
    | "vpn_medium"
    | "vpn_high"
    | "public_proxy"
    | "hosting"
    | "residential_proxy_listed"
    | "residential_proxy_behavior"
    | "residential_proxy_low"
    | "residential_proxy_medium"
    | "residential_proxy_high"
    | "ip_attack_source"
    | "ip_email_spam"
    | "virtual_machine"
    | "emulator"
    | "simulator"
    | "cloned_app"
    | "rooted"
    | "jailbroken"
    | "frida"
    | "hooked"
    | "debugger"
    | "developer_options"
    | "unofficial_store"
    | "mitm_attack"
    | "attestation_failed"
    | "attestation_missing"
    | "factory_reset"
    | "clock_tampered"
    | "location_spoofing"
    | "incognito"
    | "privacy_settings"
    | "high_activity"
    | "velocity_ip"
    | "velocity_country"
    | "storage_renewed"
    | "new_visitor_burst"
    | "token_conflict"
    | "network_new_for_visitor"
    | "replayed"
    | "repeated_report"
    | "repeated_rare_report"
    | "key_shared"
    | "rare_device"
    | "unseen_rendering"
    | "multi_account"
    | "account_testing"
    | "account_sharing"
    | "account_new_device";
  /** Only events of this kind of visitor. */
  kind?: "human" | "ai_bot" | "automation" | "search_crawler";
  /** Only events of this account. */
  account_id?: string;
  /** Only events with this action. */
  action?: string;
  /** Only events from this autonomous system. */
  asn?: string;
  /** Only events with this decision. */
  decision?: "allow" | "review" | "challenge" | "block";
  /** Only events with this label. */
  label?: "fraud" | "legitimate";
  /** Only events that the rule with this id decided, also where it was deleted since. */
  rule?: string;
  /** With `rule`: only events that the rule matched in shadow mode instead. */
  shadow?: boolean;
  /** Only events in which any signal of this group fired. */
  group?:
    | "bot"
    | "tampering"
    | "tor"
    | "vpn"
    | "proxy"
    | "residential_proxy"
    | "ip_reputation"
    | "environment"
    | "integrity"
    | "location"
    | "privacy"
    | "velocity"
    | "replay"
    | "rarity"
    | "account";
  /** Start of the window, inclusive; 24 hours before its end when left out. */
  from?: string;
  /** End of the window, exclusive; now when left out. */
  to?: string;
  /** The first page when it and `cursor` are left out. */
  page?: number;
  /** `next_cursor` of the page before; the first page when left out. */
  cursor?: string;
  /** How many per page, at most. */
  limit?: number;
  /** `oldest` reads the feed; `newest` when left out. */
  order?: "newest" | "oldest";
  /** With `order=oldest`: `next_cursor` of the page before; from the oldest when left out. */
  after?: string;
}

/** Of `listChanges`. */
export interface ListChangesQuery {
  /** `next_cursor` of the page before; from the oldest that is kept when left out. */
  after?: string;
  /** How many per page, at most. */
  limit?: number;
}

/** Of `listAccounts`. */
export interface ListAccountsQuery {
  /** Only those seen from this country in 30 days: two letters. */
  country?: string;
  /** Only those whose events of the last 24 hours have this as their highest suspect level. */
  level?: "low" | "medium" | "high";
  /** Only those whose id begins with this. */
  q?: string;
  /** `next_cursor` of the page before; the first page when left out. */
  cursor?: string;
  /** How many per page, at most. */
  limit?: number;
  /** The least number of visitors in 30 days. */
  min_visitors?: number;
}

/** Of `listVisitors`. */
export interface ListVisitorsQuery {
  /** Only those seen from this country in 30 days: two letters. */
  country?: string;
  /** Only those whose events of the last 24 hours have this as their highest suspect level. */
  level?: "low" | "medium" | "high";
  /** Only those whose id begins with this. */
  q?: string;
  /** `next_cursor` of the page before; the first page when left out. */
  cursor?: string;
  /** How many per page, at most. */
  limit?: number;
  /** The least number of accounts in 30 days, sign-ups without one included. */
  min_accounts?: number;
}

/** Of `listProxyKeys`. */
export interface ListProxyKeysQuery {
  /** How many per page, at most. */
  limit?: number;
  /** `next_cursor` of the page before; the first page when left out. */
  cursor?: string;
}

/** Of `listSdkKeys`. */
export interface ListSdkKeysQuery {
  /** How many per page, at most. */
  limit?: number;
  /** `next_cursor` of the page before; the first page when left out. */
  cursor?: string;
}

/** Of `countBrowserKeys`. */
export interface CountBrowserKeysQuery {
  /** Start of the window; all keys when left out. */
  from?: string;
  /** End of the window, exclusive; now when left out, which is best. */
  to?: string;
}

/** Of `listWebhookDeliveries`. */
export interface ListWebhookDeliveriesQuery {
  /** Only attempts of these endpoints. */
  environment?: "all" | "live" | "test";
  /** Only attempts to the endpoint of this id. */
  endpoint_id?: string;
  /** How many per page, at most. */
  limit?: number;
  /** `next_cursor` of the page before; the first page when left out. */
  cursor?: string;
}

/** Of `getRules`. */
export interface GetRulesQuery {
  /** `live` is production, `test` staging and development. */
  environment?: "live" | "test";
}

/** Of `saveRules`. */
export interface SaveRulesQuery {
  /** `live` is production, `test` staging and development. */
  environment?: "live" | "test";
}

/** Of `previewRules`. */
export interface PreviewRulesQuery {
  /** `live` is production, `test` staging and development. */
  environment?: "live" | "test";
}

/** Of `listRuleProposals`. */
export interface ListRuleProposalsQuery {
  /** `live` is production, `test` staging and development. */
  environment?: "live" | "test";
}

/** Of `proposeRules`. */
export interface ProposeRulesQuery {
  /** `live` is production, `test` staging and development. */
  environment?: "live" | "test";
}

/** Of `dismissRuleProposal`. */
export interface DismissRuleProposalQuery {
  /** `live` is production, `test` staging and development. */
  environment?: "live" | "test";
}

/** Of `getWeightsSuggestion`. */
export interface GetWeightsSuggestionQuery {
  /** `live` is production, `test` staging and development. */
  environment?: "live" | "test";
}

/** Of `listListEntries`. */
export interface ListListEntriesQuery {
  /** Beginning of the value. */
  q?: string;
  /** How many per page, at most. */
  limit?: number;
  /** `next_cursor` of the page before; the first page when left out. */
  cursor?: string;
}

/** Of `getPerformance`. */
export interface GetPerformanceQuery {
  /** `live` is production, `test` staging and development. */
  environment?: "live" | "test";
  /** Start of the window; 30 days before its end when left out. */
  from?: string;
  /** End of the window, exclusive; now when left out. */
  to?: string;
}

/** Of `listReviews`. */
export interface ListReviewsQuery {
  /** Only reviews of this state. */
  state?: "closed" | "open";
  /** Only those that the member with this id takes care of, or with `none` nobody does. */
  assignee?: string;
  /** How many per page, at most. */
  limit?: number;
  /** `next_cursor` of the page before; the first page when left out. */
  cursor?: string;
}
