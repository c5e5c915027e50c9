/** Agent v3: `FingerprintJS.load({ apiKey, endpoint }).then((agent) => agent.get())`. */
import { Fault, identified, loaded, nothingToCollect } from "./agent.js";
import type { Code } from "./codes.js";

export const ERROR_API_KEY_EXPIRED = "API key expired";
export const ERROR_API_KEY_INVALID = "API key not found";
export const ERROR_API_KEY_MISSING = "API key required";
export const ERROR_BAD_REQUEST_FORMAT = "Request cannot be parsed";
export const ERROR_BAD_RESPONSE_FORMAT = "Response cannot be parsed";
export const ERROR_CLIENT_TIMEOUT = "Client timeout";
export const ERROR_CSP_BLOCK = "Blocked by CSP";
export const ERROR_FORBIDDEN_ENDPOINT = "Hostname restricted";
export const ERROR_FORBIDDEN_HEADER = "Not available with restricted header";
export const ERROR_FORBIDDEN_ORIGIN = "Not available for this origin";
export const ERROR_GENERAL_SERVER_FAILURE = "Request failed";
export const ERROR_INVALID_ENDPOINT = "The endpoint parameter is not a valid URL";
export const ERROR_NETWORK_ABORT = "Network request aborted";
export const ERROR_NETWORK_CONNECTION = "Network connection error";
export const ERROR_RATE_LIMIT = "Too many requests, rate limit exceeded";
export const ERROR_SCRIPT_LOAD_FAIL = "Failed to load the JS script of the agent";
export const ERROR_SERVER_TIMEOUT = "Request failed to process";
export const ERROR_SUBSCRIPTION_NOT_ACTIVE = "Subscription not active";
export const ERROR_WRONG_REGION = "Wrong region";

const MESSAGES: Record<Code, string> = {
  api_key_missing: ERROR_API_KEY_MISSING,
  api_key_invalid: ERROR_API_KEY_INVALID,
  invalid_endpoint: ERROR_INVALID_ENDPOINT,
  cache_misconfigured: ERROR_GENERAL_SERVER_FAILURE, // v3 has no cache
  script_load_fail: ERROR_SCRIPT_LOAD_FAIL,
  client_timeout: ERROR_CLIENT_TIMEOUT,
  network_connection: ERROR_NETWORK_CONNECTION,
  network_abort: ERROR_NETWORK_ABORT,
  csp_block: ERROR_CSP_BLOCK,
  bad_response_format: ERROR_BAD_RESPONSE_FORMAT,
  public_api_key_not_found: ERROR_API_KEY_INVALID,
  subscription_not_active: ERROR_SUBSCRIPTION_NOT_ACTIVE,
  too_many_requests: ERROR_RATE_LIMIT,
  request_cannot_be_parsed: ERROR_BAD_REQUEST_FORMAT,
  payload_too_large: ERROR_BAD_REQUEST_FORMAT,
  failed: ERROR_GENERAL_SERVER_FAILURE,
};

/** Stands for an address of theirs in a list: left out, since there is none. The same holds for the other two. */
export const defaultEndpoint: unknown = { default: "endpoint" };
export const defaultTlsEndpoint: unknown = { default: "tlsEndpoint" };
export const defaultScriptUrlPattern = "";

/** Those of `unknown` type have no effect. */
export interface LoadOptions {
  /** A public key of svc, `svc_pk_...`. */
  apiKey?: string | undefined;
  /** The older name of `apiKey`. */
  token?: string | undefined;
  /** Where the service is, or your own path to it; or several, tried in order. */
  endpoint?: unknown;
  region?: unknown;
  scriptUrlPattern?: unknown;
  tlsEndpoint?: unknown;
  disableTls?: unknown;
  storageKey?: unknown;
  delayFallback?: unknown;
  integrationInfo?: unknown;
  remoteControlDetection?: unknown;
  urlHashing?: unknown;
}

/** Those of `unknown` type, but for `tag`, have no effect. */
export interface GetOptions<Extended extends boolean = boolean> {
  extendedResult?: Extended | undefined;
  /** The account that the visitor acts for. */
  linkedId?: string | number | undefined;
  /** At most 1,024 characters; an object as JSON. */
  tag?: unknown;
  /** In addition to theirs: what the visitor does, such as `log_in`. */
  action?: string | undefined;
  /** Milliseconds, 10,000 by default. */
  timeout?: number | undefined;
  products?: unknown;
  disableTls?: unknown;
  ipResolution?: unknown;
  debug?: unknown;
}

export interface Confidence {
  /** 0 to 1: `visitor_confidence` by a hundred, 0 for a new visitor. */
  score: number;
  comment?: string;
}

