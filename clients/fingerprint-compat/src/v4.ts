/** Agent v4: `Fingerprint.start({ apiKey, endpoints }).get()`. */
import { Fault, identified, loaded, nothingToCollect } from "./agent.js";
import type { Code } from "./codes.js";

/** Those that this package has; theirs has more, none of which comes from here. */
export type ErrorCode = Code;

/** What `start` throws and `get` rejects with; its `cause` is the `SvcError` of the web SDK, where that failed. */
export interface Error extends globalThis.Error {
  name: "FingerprintError";
  code: ErrorCode;
  /** The service's id of the request that it refused. */
  event_id: string | null;
}

class FingerprintError extends globalThis.Error implements Error {
  override readonly name = "FingerprintError";
  readonly code: ErrorCode;
  readonly event_id: string | null;

  constructor({ code, message, requestId, problem }: Fault) {
    super(message, { cause: problem });
    this.code = code;
    this.event_id = requestId;
  }
}

export function isFingerprintError(error: unknown): error is Error {
  return error instanceof FingerprintError;
}

/** Addresses without those of theirs, which there are none of here: the same as the addresses alone. */
export interface WithoutDefault<Value> {
  readonly __type__: "withoutDefault";
  readonly value: Value;
}

export function withoutDefault<Value>(value: Value): WithoutDefault<Value> {
  return { __type__: "withoutDefault", value };
}

type Addresses = string | readonly string[];

/** Those of `unknown` type have no effect. */
export interface StartOptions {
  /** A public key of svc, `svc_pk_...`. */
  apiKey: string;
  /** Where the service is, or your own path to it; or several, tried in order. */
  endpoints?: Addresses | WithoutDefault<Addresses> | undefined;
  /** `duration` in seconds, at most 43,200. */
  cache?: CacheConfig | undefined;
  region?: unknown;
  storageKeyPrefix?: unknown;
  integrationInfo?: unknown;
  remoteControlDetection?: unknown;
  urlHashing?: unknown;
}

export interface CacheConfig {
  storage: "sessionStorage" | "localStorage" | "agent";
  duration: "optimize-cost" | "aggressive" | number;
  cachePrefix?: unknown;
}

export interface GetOptions {
  /** The account that the visitor acts for. */
  linkedId?: string | number | undefined;
  /** At most 1,024 characters; an object as JSON. */
  tags?: unknown;
  /** As `tags`, which goes before it. */
  tag?: unknown;
  /** In addition to theirs: what the visitor does, such as `log_in`. */
  action?: string | undefined;
  /** Milliseconds, 10,000 by default. */
  timeout?: number | undefined;
}

export interface GetResult {
  event_id: string;
  /** Left out where the visitor cannot be identified. */
  visitor_id?: string;
  /** The sum of your weights; left out where the report could not be scored. */
  suspect_score?: number;
  /** There are none. */
  sealed_result: null;
  /** With a cache alone. */
  cache_hit?: boolean;
}

export interface Agent {
  get(options?: Readonly<GetOptions>): Promise<GetResult>;
  /** Rejects: there is no equivalent. */
  collect(options?: unknown): Promise<string>;
}

/** Starts collecting at once. */
export function start(options: Readonly<StartOptions>): Agent {
  try {
    const { apiKey, endpoints, cache } = options;
    const client = loaded(apiKey, addressesOf(endpoints), cacheOf(cache));
    const get = async ({ tags, tag, ...asked }: Readonly<GetOptions> = {}): Promise<GetResult> => {
      try {
        const seen = await identified(client, { ...asked, tag: tags ?? tag });
        const isKnown = seen.visitor_id !== undefined && seen.identifiable !== false;
        return {
          event_id: seen.request_id,
          ...(isKnown ? { visitor_id: seen.visitor_id! } : {}),
          ...(typeof seen.suspect_score === "number" ? { suspect_score: seen.suspect_score } : {}),
          sealed_result: null,
          ...(cache ? { cache_hit: seen.cached === true } : {}),
        };
      } catch (problem) {
        throw new FingerprintError(problem as Fault);
      }
    };
    const collect = (): Promise<string> => Promise.reject(new FingerprintError(nothingToCollect()));
    return { get, collect };
  } catch (problem) {
    throw problem instanceof Fault ? new FingerprintError(problem) : problem;
  }
}

function addressesOf(endpoints: StartOptions["endpoints"]): readonly unknown[] {
  const given = typeof endpoints === "object" && "value" in endpoints ? endpoints.value : endpoints;
  return Array.isArray(given) ? given : [given];
}

const STORAGES = { sessionStorage: "session", localStorage: "local", agent: "memory" } as const;
const SECONDS = { "optimize-cost": 3_600, aggressive: 43_200 };

function cacheOf(cache: CacheConfig | undefined): Parameters<typeof loaded>[2] {
  if (!cache) return false;
  const storage = STORAGES[cache.storage];
  const seconds = typeof cache.duration === "number" ? cache.duration : SECONDS[cache.duration];
  if (!storage || !(seconds > 0 && seconds <= 43_200)) {
    throw new Fault("cache_misconfigured", "`cache` is { storage, duration }, with at most 43,200 seconds.");
  }
  return { storage, durationMs: seconds * 1_000 };
}

export default { start, isFingerprintError, withoutDefault };
