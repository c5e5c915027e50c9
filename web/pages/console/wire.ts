/** What the console's API answers, as far as the console reads it. The names are those of the API reference. */
import type { Explained, Fired, Level, VisitRow } from "../parts/wire.js";

export type Role = "admin" | "developer" | "analyst" | "viewer";

export interface Session {
  organization: { id: string; name: string };
  role: Role;
  /** Whose session it is: `member` or `key`, never both. */
  member?: { id: string; email: string; name: string; role: Role; has_totp: boolean; has_password: boolean; recovery_codes_left: number };
  key?: { id: string; name: string; role: Role; last4: string };
  region: string;
  expires_at: string;
  idle_minutes: number;
}

/** Whom an invitation is for, and to which organization. */
export interface Invited {
  organization: string;
  email: string;
  name: string;
  role: Role;
  expires_at: string;
}

/** By what members may sign in beside a password. */
export interface SignInOptions {
  openid?: { issuer: string };
}

export interface Client {
  environment: string;
  platform: string;
  sdk_platform: string;
  sdk_version: string;
  origin?: string;
  tag?: string;
  ip_address: string;
  country_code?: string;
  country_name?: string;
  asn?: string;
  asn_name?: string;
  anonymity_network?: string;
  agent?: string;
  agent_version?: string;
  os?: string;
  device_kind?: string;
  visitor_kind?: string;
}

export interface Decision {
  action: string;
  rule_id: string;
  rule: string;
}

export type EventRow = VisitRow & Client & {
  /** Of a row that cannot be read, which has nothing else but its request id. */
  error?: string;
  identifiable?: boolean;
  signals?: Fired[];
  changes?: string[];
  account_id?: string;
  account_verified?: boolean;
  action?: string;
  decision?: Decision;
  label?: Label;
  label_reason?: string;
};

export interface Page {
  next_cursor?: string;
}

/** Filters by a name. */
export interface View {
  id: string;
  name: string;
  screen: string;
  query: Record<string, string>;
  is_shared: boolean;
  saved_at: string;
  saved_by?: string;
}

/** Rules that wait for an admin. */
export interface Proposal {
  id: string;
  revision: number;
  rules: Rule[];
  note: string;
  created_at: string;
  author?: string;
}

/** Of a list. */
export interface Total {
  count: number;
  is_exact: boolean;
}

export interface Actions {
  actions: { action: string; count: number }[];
  is_complete: boolean;
  since?: string;
}

export interface Attempt {
  id: string;
  endpoint_id: string;
  endpoint_url: string;
  event_id: string;
  event: string;
  status: string;
  response_code?: number;
  duration_ms: number;
  attempt: number;
  error?: string;
  occurred_at: string;
}

export interface EventDetail {
  event: Explained & Client & { deferred_signals?: unknown; account_verified?: boolean; label?: Label; label_reason?: string };
  deliveries: Attempt[];
  previous?: string;
  next?: string;
  key?: { id: string; name?: string; last4?: string };
}

interface Seen {
  first_seen: string;
  last_seen: string;
  events: number;
}

export type VisitorRow = Seen & { visitor_id: string; matching_events?: number };

export interface VisitorDetail extends Page {
  visitor_id: string;
  first_seen: string;
  last_seen: string;
  event_count: number;
  environment_event_count: number;
  identifiable: boolean;
  tags: (Seen & { tag: string })[];
  addresses: (Seen & Pick<Client, "ip_address" | "country_code" | "asn" | "asn_name" | "anonymity_network">)[];
  events: EventRow[];
}

/** Of a period. */
export interface PeriodCounts {
  identifications: number;
  levels: { low: number; medium: number; high: number; not_scored: number };
  new: number;
  returning: number;
  unidentifiable: number;
  amount_micros: number;
  kinds: Record<string, number>;
  decisions: Record<string, number>;
}

/** Of a whole window. */
export interface Counts extends PeriodCounts {
  scores: [number, number][];
  signals: { signal: string; count: number }[];
  countries: { country_code: string; count: number }[];
}

export interface Statistics {
  step: "hour" | "day";
  from: string;
  to: string;
  totals: Counts;
  periods: (PeriodCounts & { at: string })[];
}

interface Usage {
  identifications: number;
  identifiable: number;
  unidentifiable: number;
  free: number;
  amount_micros: number;
}

