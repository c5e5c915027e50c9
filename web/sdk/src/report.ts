/** The report: everything that recognition or a signal reads, each source with a time limit of its own. */
import { collect as readBotd, sources as botdSources } from "@fingerprintjs/botd";
import { hashComponents, loadSources, sources } from "@fingerprintjs/fingerprintjs";
import { askIframe, startWorker, type RunningWorker } from "./contexts.js";
import { pause } from "./deadline.js";
import { toJson } from "./json.js";
import type { Kept } from "./kept.js";
import * as probes from "./probes.js";
import { type Answers, ask, type Scope } from "./questions.js";

export const PROBES_VERSION = 1;

/** The page gets the processor back after so many milliseconds of work. */
const BREAK_MS = 16;
/** How long the report waits for other threads and processes once all else is collected. */
const GRACE_MS = 50;
/** How long they may take to be heard in the deferred report. */
const LATE_MS = 2000;
/** A worker that has not said everything by then is ended. */
const LONGEST_MS = 10_000;
/** The one source of BotD that waits for another process. */
const ASKS_ELSEWHERE = "notificationPermissions";
/** The one that differs from visit to visit and that nobody reads: the time that packets take. */
const OF_THE_MOMENT = "rtt";
/** Those of FingerprintJS that take long, and find the same for as long as the page lives. */
const LASTING = /^(?:audio|canvas|fonts|fontPreferences|math|webGl.*)$/;
/** FingerprintJS writes short words in the place of images that it could not draw. */
const LONGEST_WORD = 64;

export interface ReportOptions {
  /** Milliseconds for each source. */
  sourceMs: number;
  workerUrl: string | undefined;
  /** Whether probes may write something for a moment. */
  mayStore: boolean;
  /** What earlier reports of this page found. */
  kept: Kept;
}

export interface Report {
  signals: Record<string, unknown>;
  collectMs: number;
  took: Record<string, number>;
  missed: string[];
  notes: string[];
  /**
   * To be called as the report is sent: until then other threads and processes add to `signals` what they find, and nothing from then
   * on. Resolves with what they say later, for the deferred report; `undefined` where that is nothing.
   */
  late(): Promise<Record<string, unknown> | undefined>;
}

/** Runs sources side by side; one that fails or hangs costs nothing but its own value. */
class Sources {
  readonly took: Record<string, number> = {};
  readonly missed: string[] = [];
  private lastBreak = performance.now();

  constructor(private readonly limitMs: number) {}

  async read<T>(name: string, work: () => T | Promise<T>): Promise<T | undefined> {
    const began = performance.now();
    try {
      const value = await Promise.race([Promise.resolve(work()), this.late(name)]);
      this.took[name] = tenths(performance.now() - began);
      return value;
    } catch {
      this.missed.push(name);
      return undefined;
    }
  }

  /** Waits for a moment if the page has been kept waiting for long. */
  async breathe(): Promise<void> {
    if (performance.now() - this.lastBreak < BREAK_MS) return;
    await pause(0);
    this.lastBreak = performance.now();
  }

  private async late(name: string): Promise<never> {
    await pause(this.limitMs);
    await pause(0); // a busy page may find the value and the end of the time in the same moment: the value counts
    throw new Error(`${name} took too long`);
  }
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10;

/** What other threads and processes find out: a busy machine runs them late, and nobody is to wait for them. */
class Elsewhere {
  private readonly waiting = new Map<string, Promise<void>>();
  private readonly began = performance.now();
  private readonly later: Record<string, unknown> = {};
  private sent = false;

  constructor(
    private readonly took: Record<string, number>,
    private readonly missed: string[],
  ) {}

  /** Puts the members of a value into the report at `place` or, where that was sent, into what came later at `name`. */
  expect(name: string, value: Promise<object>, place: object, source = name): void {
    const heard = value.then(
      (said) => {
        if (this.sent) this.later[name] = { ...(this.later[name] as object), ...said };
        else {
          Object.assign(place, said);
          this.took[source] = tenths(performance.now() - this.began);
        }
      },
      () => {
        if (!this.sent) this.missed.push(source);
      },
    );
    const ended = heard.then(() => void this.waiting.delete(source));
    this.waiting.set(source, ended);
  }

  /** Resolves when all have answered, at the latest after so many milliseconds. */
  async answered(ms: number): Promise<void> {
    await Promise.race([Promise.all([...this.waiting.values()]), pause(ms)]);
  }

