/** The options of `load`, checked and complete. */
import { type CacheOptions, type LoadOptions, SvcError } from "./api.js";
import { own } from "./json.js";

export interface Settings {
  apiKey: string;
  endpoints: string[];
  timeoutMs: number;
  collectMs: number;
  storage: string | false;
  workerUrl: string | undefined;
  deferred: boolean;
  verdict: boolean;
  cache: CacheOptions | false;
}

const TIMEOUT_MS = 10_000;
const COLLECT_MS = 1000;
const STORED_AS = "_svc";
const LONGEST_CACHE_MS = 12 * 3600 * 1000;
const LONGEST_TAG = 1024;

const wrong = (message: string): SvcError => new SvcError("invalid_options", message);

/** What is checked of the options that say what is stored, and where. */
export function checkedStorage(options: LoadOptions): Pick<Settings, "storage" | "cache"> {
  const { storage = STORED_AS, cache: given = false } = own(options);
  const cache = given && own(given);
  if (storage !== false && !(typeof storage === "string" && /^[\w-]{1,64}$/.test(storage))) {
    throw wrong(
      "`storage` is the name of a cookie: 1 to 64 letters, digits, `_` and `-`; or `false` to store nothing.",
    );
  }
  if (cache) checkCache(cache, storage);
  return { storage, cache };
}

/** `script`: the address that the SDK was loaded from, where that is known. */
export function checked(given: LoadOptions, script: string | undefined): Settings {
  if (typeof given !== "object" || given === null)
    throw wrong('load() takes an object: load({ apiKey: "svc_pk_..." }).');
  const options = own(given);
  const { apiKey, timeoutMs = TIMEOUT_MS, collectMs = COLLECT_MS, deferred = true, verdict = false } = options;
  checkKey(apiKey);
  checkMs("timeoutMs", timeoutMs);
  checkMs("collectMs", collectMs);
  return {
    ...checkedStorage(options),
    apiKey,
    endpoints: endpointsOf(options.endpoint, script),
    timeoutMs,
    collectMs,
    workerUrl: options.workerUrl ?? workerBeside(script),
    deferred,
    verdict,
  };
}

function checkKey(apiKey: unknown): void {
  if (typeof apiKey === "string" && apiKey.startsWith("svc_pk_")) return;
  if (typeof apiKey === "string" && /^svc_(?:sk|px|mk)_/.test(apiKey)) {
    throw wrong(
      "`apiKey` is a key for servers. Anyone who opens this page can read it: revoke it, and use a public key (svc_pk_...).",
    );
  }
  throw wrong("`apiKey` must be a public key, svc_pk_..., as `svc key issue ORG --kind public` prints it.");
}

/** Throws unless this is a time limit. */
export function checkMs(name: string, value: unknown): void {
  if (typeof value === "number" && value > 0 && value < 2 ** 31) return;
  throw wrong(`\`${name}\` is a number of milliseconds above 0.`);
}

/** Throws unless this is a tag. */
export function checkTag(tag: unknown): void {
  if (tag === undefined) return;
  if (typeof tag !== "string" || [...tag].length > LONGEST_TAG) {
    throw wrong(`\`tag\` is a text of at most ${LONGEST_TAG} characters.`);
  }
  if (/\p{Surrogate}/u.test(tag)) {
    throw wrong("`tag` has half of a character, such as the first part of an emoji: cut it between characters, `[...text]`.");
  }
}

function checkCache(cache: CacheOptions, storage: string | false): void {
  if (!["memory", "session", "local"].includes(cache.storage))
    throw wrong("`cache.storage` is memory, session or local.");
  checkMs("cache.durationMs", cache.durationMs);
  if (cache.durationMs > LONGEST_CACHE_MS) throw wrong("`cache.durationMs` is at most 12 hours.");
  if (storage === false && cache.storage !== "memory")
    throw wrong("With `storage: false` the cache can be in memory only.");
}

function endpointsOf(endpoint: LoadOptions["endpoint"], script: string | undefined): string[] {
  const given = endpoint === undefined ? [originOf(script)] : typeof endpoint === "string" ? [endpoint] : [...endpoint];
  if (given.length === 0) throw wrong("`endpoint` is an empty list.");
  return given.map((one) => {
    const url = parsed(one);
    if (url === undefined || !/^https?:$/.test(url.protocol)) {
      throw wrong(
        `\`endpoint\` must be the address of the service, such as "https://id.shop.example"; by default it is the origin of ` +
          "the SDK's script, which is not known here.",
      );
    }
    if (
      location.protocol === "https:" &&
      url.protocol === "http:" &&
      !/^(?:localhost|127\.|\[::1\])/.test(url.hostname)
    ) {
      throw wrong(`Browsers block requests from an https page to ${url.origin}: give the service a certificate.`);
    }
    return url.href.replace(/(?:\/api\/v1)?\/*$/, ""); // some copy the address of the API
  });
}

function parsed(address: unknown): URL | undefined {
  try {
    return new URL(String(address), location.href);
  } catch {
    return undefined;
  }
}

function originOf(script: string | undefined): string {
  const origin = script ? parsed(script)?.origin : undefined;
  return origin && origin !== "null" ? origin : "unknown:";
}

/** The service serves the worker beside the script; only a script of the page's own origin can use that file. */
function workerBeside(script: string | undefined): string | undefined {
  const found = script ? /^(.*\/)svc(?:\.esm)?\.js(?:[?#].*)?$/.exec(script) : null;
  return found && parsed(script)?.origin === location.origin ? `${found[1]}svc.worker.js` : undefined;
}
