/** The options of `load` and `identify`, checked and complete. */
import { type CacheOptions, type IdentifyOptions, type LoadOptions, SvcError, type TestVerdict } from "./api.js";
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
  /** As the service takes it; `undefined` where none was asked for. */
  test: { signals: readonly string[]; account_velocity: number } | undefined;
}

/** What an identification is about, by the names of the service. Members without a value are `undefined`, and not sent. */
export type Subject = Record<"account_id" | "action" | "tag", string | undefined>;

/** Without those that are `null`. */
type Given = { [Name in keyof IdentifyOptions]?: Exclude<IdentifyOptions[Name], null> };

/** Every option there is: the compiler finds one that is missing here. */
const OF_LOAD: Record<keyof LoadOptions, 1> = {
  apiKey: 1, endpoint: 1, timeoutMs: 1, collectMs: 1, storage: 1, workerUrl: 1, deferred: 1, verdict: 1, cache: 1,
  test: 1,
};
const OF_TEST: Record<keyof TestVerdict, 1> = { signals: 1, accountVelocity: 1 };
const OF_IDENTIFY: Record<keyof IdentifyOptions, 1> = { accountId: 1, action: 1, tag: 1, signal: 1, timeoutMs: 1 };

const TIMEOUT_MS = 10_000;
const COLLECT_MS = 1000;
const STORED_AS = "_svc";
const LONGEST_CACHE_MS = 12 * 3600 * 1000;
const LONGEST_TAG = 1024;
const TAG = /^[^]{0,1024}$/u;

const wrong = (message: string): SvcError => new SvcError("invalid_options", message);

/** The options that somebody gave, as own members alone. Throws where one has a name that there is none of. */
function ownOf<Options extends object>(call: string, given: Options, known: Record<keyof Options, 1>): Options {
  const takes = (): string => `${call} takes an object of ${Object.keys(known).join(", ")}.`;
  if (typeof given !== "object" || given === null) throw wrong(takes());
  const options = own(given);
  const names = own(known);
  for (const name of Object.keys(options)) if (!(name in names)) throw wrong(`\`${name}\` is not an option: ${takes()}`);
  return options;
}

/** What is checked of the options that say what is stored, and where. */
export function checkedStorage(options: LoadOptions): Pick<Settings, "storage" | "cache"> {
  const { storage = STORED_AS, cache: given = false } = ownOf("forget()", options, OF_LOAD);
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
  const options = ownOf("load()", given, OF_LOAD);
  const { timeoutMs = TIMEOUT_MS, collectMs = COLLECT_MS, deferred = true, verdict = false } = options;
  checkMs("timeoutMs", timeoutMs);
  checkMs("collectMs", collectMs);
  return {
    ...checkedStorage(options),
    apiKey: checkedKey(options.apiKey),
    endpoints: endpointsOf(options.endpoint, script),
    timeoutMs,
    collectMs,
    workerUrl: options.workerUrl ?? workerBeside(script),
    deferred,
    verdict,
    test: checkedTest(options.test),
  };
}

function checkedTest(given: TestVerdict | undefined): Settings["test"] {
  if (given === undefined) return given;
  const { signals = [], accountVelocity: accounts = 0 } = ownOf("`test`", given, OF_TEST);
  const areNames = Array.isArray(signals) && signals.every((one) => typeof one === "string");
  if (!(areNames && Number.isInteger(accounts) && accounts >= 0 && accounts <= 64)) {
    throw wrong("`test` is { signals: [names], accountVelocity: 0 to 64 }.");
  }
  return { signals, account_velocity: accounts };
}

/** Without blanks around it. A header takes no other characters than these, such as one of no width that was copied along. */
function checkedKey(given: unknown): string {
  const apiKey = String(given).trim();
  if (/^svc_pk_[!-~]*$/.test(apiKey)) return apiKey;
  if (/^svc_(?:sk|px|mk)_/.test(apiKey)) {
    throw wrong(
      "`apiKey` is a key for servers. Visitors can read it: revoke it, use a public key (svc_pk_...).",
    );
  }
  throw wrong("`apiKey` must be a public key, svc_pk_..., as `svc key issue ORG --kind public` prints it.");
}

/** Throws unless this is a time limit. */
export function checkMs(name: string, value: unknown): void {
  if (typeof value === "number" && value > 0 && value < 2 ** 31) return;
  throw wrong(`\`${name}\` is a number of milliseconds above 0.`);
}

/**
 * What a call of `identify` is about, and its other options. Throws unless each is of the service's form. `null` is as
 * `undefined`: somebody who is logged out has no account, and is identified all the same.
 */
export function checkedCall(given?: IdentifyOptions): Omit<Given, keyof Subject | "accountId"> & { subject: Subject } {
  const options = ownOf("identify()", given ?? {}, OF_IDENTIFY);
  for (const name in options) options[name as keyof IdentifyOptions] ??= undefined;
  const { accountId, action, tag, ...others } = options as Given;
  if (others.signal && typeof others.signal.addEventListener !== "function") {
    throw wrong("`signal` is an AbortSignal, such as `controller.signal`.");
  }
  checkText("accountId", accountId, /^[^\0-\x1f\x7f-\x9f]{1,256}$/u, "1 to 256 characters, without control characters");
  checkText("action", action, /^[a-z][a-z0-9_.-]{0,63}$/, "a name such as log_in: [a-z][a-z0-9_.-]{0,63}");
  checkText("tag", tag, TAG, `a text of at most ${LONGEST_TAG} characters`);
  return { ...others, subject: { account_id: accountId, action, tag } };
}

/** Characters as the service counts them: two halves are one. */
function checkText(name: string, value: unknown, form: RegExp, words: string): void {
  if (value === undefined) return;
  if (typeof value !== "string" || !form.test(value)) throw wrong(`\`${name}\` is ${words}.`);
  if (/\p{Surrogate}/u.test(value)) {
    throw wrong(`\`${name}\` has half of a character: cut it between characters, \`[...text]\`.`);
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
  const given = [endpoint === undefined ? originOf(script) : endpoint].flat();
  if (given.length === 0) throw wrong("`endpoint` is an empty list.");
  return given.map((one) => {
    const url = parsed(one);
    if (typeof one !== "string" || !url || !/^https?:\/\/[^/@]+\/[^?#]*$/.test(url.href)) {
      throw wrong(
        `\`endpoint\` must be the address of the service, such as "https://id.shop.example", without @, ? and #; by default ` +
          "it is the origin of the SDK's script, which is not known here.",
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
