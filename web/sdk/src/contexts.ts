/** The questions asked elsewhere than in the page: tools that change what a page sees rarely reach into these. */
import type { Kept } from "./kept.js";
import { isInspected } from "./probes.js";
import { ask, askGraphics, type Answers, type Scope } from "./questions.js";
import { trustedScriptUrl } from "./trusted.js";
import type { WorkerMessage, WorkerOrder } from "./worker.js";

/** What an iframe says, and whether an inspector is attached to it, and so to the page. */
export interface Framed {
  answers: Answers;
  inspected: boolean;
}

/** Asks in an iframe of the page's own. */
export function askIframe(kept: Kept): Promise<Framed> {
  return new Promise((resolve, reject) => {
    const frame = document.createElement("iframe");
    frame.hidden = true;
    frame.setAttribute("aria-hidden", "true");
    const asked = async (): Promise<Framed> => {
      const scope = frame.contentWindow as unknown as Scope & { console: Console };
      const inspected = isInspected(scope.console);
      const graphics = await kept.once("iframe.graphics", () => askGraphics(scope));
      return { answers: { ...ask(scope), ...graphics }, inspected };
    };
    frame.onload = () =>
      void asked()
        .then(resolve, reject)
        .then(() => frame.remove());
    (document.body ?? document.documentElement).append(frame);
  });
}

/** A running worker: what it says of its browser, and of the disk. */
export interface RunningWorker {
  answers: Promise<Answers>;
  graphics: Promise<Answers>;
  flushMs: Promise<number | null>;
  /** Ends it, whatever it is doing. */
  stop(): void;
}

/** Starts the worker, from a file of the page's origin or, where policies allow it, from a `blob:` address. */
export function startWorker(url: string | undefined, order: WorkerOrder): RunningWorker {
  const own =
    url === undefined ? URL.createObjectURL(new Blob([WORKER_SCRIPT], { type: "text/javascript" })) : undefined;
  const worker = new Worker(trustedScriptUrl(url ?? own ?? ""));
  const messages = new Map<keyof WorkerMessage, (value: unknown) => void>();
  const failures: ((problem: Error) => void)[] = [];
  const message = <T>(name: keyof WorkerMessage): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      messages.set(name, resolve as (value: unknown) => void);
      failures.push(reject);
    });
  worker.onmessage = ({ data }: MessageEvent<WorkerMessage>) => {
    for (const [name, resolve] of messages) if (name in data) resolve(data[name]);
  };
  const fail = (): void => {
    for (const reject of failures) reject(new Error("the worker did not answer"));
  };
  worker.onerror = (event) => {
    event.preventDefault();
    fail();
  };
  const stop = (): void => {
    worker.terminate();
    if (own) URL.revokeObjectURL(own);
    fail(); // what it did not say in time is asked again for the next report
  };
  const running = {
    answers: message<Answers>("answers"),
    graphics: message<Answers>("graphics"),
    flushMs: message<number | null>("flushMs"),
    stop,
  };
  running.flushMs.catch(() => undefined); // not everybody waits for it
  worker.postMessage(order);
  return running;
}
