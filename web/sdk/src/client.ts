/** The client: one report per identification, shared by calls for the same thing. */
import { type Identification, type IdentifyOptions, type SvcClient, SvcError, type Timing } from "./api.js";
import { type Cache, responseCache } from "./cache.js";
import { Deadline, pause } from "./deadline.js";
import { collectedTooLate, listenToPolicy, timedOut } from "./explain.js";
import { forgetKey, type Identity, openIdentity, sealed, settle } from "./identity.js";
import { toJson } from "./json.js";
import { Kept } from "./kept.js";
import { checkMs, checkedCall, type Settings, type Subject } from "./options.js";
import { collectReport, type Report } from "./report.js";
import { begin, type Supplement } from "./supplement.js";
import { forgetToken, timeOrderedId } from "./token.js";
import { aborted, type Cost, Endpoints, send } from "./transport.js";

const SDK = { platform: "web", version: SDK_VERSION };
const SUPPLEMENT_MS = 30_000;
/** For the key, once the report is collected. */
const GRACE_MS = 250;

/** What is known of this browser, and not yet sent. */
interface Prepared {
  report: Promise<Report>;
  identity: Promise<Identity>;
}

const NOBODY: Identity = { token: {}, key: undefined, tookMs: 0 };

/** One request that calls share. */
interface Flight {
  result: Promise<Identification>;
  callers: number;
  /** Ends it for good: a call that comes after that begins another. */
  stop(): void;
}

export class Client implements SvcClient {
  timing: Timing | null = null;
  private readonly endpoints: Endpoints;
  private readonly cache: Cache;
  /** By what was asked, as JSON, with the test verdict: a cached response is one of the same. */
  private readonly flights = new Map<string, Flight>();
  private prepared: Prepared | null;
  private forgotten = false;
  private second: Promise<boolean> = Promise.resolve(false);
  private readonly kept = new Kept();

  constructor(private readonly settings: Settings) {
    this.endpoints = new Endpoints(settings.endpoints);
    this.cache = cacheOf(settings);
    listenToPolicy();
    this.prepared = isMadeAhead() ? null : this.prepare();
  }

  // Functions of their own and not of the prototype: `const { identify } = client` works.
  readonly identify = async (options?: IdentifyOptions): Promise<Identification> => {
    const { subject, signal, timeoutMs = this.settings.timeoutMs } = checkedCall(options);
    checkMs("timeoutMs", timeoutMs);
    if (signal?.aborted) throw aborted();
    const asked = toJson({ ...subject, test: this.settings.test })!;
    const known = this.cache.get(asked);
    if (known) return known;
    const shared = this.flights.get(asked);
    if (!shared) return joined(this.depart(subject, asked, timeoutMs), signal);
    const deadline = new Deadline(timeoutMs);
    const tooLate = deadline.over.then(() => {
      throw timedOut(this.endpoints.current, timeoutMs, deadline.hiddenMs);
    });
    try {
      return await joined(shared, signal, tooLate);
    } finally {
      deadline.stop();
    }
  };

  readonly deferredSent = (): Promise<boolean> => this.second;

  readonly forget = async (): Promise<void> => {
    this.forgotten = true;
    this.prepared = null;
    await removeStored(this.settings.storage, this.cache);
  };

  private prepare(): Prepared {
    const { storage, collectMs, workerUrl } = this.settings;
    const mayStore = storage !== false && !this.forgotten;
    const report = collectReport({ sourceMs: collectMs, workerUrl, mayStore, kept: this.kept });
    // While a page collects it keeps the database waiting, too: that time alone would be none.
    const late = Promise.all([pause(collectMs), report.then(() => pause(GRACE_MS))]);
    const identity = mayStore ? openIdentity(storage, late, () => this.forgotten) : Promise.resolve(NOBODY);
    return { report, identity };
  }

  private depart(subject: Subject, asked: string, timeoutMs: number): Flight {
    const controller = new AbortController();
    const land = (): void => {
      if (this.flights.get(asked) === flight) this.flights.delete(asked);
    };
    const stop = (): void => {
      land();
      controller.abort();
    };
    const travel = async (): Promise<Identification> => {
      try {
        return await this.request(subject, asked, timeoutMs, controller.signal);
      } catch (problem) {
        throw asSvcError(problem);
      } finally {
        land();
      }
    };
    const flight: Flight = { result: travel(), callers: 0, stop };
    this.flights.set(asked, flight);
    return flight;
  }

