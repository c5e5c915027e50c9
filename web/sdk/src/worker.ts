/** The worker `svc.worker.js`: answers the questions, and measures how long writing to a disk takes where it is asked to. */
import { ask, askGraphics, type Answers, type Scope } from "./questions.js";

/** What the page asks of the worker. */
export interface WorkerOrder {
  /** Whether to write to the origin's private files. */
  writes: boolean;
}

/** What the worker says, in a message for each member: what takes longer comes later. */
export interface WorkerMessage {
  answers?: Answers;
  graphics?: Answers;
  /** Milliseconds that making a few blocks durable took; `null` where that can't be known. */
  flushMs?: number | null;
}

/** What of a worker's global object is used: its types and those of pages exclude each other. */
interface WorkerScope extends Scope {
  postMessage(message: WorkerMessage): void;
  onmessage: ((event: MessageEvent<WorkerOrder>) => Promise<void>) | null;
}

interface SyncAccessHandle {
  write(block: Uint8Array, options: { at: number }): number;
  flush(): void;
  close(): void;
}

const FILE = "_svc";
const ROUNDS = 4;
const BLOCK_BYTES = 64 * 1024;
/** What writing in memory takes, with the requests to the browser that it begins with. */
const HEAD_START_MS = 20;

/** Private windows keep these files in memory, so that nothing is to be waited for. The file is removed again. */
async function flushMs(scope: Scope): Promise<number | null> {
  const root = await scope.navigator.storage.getDirectory();
  const file = (await root.getFileHandle(FILE, { create: true })) as unknown as {
    createSyncAccessHandle(): Promise<SyncAccessHandle>;
  };
  const handle = await file.createSyncAccessHandle();
  const block = new Uint8Array(BLOCK_BYTES);
  let took = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    block.fill(round + 1);
    handle.write(block, { at: round * BLOCK_BYTES });
    const began = performance.now();
    handle.flush();
    took += performance.now() - began;
  }
  handle.close();
  await root.removeEntry(FILE);
  return took;
}

const scope = self as unknown as WorkerScope;
scope.onmessage = async ({ data }) => {
  scope.postMessage({ answers: ask(scope) });
  if (data.writes) {
    const flushed = flushMs(scope)
      .catch(() => null)
      .then((ms) => scope.postMessage({ flushMs: ms }));
    // Drawing may take long, and stops everything else here: private windows have written by then.
    await Promise.race([flushed, new Promise((resolve) => setTimeout(resolve, HEAD_START_MS))]);
  }
  scope.postMessage({ graphics: askGraphics(scope) });
};
