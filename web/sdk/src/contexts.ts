/** The questions asked elsewhere than in the page: tools that change what a page sees rarely reach into these. */
import { ask, askGraphics, type Answers, type Scope } from "./questions.js";
import type { WorkerMessage, WorkerOrder } from "./worker.js";

/** Asks in an iframe of the page's own. */
export function askIframe(): Promise<Answers> {
  return new Promise((resolve, reject) => {
    const frame = document.createElement("iframe");
    frame.hidden = true;
    frame.setAttribute("aria-hidden", "true");
    frame.onload = () => {
      try {
        const scope = frame.contentWindow as unknown as Scope;
        resolve({ ...ask(scope), ...askGraphics(scope) });
      } catch (problem) {
        reject(problem);
      }
      frame.remove();
    };
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
  const worker = new Worker(url ?? own ?? "");
  const stop = (): void => {
    worker.terminate();
    if (own) URL.revokeObjectURL(own);
  };
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
  worker.onerror = (event) => {
    event.preventDefault();
    for (const reject of failures) reject(new Error("the worker did not start"));
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
