/** The live stream: server-sent events read with fetch, which tells an ended session from a lost connection. */
import { ApiError, type Api, within } from "./api.js";
import type { Query } from "./hash.js";
import type { EventRow } from "./wire.js";

export interface Message {
  id: string;
  event: string;
  data: string;
}

/** Takes pieces of an event stream, hands out each message that is complete. Comments are left out. */
export function parser(onMessage: (message: Message) => void): (piece: string) => void {
  let rest = "";
  let message: Message = { id: "", event: "message", data: "" };
  return (piece) => {
    const lines = (rest + piece).split(/\r?\n/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (message.data !== "") onMessage(message);
        message = { id: "", event: "message", data: "" };
        continue;
      }
      const [, name = "", value = ""] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? [];
      if (name === "id" || name === "event") message[name] = value;
      else if (name === "data") message.data += (message.data && "\n") + value;
    }
  };
}

export type StreamState = { is: "connecting" | "open" } | { is: "waiting"; why: string; seconds: number };

export interface Listener {
  onState: (state: StreamState) => void;
  onEvent: (row: EventRow) => void;
  onMissed: (count: number) => void;
}

const LONGEST_WAIT_S = 15;
/** The service says something every ten seconds: after this time the connection is dead, whatever the browser knows of it. */
const SILENCE_S = 30;

/** A refusal of the service itself that stays one: a filter is wrong, or the session has ended. */
const isFinal = (error: unknown): boolean =>
  error instanceof ApiError && error.code !== "" && error.status < 500 && error.retryAfter === 0;

/**
 * Stay connected until the signal aborts, beginning after the event that `begin` names ("" = with the next one).
 * Throws what is refused for good; everything else is tried again, `begin` as well.
 */
export async function follow(api: Api, query: Query, begin: () => Promise<string>, signal: AbortSignal, to: Listener): Promise<void> {
  let failures = 0;
  let last: string | undefined;
  const take = parser(({ id, event, data }) => {
    if (event === "missed") to.onMissed((JSON.parse(data) as { count: number }).count);
    if (event !== "identification") return;
    last = id;
    to.onEvent(JSON.parse(data) as EventRow);
  });
  while (!signal.aborted) {
    to.onState({ is: "connecting" });
    let why = "The connection was closed.";
    let seconds = Math.min(2 ** failures, LONGEST_WAIT_S);
    const control = new AbortController(), end = () => control.abort();
    const heard = <T>(answer: Promise<T>) => within(answer, "Nothing is heard from the service.", SILENCE_S);
    signal.addEventListener("abort", end);
    try {
      // Where there was no event yet, what came meanwhile is asked for as well.
      last ||= await begin();
      const response = await heard(api.request("GET", "stream", {
        query,
        signal: control.signal,
        headers: { accept: "text/event-stream", ...(last && { "last-event-id": last }) },
      }));
      to.onState({ is: "open" });
      failures = 0;
      seconds = 1;
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      for (let read = await heard(reader.read()); !read.done; read = await heard(reader.read())) take(read.value);
      take("\n\n");
    } catch (error) {
      if (signal.aborted) return;
      if (isFinal(error)) throw error;
      why = error instanceof Error ? error.message : String(error);
      if (error instanceof ApiError) seconds = Math.max(seconds, error.retryAfter);
    } finally {
      end();
      signal.removeEventListener("abort", end);
    }
    failures += 1;
    for (; seconds > 0 && !signal.aborted; seconds -= 1) {
      to.onState({ is: "waiting", why, seconds });
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}
