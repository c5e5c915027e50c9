/** The report: everything that recognition or a signal reads, each source with a time limit of its own. */
import { collect as readBotd, sources as botdSources } from "@fingerprintjs/botd";
import { hashComponents, loadSources, sources } from "@fingerprintjs/fingerprintjs";
import { askIframe, startWorker, type RunningWorker } from "./contexts.js";
import { pause } from "./deadline.js";
import * as probes from "./probes.js";
import { ask, type Scope } from "./questions.js";

export const PROBES_VERSION = 1;

/** The page gets the processor back after so many milliseconds of work. */
const BREAK_MS = 16;
/** FingerprintJS writes short words in the place of images that it could not draw. */
const LONGEST_WORD = 64;

export interface ReportOptions {
  /** Milliseconds for each source. */
  sourceMs: number;
  workerUrl: string | undefined;
  /** Whether probes may write something for a moment. */
  mayStore: boolean;
}

export interface Report {
  signals: Record<string, unknown>;
  collectMs: number;
  took: Record<string, number>;
  missed: string[];
  notes: string[];
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
      this.took[name] = Math.round((performance.now() - began) * 10) / 10;
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

/** Collects a report. Never rejects. */
export async function collectReport(options: ReportOptions): Promise<Report> {
  const began = performance.now();
  const read = new Sources(options.sourceMs);
  const notes: string[] = [];
  const writes = options.mayStore && "userAgentData" in navigator;
  const worker = openWorker(options.workerUrl, writes, notes);
  // Those that wait for something come first, so that the others run meanwhile.
  const noWorker = (): Promise<never> => Promise.reject(new Error("no worker"));
  const inWorker = read.read("worker", () => worker?.answers ?? noWorker());
  const drawnInWorker = read.read("worker.graphics", () => worker?.graphics ?? noWorker());
  const hints = read.read("hints", probes.clientHints);
  const flushMs = (): Promise<number | null> => (writes && worker?.flushMs) || Promise.resolve(null);
  const incognito = read.read("incognito", () => probes.privateWindow(flushMs));
  await pause(0); // whoever called `load` goes on first
  const inIframe = read.read("iframe", askIframe);
  const componentsRead = readComponents(read);
  const botd = readBotdComponents(read);
  const signals: Record<string, unknown> = {
    probes: {
      version: PROBES_VERSION,
      contexts: {
        page: await read.read("page", () => ask(window as unknown as Scope)),
        iframe: await inIframe,
        worker: { ...(await inWorker), ...(await drawnInWorker) },
      },
      hints: await hints,
      drivers: await read.read("drivers", probes.drivers),
      plugins: await read.read("plugins", probes.plugins),
      canvas: { noise: await read.read("noise", probes.canvasNoise) },
      media: await read.read("media", probes.pointers),
      screen: { pixelRatio: window.devicePixelRatio },
    },
    components: await componentsRead,
    botd: await botd,
    incognito: await incognito,
  };
  worker?.stop();
  if (read.missed.includes("worker"))
    notes.push("The worker did not respond: does the page's policy allow it? See `workerUrl`.");
  return { signals, collectMs: performance.now() - began, took: read.took, missed: read.missed, notes };
}

function openWorker(url: string | undefined, writes: boolean, notes: string[]): RunningWorker | undefined {
  try {
    return startWorker(url, { writes });
  } catch {
    notes.push("This browser or the page's policy allows no worker.");
    return undefined;
  }
}

/** The sources of FingerprintJS, without those that the build leaves out. */
async function readComponents(read: Sources): Promise<Record<string, unknown>> {
  const options = { cache: {}, debug: false };
  const pending: Promise<[string, unknown]>[] = [];
  for (const [name, source] of Object.entries(sources)) {
    await read.breathe();
    const one = read.read(
      `fp.${name}`,
      async () => (await loadSources({ [name]: source as () => unknown }, options, [])())[name],
    );
    pending.push(one.then((component) => [name, component]));
  }
  const found = (await Promise.all(pending)).filter(([, component]) => component !== undefined);
  return withoutImages(Object.fromEntries(found));
}

async function readBotdComponents(read: Sources): Promise<Record<string, unknown>> {
  const named = Object.entries(botdSources) as [string, () => never][];
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