  /** One identification, from the report to the response. */
  private async request(
    subject: Subject,
    asked: string,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<Identification> {
    const began = performance.now();
    const deadline = new Deadline(timeoutMs);
    const cost: Cost = { attempts: 0, networkMs: 0, sentBytes: 0, reportBytes: 0, endpoint: this.endpoints.current };
    try {
      if (isMadeAhead()) await shown();
      if (signal.aborted) throw aborted();
      const prepared = this.prepared ?? this.prepare();
      this.prepared = null; // a report is sent once
      const collected = Promise.all([prepared.report, prepared.identity]);
      const found = await Promise.race([collected, deadline.over]);
      if (!found || deadline.remainingMs() === 0) throw collectedTooLate(timeoutMs, deadline.hiddenMs);
      const [report, identity] = found;
      const waitedMs = performance.now() - began;
      const about = { sdk: SDK, ...subject, ...(this.settings.verdict ? { verdict: true } : {}) };
      const late = report.late();
      const second = this.settings.deferred ? begin(late) : undefined;
      const { test, apiKey, collectMs } = this.settings;
      if (test && apiKey.includes("_development_")) report.signals["test"] = test;
      else if (test) report.notes.push("Not sent: `test` needs a development key.");
      const { signals, isSigned } = await sealed(report.signals, identity, subject, collectMs);
      Object.assign(report.took, { key: tenths(identity.tookMs), proof: tenths(performance.now() - began - waitedMs) });
      try {
        const response = await send(
          {
            path: "/api/v1/identify",
            body: `${toJson(about)!.slice(0, -1)},"signals":${signals}}`,
            apiKey,
            endpoints: this.endpoints,
            idempotencyKey: timeOrderedId(),
            signal,
            deadline,
          },
          cost,
        );
        const { storage } = this.settings;
        if (isSigned && storage) {
          const isRenewing = response["client_token_renew"] === true;
          settle(storage, identity, isRenewing, () => this.forgotten).catch(() => undefined);
        }
        const identification = response as unknown as Identification;
        if (!this.forgotten) this.cache.put(asked, identification);
        this.sendSecond(identification, second);
        return identification;
      } finally {
        this.timing = timingOf(report, identity, this.settings.storage, cost, waitedMs, performance.now() - began);
      }
    } finally {
      deadline.stop();
    }
  }

  private sendSecond({ request_id, deferred_token }: Identification, second?: Supplement): void {
    if (!second || !deferred_token) return;
    const cost: Cost = { attempts: 0, networkMs: 0, sentBytes: 0, reportBytes: 0, endpoint: "" };
    const work = async (): Promise<boolean> => {
      await second.complete;
      const deadline = new Deadline(SUPPLEMENT_MS);
      try {
        await send(
          {
            path: `/api/v1/events/${request_id}/supplement`,
            body: { token: deferred_token, sdk: SDK, signals: second.signals },
            apiKey: this.settings.apiKey,
            endpoints: this.endpoints,
            keepalive: true,
            signal: new AbortController().signal,
            deadline,
          },
          cost,
        );
        return true;
      } finally {
        deadline.stop();
      }
    };
    this.second = work().catch(() => false);
  }
}

type Stored = Pick<Settings, "apiKey" | "storage" | "cache">;

const cacheOf = ({ apiKey, storage, cache }: Stored): Cache =>
  responseCache(cache, `${storage || ""}_responses`, apiKey);

/** Removes what a client with these options has stored, without one. */
export const forgetStored = (stored: Stored): Promise<void> => removeStored(stored.storage, cacheOf(stored));

async function removeStored(storage: string | false, cache: Cache): Promise<void> {
  cache.clear();
  if (storage === false) return;
  const isTokenGone = forgetToken(storage); // at once: the page may be left in the next moment
  if (!((await forgetKey(storage)) && isTokenGone)) {
    throw new SvcError(
      "storage",
      `The token in the cookie, localStorage entry and database ${storage} could not be removed: remove the site's data.`,
    );
  }
}

/** One caller's view of a request: it may leave alone, and the last one to leave ends the request. */
function joined(flight: Flight, signal?: AbortSignal, tooLate?: Promise<never>): Promise<Identification> {
  flight.callers += 1;
  if (!signal && !tooLate) return flight.result;
  return new Promise((resolve, reject) => {
    let isWaiting = true;
    const leave = (reason: unknown): void => {
      if (!isWaiting) return;
      isWaiting = false;
      flight.callers -= 1;
      if (flight.callers === 0) flight.stop();
      reject(reason);
    };
    const onAbort = (): void => leave(aborted());
    signal?.addEventListener("abort", onAbort, { once: true });
    tooLate?.catch(leave);
    void flight.result.then(resolve, reject).then(() => signal?.removeEventListener("abort", onAbort));
  });
}

/** Browsers make pages ahead of a click that may never come: nobody is there yet, and each identification is billed. */
const isMadeAhead = (): boolean => (document as Document & { prerendering?: boolean }).prerendering === true;
const shown = (): Promise<void> =>
  new Promise((resolve) => document.addEventListener("prerenderingchange", () => resolve(), { once: true }));

export function asSvcError(problem: unknown): SvcError {
  if (problem instanceof SvcError) return problem;
  return new SvcError("internal_error", `A fault of the SDK, report it: ${String(problem)}`);
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10;

function timingOf(
  report: Report,
  { token, key }: Identity,
  storage: string | false,
  cost: Cost,
  waitedMs: number,
  totalMs: number,
): Timing {
  const { collectMs, took, missed } = report;
  const notes = [...report.notes];
  if (storage !== false && !token.client_token) {
    notes.push(
      "No token: this browser keeps neither a cookie nor an entry in localStorage, its key came too late, or it was forgotten.",
    );
  }
  if (storage !== false && !key) notes.push("Not signed: a key needs https (or localhost) and IndexedDB.");
  return { ...cost, collectMs, waitedMs, totalMs, took, missed, notes };
}
