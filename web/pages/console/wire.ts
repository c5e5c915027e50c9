/** What the console's API answers, as far as the console reads it. The names are those of the API reference. */
import type { Explained, Fired, Level, VisitRow } from "../parts/wire.js";

export type Role = "admin" | "developer" | "analyst" | "viewer";

export interface Session {
  organization: { id: string; name: string };
  role: Role;
  /** Whose it is: of one of the two. */
  member?: { id: string; email: string; name: string; role: Role; has_totp: boolean };
  key?: { id: string; name: string; role: Role; last4: string };
  region: string;
  expires_at: string;
  idle_minutes: number;
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

export type EventRow = VisitRow & Client & { identifiable?: boolean; signals?: Fired[]; changes?: string[] };

export interface Page {
  next_cursor?: string;
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
  event: Explained & Client & { deferred_signals?: unknown };
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

export interface Counts {
  identifications: number;
  levels: { low: number; medium: number; high: number; not_scored: number };
  new: number;
  returning: number;
  unidentifiable: number;
  amount_micros: number;
  scores: [number, number][];
  signals: { signal: string; count: number }[];
  countries: { country_code: string; count: number }[];
  kinds: Record<string, number>;
}

export interface Statistics {
  step: "hour" | "day";
  from: string;
  to: string;
  totals: Counts;
  periods: (Counts & { at: string })[];
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
  secret_last4: string;
  previous_secret_expires_at?: string;
  delivered_24h: number;
  failed_24h: number;
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
