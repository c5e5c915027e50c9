/** What callers of the SDK see: options in, identifications and errors out. */

/** Codes of the SDK itself; `SvcError.code` may also be any `error.code` of the service's API. */
export type SdkErrorCode =
  /** `load()` was called where there is no window and no document, such as on a server. */
  | "not_a_browser"
  /** The browser lacks what the SDK needs: it is older than about four years. */
  | "unsupported_browser"
  /** An option is missing or wrong: nothing was sent. */
  | "invalid_options"
  /** No connection: nothing listens, an extension blocks the request, or a certificate is not valid. */
  | "network"
  /** The browser says that it is offline, and was so until the time limit. */
  | "offline"
  /** The page's content security policy doesn't allow the request. */
  | "blocked_by_policy"
  /** No response within the time limit. */
  | "timeout"
  /** The caller's `signal` was aborted. */
  | "aborted"
  /** Something else than the service responded. */
  | "bad_response"
  /** `forget()` could not remove what is stored. */
  | "storage"
  /** A fault of the SDK. */
  | "internal_error";

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

/** Keeps a response, so that the same question is not sent again. */
export interface CacheOptions {
  /** `memory`: until the page is left. `session` and `local`: in the browser's storage of that name. */
  storage: "memory" | "session" | "local";
  /** Milliseconds for which a response is used; at most 12 hours. */
  durationMs: number;
}

/**
 * What your tests want to see. The service heeds it with a development key alone: it fires these signals, which count in
 * the score as if they had been observed, and rules decide by them. The event says `test_verdict` as their evidence.
 */
export interface TestVerdict {
  /** Names of signals, such as `tor`. One that there is none of is `validation_error`. */
  signals?: readonly string[] | undefined;
  /** Accounts that the visitor has at least in each window, 0 to 64. */
  accountVelocity?: number | undefined;
}

/** Options of {@link load}. */
export interface LoadOptions {
  /** A public key, `svc_pk_...`. */
  apiKey: string;
  /**
   * Where the service is, such as `https://id.shop.example`, or several such addresses, tried in order.
   * By default the origin of the SDK's own script.
   */
  endpoint?: string | readonly string[] | undefined;
  /** Milliseconds for one `identify()`, all attempts included; time while the page is hidden doesn't count. Default 10,000. */
  timeoutMs?: number | undefined;
  /** Milliseconds for each single source of the report; one that takes longer is left out. Default 1,000. */
  collectMs?: number | undefined;
  /**
   * Name of the cookie, the `localStorage` entry and the database with the visitor's token and its key. `false` stores
   * nothing. Default `_svc`.
   */
  storage?: string | false | undefined;
  /** Address of `svc.worker.js` on the page's own origin, where the content security policy forbids `blob:` workers. */
  workerUrl?: string | undefined;
  /** Whether a second report follows when the page is idle, for people who look at the event. Default `true`. */
  deferred?: boolean | undefined;
  /** Whether responses have a signed `verdict`, which your server verifies by itself. Default `false`. */
  verdict?: boolean | undefined;
  /** Off by default. */
  cache?: CacheOptions | false | undefined;
  /** For your tests, with a development key. With any other key it is not sent, and `timing.notes` says so. */
  test?: TestVerdict | undefined;
}

/** Options of {@link SvcClient.identify}. `null` is as one that is left out. */
export interface IdentifyOptions {
  /**
   * Your own id of the account that the visitor acts for, 1 to 256 characters without control characters; on the event and in webhooks.
   * An opaque one, not an e-mail address. Anybody can change what a page sends: your server compares it, or sets it with `updateEvent`.
   */
  accountId?: string | null | undefined;
  /** What the visitor does, such as `sign_up`, `log_in` or `checkout`: `[a-z][a-z0-9_.-]{0,63}`. */
  action?: string | null | undefined;
  /** Your own reference for this request, at most 1,024 characters, best a random value that your server compares. */
  tag?: string | null | undefined;
  /** Aborts this call. */
  signal?: AbortSignal | null | undefined;
  /** Milliseconds for this call, in place of the option of `load`. */
  timeoutMs?: number | null | undefined;
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

/** How the last `identify()` went: for people who look, not for decisions. All times in milliseconds. */
export interface Timing {
  /** From the start of collecting to its end. */
  collectMs: number;
  /** What `identify()` waited for of that. */
  waitedMs: number;
  /** The last attempt, from sending to the whole response. */
  networkMs: number;
  /**
   * What the service took, as it says with development keys, else from the request to the first byte of the response.
   * Browsers tell it of the page's own origin alone.
   */
  serverMs?: number;
  /** From the call to the result. */
  totalMs: number;
  attempts: number;
  /** Bytes of the body as sent. */
  sentBytes: number;
  /** Bytes of the body before compression. */
  reportBytes: number;
  /** The endpoint of the last attempt. */
  endpoint: string;
  /** Milliseconds by source. */
  took: Record<string, number>;
  /** Sources that failed or took too long. */
  missed: string[];
  /** What was left out and why, in sentences. */
  notes: string[];
}

/** What {@link load} returns. */
export interface SvcClient {
  /**
   * Sends the report; in a prerendered page, once somebody opens it. Calls at the same time with the same account, action and tag share one request. Rejects with
   * {@link SvcError} only.
   */
  identify(options?: IdentifyOptions): Promise<Identification>;
  /** How the last `identify()` went; `null` before. */
  readonly timing: Timing | null;
  /** Resolves when the second report is stored (`true`), or was not sent or not accepted (`false`). */
  deferredSent(): Promise<boolean>;
  /** Removes the token, its key and cached responses; this client stores nothing from then on. For withdrawn consent. */
  forget(): Promise<void>;
}