export interface GetResult {
  requestId: string;
  /** Empty where the visitor cannot be identified. */
  visitorId: string;
  visitorFound: boolean;
  confidence: Confidence;
}

/** What only your server may know is empty, and named by `zeroTrust.hiddenFields`. */
export interface ExtendedGetResult extends GetResult {
  incognito: boolean;
  ip: string;
  browserName: string;
  browserVersion: string;
  os: string;
  osVersion: string;
  device: string;
  firstSeenAt: SeenAt;
  lastSeenAt: SeenAt;
  zeroTrust: { hiddenFields: string[]; comment?: string };
}

export interface SeenAt {
  subscription: string | null;
  global: string | null;
}

export interface Agent {
  /** Rejects with an `Error` whose `message` is one of the constants; its `cause` is the `SvcError` of the web SDK. */
  get<Extended extends boolean = false>(
    options?: Readonly<GetOptions<Extended>>,
  ): Promise<Extended extends true ? ExtendedGetResult : GetResult>;
  /** Rejects: there is no equivalent. */
  collect(options?: unknown): Promise<string>;
}

/** Rejects as {@link Agent.get}. */
export async function load(options: Readonly<LoadOptions> = {}): Promise<Agent> {
  try {
    const { apiKey, token, endpoint } = options;
    const client = loaded(apiKey ?? token, Array.isArray(endpoint) ? endpoint : [endpoint], false);
    const get = async (asked: Readonly<GetOptions> = {}): Promise<GetResult | ExtendedGetResult> => {
      try {
        const seen = await identified(client, asked);
        const result = {
          requestId: seen.request_id,
          visitorId: seen.identifiable === false ? "" : (seen.visitor_id ?? ""),
          visitorFound: seen.visitor_is_new === false,
          confidence: confidenceOf(seen.visitor_confidence, seen.visitor_is_new),
        };
        return asked.extendedResult ? { ...result, ...extended(seen.triggers) } : result;
      } catch (problem) {
        throw errorOf(problem as Fault);
      }
    };
    const collect = (): Promise<string> => Promise.reject(errorOf(nothingToCollect()));
    return { get: get as Agent["get"], collect };
  } catch (problem) {
    throw problem instanceof Fault ? errorOf(problem) : problem;
  }
}

function confidenceOf(confidence: number | undefined, isNew: boolean | undefined): Confidence {
  if (confidence === undefined) return { score: 0, comment: "Only the request id is known: an earlier attempt was answered" };
  return { score: confidence / 100, ...(isNew ? { comment: "A new visitor" } : {}) };
}

const HIDDEN = ["ip", "browserName", "browserVersion", "os", "osVersion", "device", "firstSeenAt", "lastSeenAt"];

function extended(triggers: ReadonlyArray<{ signal: string }> = []): Omit<ExtendedGetResult, keyof GetResult> {
  return {
    incognito: triggers.some(({ signal }) => signal === "incognito"),
    ip: "",
    browserName: "",
    browserVersion: "",
    os: "",
    osVersion: "",
    device: "",
    firstSeenAt: { subscription: null, global: null },
    lastSeenAt: { subscription: null, global: null },
    zeroTrust: { hiddenFields: [...HIDDEN], comment: "Your server reads them from the event" },
  };
}

function errorOf({ code, requestId, problem }: Fault): Error {
  const error = new Error(MESSAGES[code], { cause: problem });
  return requestId === null ? error : Object.assign(error, { requestId });
}

export default {
  load,
  defaultEndpoint,
  defaultTlsEndpoint,
  defaultScriptUrlPattern,
  ERROR_API_KEY_EXPIRED,
  ERROR_API_KEY_INVALID,
  ERROR_API_KEY_MISSING,
  ERROR_BAD_REQUEST_FORMAT,
  ERROR_BAD_RESPONSE_FORMAT,
  ERROR_CLIENT_TIMEOUT,
  ERROR_CSP_BLOCK,
  ERROR_FORBIDDEN_ENDPOINT,
  ERROR_FORBIDDEN_HEADER,
  ERROR_FORBIDDEN_ORIGIN,
  ERROR_GENERAL_SERVER_FAILURE,
  ERROR_INVALID_ENDPOINT,
  ERROR_NETWORK_ABORT,
  ERROR_NETWORK_CONNECTION,
  ERROR_RATE_LIMIT,
  ERROR_SCRIPT_LOAD_FAIL,
  ERROR_SERVER_TIMEOUT,
  ERROR_SUBSCRIPTION_NOT_ACTIVE,
  ERROR_WRONG_REGION,
};
