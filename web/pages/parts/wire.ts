/** What the service answers, as far as the page reads it. The names are those of the API reference. */

export type Level = "low" | "medium" | "high";

export interface Fired {
  signal: string;
  group: string;
  weight: number;
  confidence: Level;
}

export interface VisitRow {
  request_id: string;
  occurred_at: string;
  visitor_id: string;
  visitor_is_new?: boolean;
  visitor_confidence?: number;
  suspect_score?: number;
  suspect_level?: Level;
}

export interface Network {
  state: string;
  reason?: string;
  country_code?: string;
  country_name?: string;
  asn?: string;
  asn_name?: string;
  anonymity_network?: string;
}

/** Counts in the last hour, day and 30 days; 64 is 64 or more. */
export type Windows = Record<"1h" | "24h" | "30d", number>;

export interface Velocity {
  visitor: Record<"events" | "accounts" | "addresses" | "countries", Windows>;
  account?: Record<"events" | "visitors" | "addresses" | "countries", Windows>;
  address: Record<"events" | "visitors" | "accounts", Windows>;
}

export interface Explained extends VisitRow {
  account_id?: string;
  action?: string;
  velocity?: Velocity;
  decision?: { action: string; rule_id: string; rule: string };
  identifiable?: boolean;
  proven?: boolean;
  ip_address?: string;
  reason?: string;
  signals?: Fired[];
  document: {
    signals: Record<string, unknown>;
    suspect_threshold: number;
    network: Network;
    evidence: Record<string, string[]>;
    linkage: {
      outcome: string;
      confidence: number;
      probability?: number;
      token_conflict: boolean;
      proof?: string;
      split_from?: string;
    };
    changes?: string[];
    connection?: { os?: string; tls?: string };
    attestation?: {
      format: string;
      verified: boolean;
      app_id?: string;
      environment?: string;
      counter?: number;
      key_first_seen_at?: string;
      bundle_version?: string;
      distribution?: string;
    };
  } | null;
}

/** Sentences for people, by the names that the API uses. */
export interface Texts {
  signals: Record<string, { group: string; description: string }>;
  evidence: Record<string, string>;
  changes: Record<string, string>;
  linkage: Record<string, string>;
  proof: Record<string, string>;
  certainty: Record<string, string>;
  reasons: Record<string, string>;
}

/** Names stand for themselves. */
export const NO_TEXTS: Texts = { signals: {}, evidence: {}, changes: {}, linkage: {}, proof: {}, certainty: {}, reasons: {} };

export interface Explanation {
  event: Explained;
  visits: VisitRow[];
}

export class ServiceError extends Error {}

/** The JSON of a response. Throws `ServiceError` with the service's own message. */
async function read<T>(response: Response): Promise<T> {
  if (response.ok) return (await response.json()) as T;
  const body = (await response.json().catch(() => null)) as { error?: { message?: string } } | null;
  throw new ServiceError(body?.error?.message ?? `The service responded with ${response.status}.`);
}

export async function configuration(): Promise<{ api_key: string }> {
  return read(await fetch("try/config.json"));
}

export async function texts(): Promise<Texts> {
  return read(await fetch("pages/texts.json"));
}

function post(path: string, key: string, requestId: string, token: string): Promise<Response> {
  return fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": key },
    body: JSON.stringify({ request_id: requestId, token }),
  });
}

export async function explanation(key: string, requestId: string, token: string): Promise<Explanation> {
  return read(await post("try/event", key, requestId, token));
}

/** Erase the visitor of an identification, with everything that is stored of it. */
export async function erase(key: string, requestId: string, token: string): Promise<void> {
  const response = await post("try/forget", key, requestId, token);
  if (!response.ok) await read(response);
}
