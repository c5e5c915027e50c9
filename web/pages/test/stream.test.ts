import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Api } from "../console/api.js";
import { follow, type StreamState } from "../console/stream.js";

const PING = ": ping\n\n";
const event = (id: string) => `id: ${id}\nevent: identification\ndata: {"request_id": "${id}"}\n\n`;

/** Streams of a service: what each of them says, and then nothing for ever. */
function streams(...said: string[]) {
  const connections: { from: string | undefined; isOpen: boolean }[] = [];
  const request = vi.fn(async (_method: string, _path: string, { headers, signal }: { headers: Record<string, string>; signal: AbortSignal }) => {
    const connection = { from: headers["last-event-id"], isOpen: true };
    signal.addEventListener("abort", () => (connection.isOpen = false));
    const text = said[Math.min(connections.push(connection), said.length) - 1]!;
    return new Response(new ReadableStream({ start: (to) => to.enqueue(new TextEncoder().encode(text)) }));
  });
  return { connections, api: { request } as unknown as Api };
}

const control = () => new AbortController();
let left = control();
const states: StreamState["is"][] = [], rows: string[] = [];
const listener = { onState: ({ is }: StreamState) => void states.push(is), onEvent: ({ request_id }: { request_id: string }) => void rows.push(request_id), onMissed: () => undefined };

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  left.abort();
  left = control();
  states.length = rows.length = 0;
  vi.useRealTimers();
});

it("takes a connection on which nothing is heard for dead, ends it, and goes on behind the last event", async () => {
  const { connections, api } = streams(PING + event("b"), event("c"));
  void follow(api, {}, async () => "a", left.signal, listener as never);
  await vi.advanceTimersByTimeAsync(29_000);
  expect([states.at(-1), connections.length]).toEqual(["open", 1]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(states.at(-1)).toBe("waiting");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(connections).toEqual([{ from: "a", isOpen: false }, { from: "b", isOpen: true }]);
  expect(rows).toEqual(["b", "c"]);
  left.abort();
  expect(connections[1]!.isOpen).toBe(false);
});

it("asks again where to begin as long as there was no event: one may have come while the connection was lost", async () => {
  const { connections, api } = streams(PING);
  const begin = vi.fn(async () => "").mockResolvedValueOnce("").mockResolvedValueOnce("a");
  void follow(api, {}, begin, left.signal, listener as never);
  await vi.advanceTimersByTimeAsync(32_000);
  expect(connections.map(({ from }) => from)).toEqual([undefined, "a"]);
});
