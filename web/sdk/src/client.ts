/** The client: one report per identification, shared by calls for the same thing. */
import { type Identification, type IdentifyOptions, type SvcClient, SvcError, type Timing } from "./api.js";
import { type Cache, responseCache } from "./cache.js";
import { Deadline } from "./deadline.js";
import { collectedTooLate, listenToPolicy, timedOut } from "./explain.js";
import { checkMs, checkTag, type Settings } from "./options.js";
import { collectReport, type Report } from "./report.js";
import { idle, supplement } from "./supplement.js";
import { clientToken, forgetToken, timeOrderedId, type Token } from "./token.js";
import { aborted, type Cost, Endpoints, send } from "./transport.js";

const SDK = { platform: "web", version: SDK_VERSION };
const SUPPLEMENT_MS = 30_000;

/** What is known of this browser, and not yet sent. */
interface Prepared {
  report: Promise<Report>;
  token: Token;
}

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
  private readonly flights = new Map<string | undefined, Flight>();
  private prepared: Prepared | null;
  private forgotten = false;
  private second: Promise<boolean> = Promise.resolve(false);

  constructor(private readonly settings: Settings) {
    this.endpoints = new Endpoints(settings.endpoints);
    this.cache = cacheOf(settings);
    listenToPolicy();
    this.prepared = this.prepare();
  }

  async identify(options?: IdentifyOptions): Promise<Identification> {
    const { tag, signal, timeoutMs = this.settings.timeoutMs } = options ?? {};
    checkTag(tag);
    checkMs("timeoutMs", timeoutMs);
    if (signal?.aborted) throw aborted();
    const known = this.cache.get(tag);
    if (known) return known;
    const shared = this.flights.get(tag);
    if (!shared) return joined(this.depart(tag, timeoutMs), signal);
    const deadline = new Deadline(timeoutMs);
    const tooLate = deadline.over.then(() => {
      throw timedOut(this.endpoints.current, timeoutMs, deadline.hiddenMs);
    });
    return joined(shared, signal, tooLate).finally(() => deadline.stop());
  }

  deferredSent(): Promise<boolean> {
    return this.second;
  }

  async forget(): Promise<void> {
    this.forgotten = true;
    this.prepared = null;
    removeStored(this.settings.storage, this.cache);
  }

  private prepare(): Prepared {
    const { storage, collectMs, workerUrl } = this.settings;
    const mayStore = storage !== false && !this.forgotten;
    const report = collectReport({ sourceMs: collectMs, workerUrl, mayStore });
    return { report, token: mayStore ? clientToken(storage) : {} };
  }

  private depart(tag: string | undefined, timeoutMs: number): Flight {
    const controller = new AbortController();
    const land = (): void => {
      if (this.flights.get(tag) === flight) this.flights.delete(tag);
    };
    const stop = (): void => {
      land();
      controller.abort();
    };
    const result = this.request(tag, timeoutMs, controller.signal)
      .catch((problem: unknown) => {
        throw asSvcError(problem);
      })
      .finally(land);
    const flight: Flight = { result, callers: 0, stop };
    this.flights.set(tag, flight);
    return flight;
  }

  /** One identification, from the report to the response. */
  private async request(tag: string | undefined, timeoutMs: number, signal: AbortSignal): Promise<Identification> {
    const began = performance.now();
    const deadline = new Deadline(timeoutMs);
    const cost: Cost = { attempts: 0, networkMs: 0, sentBytes: 0, reportBytes: 0, endpoint: this.endpoints.current };
    try {
      const { report: pending, token } = this.prepared ?? this.prepare();
      this.prepared = null; // a report is sent once
      const report = await Promise.race([pending, deadline.over]);
      if (!report || deadline.remainingMs() === 0) throw collectedTooLate(timeoutMs, deadline.hiddenMs);
      const waitedMs = performance.now() - began;
      const late = report.late();
      const signals = { ...report.signals, ...token, nonce: timeOrderedId(), collected_at: Date.now() };
      try {
        const response = await send(
          {
            path: "/api/v1/identify",
            body: {
              sdk: SDK,
              ...(tag === undefined ? {} : { tag }),
              ...(this.settings.verdict ? { verdict: true } : {}),
              signals,
            },
            apiKey: this.settings.apiKey,
            endpoints: this.endpoints,
            idempotencyKey: timeOrderedId(),
            signal,
            deadline,
          },
          cost,
        );
        const identification = response as unknown as Identification;
        if (!this.forgotten) this.cache.put(tag, identification);
        this.sendSecond(identification, late);
        return identification;
      } finally {
        this.timing = timingOf(report, token, this.settings.storage, cost, waitedMs, performance.now() - began);
      }
    } finally {
      deadline.stop();
    }
  }

  /** `late`: what came too late for the first report. */
  private sendSecond({ request_id, deferred_token }: Identification, late: ReturnType<Report["late"]>): void {
    if (!this.settings.deferred || !deferred_token) return;
    const cost: Cost = { attempts: 0, networkMs: 0, sentBytes: 0, reportBytes: 0, endpoint: "" };
    const work = async (): Promise<boolean> => {
      await idle();
      const deadline = new Deadline(SUPPLEMENT_MS);
      try {
        await send(
          {
            path: `/api/v1/events/${request_id}/supplement`,
            body: { token: deferred_token, sdk: SDK, signals: { ...(await supplement()), ...(await late) } },
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
export const forgetStored = (stored: Stored): void => removeStored(stored.storage, cacheOf(stored));

function removeStored(storage: string | false, cache: Cache): void {
  cache.clear();
  if (storage !== false && !forgetToken(storage)) {
    throw new SvcError(
      "storage",
      `The token in the cookie and localStorage entry ${storage} could not be removed: the browser refuses. Remove the site's data.`,
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
    flight.result.then(resolve, reject).finally(() => signal?.removeEventListener("abort", onAbort));
  });
}

function asSvcError(problem: unknown): SvcError {
  if (problem instanceof SvcError) return problem;
  return new SvcError("internal_error", `A fault of the SDK, please report it: ${String(problem)}`);
}

function timingOf(
  report: Report,
  token: Token,
  storage: string | false,
  cost: Cost,
  waitedMs: number,
  totalMs: number,
): Timing {
  const { collectMs, took, missed } = report;
  const notes = [...report.notes];
  if (storage !== false && !token.client_token) {
    notes.push(
      "No token: this browser lets the page keep neither a cookie nor an entry in localStorage, or it was forgotten.",
    );
  }
  return { ...cost, collectMs, waitedMs, totalMs, took, missed, notes };
}