export interface Billing {
  status: string;
  blocked_reason?: string;
  /** Why the next identification in production would be refused. */
  refused?: "billing_blocked" | "no_credit";
  balance_micros: number;
  /** Without one it is postpaid. */
  credit_limit_micros: number | null;
  credit_days?: number;
  today: Usage;
  days: (Usage & { date: string; balance_micros: number })[];
  entries: { at: string; amount_micros: number; note?: string }[];
  changes: { at: string; previous: string; current: string; blocked_reason?: string; by?: string; note?: string }[];
}

export interface AuditRecord {
  id: string;
  at: string;
  action: string;
  subject?: string;
  actor: { kind: string; id?: string; name?: string; role?: string; place?: string };
  change: Record<string, unknown>;
}

export interface Endpoint {
  id: string;
  url: string;
  description: string;
  environment: string;
  events: string[];
  status: "active" | "paused" | "failing";
  format: string;
  filter?: string;
  filter_errors_24h?: number;
  secret_last4: string;
  previous_secret_expires_at?: string;
  delivered_24h: number;
  failed_24h: number;
  failing_since?: string;
  last_delivery_at?: string;
  created_at: string;
}

export interface Key {
  id: string;
  name: string;
  kind?: "public" | "secret";
  environment: string;
  platforms?: string[];
  allowed_origins?: string[];
  /** The whole key, of a public one. */
  public_key?: string;
  prefix: string;
  last4: string;
  status: string;
  last_used_at: string | null;
  expires_at: string | null;
  created_at: string;
}

export interface SignalInfo {
  name: string;
  group: string;
  description: string;
  platforms: string[];
}

export interface PlatformWeights {
  platform: string;
  scope: string;
  stored: boolean;
  revision: number;
  suspect_threshold: number;
  weights: Record<string, number>;
  defaults: Record<string, number>;
  signals: string[];
  vpn_weights_mode: string;
  residential_proxy_weights_mode: string;
  updated_at?: string;
}

export interface RiskWeights {
  scope: string;
  max_weight: number;
  platforms: PlatformWeights[];
}

type Levels = Partial<Record<Level | "not_scored", number>>;

interface Verdict {
  score: number;
  level: Level;
}

export interface Preview {
  events: number;
  compared_without_document: number;
  before: Levels;
  after: Levels;
  changed: number;
  not_comparable?: number;
  moves: { from: string; to: string; count: number }[];
  by_signal: { signal: string; before: number; after: number; count: number; changed: number }[];
  examples: {
    request_id: string;
    occurred_at: string;
    before: Verdict;
    after: Verdict;
    because: { signal: string; before: number; after: number }[];
  }[];
}

export interface Quality {
  precision: number | null;
  recall: number | null;
}

export interface Suggestion {
  /** Whether every label was looked at. */
  is_complete: boolean;
  platform: string;
  fraud: number;
  legitimate: number;
  suspect_threshold: number;
  /** How many labels of each kind a suggestion needs. */
  needed: number;
  before?: Quality;
  after?: Quality;
  weights: { signal: string; before: number; after: number; events: number; fraud: number }[];
}

export interface StoredList {
  id: string;
  name: string;
  kind: string;
  entries: number;
  created_at: string;
  updated_at: string;
}

/** One of the six lists, what an entry of it does, and the entry of a value. */
export interface ListStanding {
  id: string;
  name: string;
  effect: "always" | "sometimes" | "never";
  /** Why not always. */
  reason?: string;
  entry?: Entry;
}

export interface Entry {
  value: string;
  note: string;
  expires_at: string | null;
  created_at: string;
  created_by?: string;
}

type Windows = Record<"1h" | "24h" | "30d", number>;

/** An account or a visitor of a list. */
export interface SubjectRow {
  visitor_id?: string;
  account_id?: string;
  first_seen_at: string;
  last_seen_at: string;
  level?: Level;
  velocity: Record<"events" | "accounts" | "visitors" | "addresses" | "countries", Windows | undefined>;
  last_event: EventRow;
}

export interface LookedAt {
  subjects: number;
  is_complete: boolean;
  since?: string;
}

interface SeenAt {
  first_seen_at: string;
  last_seen_at: string;
}