  /** As of {@link Report}. */
  async late(): Promise<Record<string, unknown> | undefined> {
    this.sent = true;
    this.missed.push(...this.waiting.keys());
    await this.answered(LATE_MS);
    return Object.keys(this.later).length > 0 ? this.later : undefined;
  }
}

/** Collects a report. Never rejects. */
export async function collectReport(options: ReportOptions): Promise<Report> {
  const began = performance.now();
  const { kept } = options;
  const read = new Sources(options.sourceMs);
  const notes: string[] = [];
  // What is heard at any time has its place beforehand, so that equal visits send equal bytes.
  const signals: Record<string, unknown> = { incognito: undefined };
  let said: Answers = {};
  const page = read.read("page", () => (said = ask(window as unknown as Scope)));
  kept.begin(`${toJson(said)} ${devicePixelRatio}`);
  // Those that wait for something come first, so that the others run meanwhile.
  const elsewhere = new Elsewhere(read.took, read.missed);
  const inWorker = askWorker(options, elsewhere, signals, notes);
  const hints = read.read("hints", () => kept.once("hints", probes.clientHints));
  await pause(0); // the caller of `load` goes on first
  const iframe = read.read("iframe", () => askIframe(kept));
  const componentsRead = readComponents(read, kept);
  const botd = readBotdComponents(read);
  // Firefox asks another process for this, and only Chromium's answer tells anything.
  const permissions = kept.once(ASKS_ELSEWHERE, () => readBotd({ [ASKS_ELSEWHERE]: botdSources[ASKS_ELSEWHERE] }));
  const inBotd: Record<string, unknown> = { [ASKS_ELSEWHERE]: undefined };
  elsewhere.expect("botd", permissions, inBotd, `bot.${ASKS_ELSEWHERE}`);
  const framed = await iframe;
  Object.assign(signals, {
    probes: {
      version: PROBES_VERSION,
      contexts: { page: await page, iframe: framed?.answers, worker: inWorker },
      hints: await hints,
      drivers: { ...(await read.read("drivers", probes.drivers)), inspected: framed?.inspected },
      plugins: await read.read("plugins", probes.plugins),
      canvas: { noise: await read.read("noise", () => kept.once("noise", probes.canvasNoise)) },
      media: await read.read("media", probes.pointers),
      screen: { pixelRatio: devicePixelRatio, framed: window !== window.top },
    },
    components: await componentsRead,
    botd: Object.assign(inBotd, await botd),
  });
  await elsewhere.answered(GRACE_MS);
  if (read.missed.includes("worker"))
    notes.push("The worker did not respond: does the page's policy allow it? See `workerUrl`.");
  const { took, missed } = read;
  return { signals, collectMs: performance.now() - began, took, missed, notes, late: () => elsewhere.late() };
}

/** Asks the worker, which is only started where something is not known of it; returns the place of its answers. */
function askWorker(
  { kept, workerUrl, mayStore }: ReportOptions,
  elsewhere: Elsewhere,
  signals: object,
  notes: string[],
): Answers {
  const answers: Answers = {};
  const writes = mayStore && "userAgentData" in navigator;
  let worker: RunningWorker | undefined;
  const running = (): RunningWorker => (worker ??= openWorker(workerUrl, writes, notes));
  const isPrivate = kept.once("incognito", () =>
    probes.privateWindow(() => (writes ? running().flushMs : Promise.resolve(null))),
  );
  elsewhere.expect("worker", kept.once("worker", () => running().answers), answers);
  elsewhere.expect("worker", kept.once("worker.graphics", () => running().graphics), answers, "worker.graphics");
  elsewhere.expect("incognito", isPrivate.then((incognito) => ({ incognito })), signals);
  void elsewhere.answered(LONGEST_MS).then(() => worker?.stop());
  return answers;
}

function openWorker(url: string | undefined, writes: boolean, notes: string[]): RunningWorker {
  try {
    return startWorker(url, { writes });
  } catch {
    notes.push("This browser or the page's policy allows no worker.");
    const none = Promise.reject<never>(new Error("no worker"));
    none.catch(() => undefined); // not everybody waits for it
    return { answers: none, graphics: none, flushMs: Promise.resolve(null), stop: () => undefined };
  }
}

/**
 * What the sources of FingerprintJS find, without those that the build leaves out: only values, since how long a source takes
 * differs from visit to visit, and one without a value says nothing.
 */
async function readComponents(read: Sources, kept: Kept): Promise<Record<string, unknown>> {
  const options = { cache: {}, debug: false };
  const pending: Promise<[string, unknown]>[] = [];
  for (const [name, source] of Object.entries(sources)) {
    await read.breathe();
    const load = async () => (await loadSources({ [name]: source as () => unknown }, options, [])())[name];
    const one = read.read(`fp.${name}`, () => (LASTING.test(name) ? kept.once(name, load) : load()));
    pending.push(one.then((component) => [name, (component as { value?: unknown } | undefined)?.value]));
  }
  const found = (await Promise.all(pending)).filter(([, value]) => value !== undefined);
  return withoutImages(Object.fromEntries(found.map(([name, value]) => [name, { value }])));
}

async function readBotdComponents(read: Sources): Promise<Record<string, unknown>> {
  const named = (Object.entries(botdSources) as [string, () => never][]).filter(
    ([name]) => name !== ASKS_ELSEWHERE && name !== OF_THE_MOMENT,
  );
  const pending = named.map(async ([name, source]) => {
    const one = await read.read(`bot.${name}`, () => readBotd({ [name]: source }));
    return [name, one?.[name]] as const;
  });
  return Object.fromEntries((await Promise.all(pending)).filter(([, component]) => component !== undefined));
}

interface DrawnComponent {
  value?: { geometry?: unknown; text?: unknown };
}

/** Images leave the browser as hashes: a tenth of the bytes, and no picture in the archive. */
function withoutImages(components: Record<string, unknown>): Record<string, unknown> {
  const canvas = components["canvas"] as DrawnComponent | undefined;
  if (!canvas?.value) return components;
  const { geometry, text } = canvas.value;
  return {
    ...components,
    canvas: { ...canvas, value: { ...canvas.value, geometry: hashed(geometry), text: hashed(text) } },
  };
}

const hashed = (image: unknown): unknown =>
  typeof image === "string" && image.length > LONGEST_WORD
    ? hashComponents({ image: { value: image, duration: 0 } })
    : image;
