/** Types of the web SDK (`web/sdk/src/api.ts`), word by word: a response has the same names everywhere. A test compares them. */

/** Codes of the SDKs; `SvcError.code` may also be any `error.code` of the service's API. */
export type SdkErrorCode =
  "network" | "offline" | "timeout" | "aborted" | "bad_response" | "invalid_options" | "storage" | "internal_error";

/** Details of a {@link SvcError}. */
export interface SvcErrorDetails {
  status?: number;
  retryable?: boolean;
  retryAfterMs?: number;
  requestId?: string;
}

/** The only kind of error that the SDK throws or rejects with. `message` says what to do about it. */
export class SvcError extends Error {
  override readonly name = "SvcError";
  readonly code: SdkErrorCode | (string & {});
  /** HTTP status of the last response; 0 where none came. */
  readonly status: number;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** Milliseconds that the service asked to wait; 0 where it asked for nothing. */
  readonly retryAfterMs: number;
  /** The service's id of the request, to be quoted to its operator. */
  readonly requestId: string | undefined;

  constructor(code: SdkErrorCode | (string & {}), message: string, details: SvcErrorDetails = {}) {
    super(message);
    this.code = code;
    this.status = details.status ?? 0;
    this.retryable = details.retryable ?? false;
    this.retryAfterMs = details.retryAfterMs ?? 0;
    this.requestId = details.requestId;
  }
}

/** How certain a signal is; and the level of a score. */
export type Level = "low" | "medium" | "high" | (string & {});

/** One signal that fired. */
export interface Trigger {
  signal: string;
  group: string;
  /** What the signal added to the score. */
  weight: number;
  confidence: Level;
}

/** One signal that fired. */
export interface Trigger {
  signal: string;
  group: string;
  /** What the signal added to the score. */
  weight: number;
  confidence: Level;
}

/** What the first rule that matched decided. Your server acts on it: anybody can change what a page reads. */
export interface Decision {
  action: "allow" | "review" | "challenge" | "block" | (string & {});
  rule_id: string;
  rule: string;
}

/**
 * The service's response, by the names of its API. Only `request_id` is always there: where an earlier attempt was
 * answered more than a minute ago, there is nothing else. Let your server read the event by `request_id` instead of trusting what a page says.
 */
export interface Identification {
  request_id: string;
  /** The identification was made by an earlier attempt, whose response was lost or came too late. */
  duplicate?: boolean;
  deferred_token?: string;
  visitor_id?: string;
  visitor_is_new?: boolean;
  /** `false`: the report holds too little to identify anyone. */
  identifiable?: boolean;
  /** 90 to 100: certain. 85 to 89: the same visitor by all that is known, not proven. 0: a new one. */
  visitor_confidence?: number;
  /** The browser signed the report with the key that its token had before: neither was copied to another one. Never so on a first visit. */
  proven?: boolean;
  state?: "enriched" | "unavailable" | (string & {});
  reason?: string;
  suspect_score?: number;
  suspect_level?: Level;
  triggers?: Trigger[];
  /** What the rules of the organization decided; absent where none matched, and where visitors shall not see it. */
  decision?: Decision;
  /** A JWS, valid for five minutes: only with the option `verdict`, and not in a response from the cache. */
  verdict?: string;
  /** Set by the SDK where the response comes from its cache. */
  cached?: boolean;
}