export interface AccountDetail extends SeenAt {
  account_id: string;
  velocity: SubjectRow["velocity"];
  visitors: (SeenAt & { visitor_id: string; confidence: number })[];
  addresses: (SeenAt & { ip_address: string; country_code?: string })[];
  countries: (SeenAt & { country_code: string })[];
  labels: { fraud: number; legitimate: number };
  counted_since?: string;
  event_count: number;
  events: EventRow[];
}

export interface Links {
  nodes: { kind: "visitor" | "account"; id: string; steps: number }[];
  links: (SeenAt & { visitor_id: string; account_id: string; events: number })[];
  is_complete: boolean;
}

interface Operand {
  text: string;
  value?: string;
}

export interface Term {
  depth: number;
  kind: "all" | "any" | "not" | "term";
  text: string;
  result: boolean | null;
  operator?: string;
  left?: Operand;
  right?: Operand;
  absent?: string[];
}

export interface EventRules {
  revision?: number;
  saved_at?: string;
  is_in_force: boolean;
  decision?: Decision;
  rules: { rule_id: string; name: string; action: string; mode: RuleMode; condition: string; matches: boolean | null; terms?: Term[] }[];
}

export type RuleMode = "active" | "shadow" | "off";

export interface Rule {
  id?: string;
  name: string;
  condition: string;
  action: string;
  mode: RuleMode;
  note: string;
}

export interface Ruleset {
  environment: "live" | "test";
  revision: number;
  rules: (Rule & { id: string; counts: { matched_24h: number; matched_30d: number; errors_24h: number } })[];
  /** In the response to a save. */
  warnings?: string[];
}

export interface RulesPreview {
  events: number;
  rules: { rule_id?: string; name: string; matches: number; examples: string[]; errors: number; error?: string }[];
  before: Record<string, number>;
  after: Record<string, number>;
  warnings?: string[];
}

/** What an example of a preview is known by. */
export type Example = Pick<EventRow, "request_id" | "occurred_at" | "suspect_score" | "suspect_level" | "account_id" | "action">;

export interface Revision {
  revision: number;
  saved_at?: string;
  saved_by?: { id: string; name?: string };
  rules: (Rule & { id: string })[];
}

export interface Language {
  variables: { name: string; type: string }[];
  functions: string[];
  lists: { name: string; kind: string }[];
}

export interface Found {
  event?: EventRow;
  visitors: string[];
  accounts: string[];
  tag: boolean;
  network?: string;
}

export interface Settings {
  decision_in_response: boolean;
  account_thresholds: Record<string, number>;
  /** 0 = none. */
  rate_limit_per_s: number;
  event_retention_days: number;
}

export interface Networks {
  networks: { asn: string; asn_name?: string; events: number; suspicious: number }[];
  events: number;
  is_complete: boolean;
}

export type Label = "fraud" | "legitimate";

export interface Review {
  id: string;
  state: "open" | "closed";
  environment: string;
  request_id: string;
  visitor_id: string;
  account_id?: string;
  suspect_score: number | null;
  suspect_level?: Level;
  rule_id?: string;
  rule?: string;
  opened_at: string;
  opened_by?: string;
  assignee: string | null;
  reopened_at?: string;
  closed_at?: string;
  closed_by?: string;
  label?: Label;
  label_reason?: string;
  note?: string;
}

export interface PerformanceLine {
  name: string;
  rule_id?: string;
  events: number;
  labelled: number;
  fraud: number;
  legitimate: number;
  precision: number | null;
  precision_low: number | null;
  precision_high: number | null;
  recall: number | null;
}

export interface Performance {
  from: string;
  to: string;
  total: Pick<PerformanceLine, "events" | "labelled" | "fraud" | "legitimate">;
  signals: PerformanceLine[];
  groups: PerformanceLine[];
  rules: PerformanceLine[];
  levels: PerformanceLine[];
  scores: PerformanceScore[];
}

/** The labeled events of scores from `from` up to below `to`. */
export interface PerformanceScore {
  from: number;
  to: number | null;
  fraud: number;
  legitimate: number;
}

export interface Member {
  id: string;
  email: string;
  name: string;
  role: Role;
  status: "invited" | "active" | "suspended";
  has_totp: boolean;
  has_password: boolean;
  has_provider: boolean;
  created_at: string;
  last_signed_in_at: string | null;
}
