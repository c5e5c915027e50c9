/** The vectors that all SDKs share (`clients/vectors`): what of them is about the web, by the SDK's own code on virtual time. */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { SvcError } from "../src/api.js";
import { Deadline } from "../src/deadline.js";
import { signedText } from "../src/identity.js";
import { toJson } from "../src/json.js";
import { clientToken } from "../src/token.js";
import { type Cost, Endpoints, send } from "../src/transport.js";
import { openPage } from "./page.js";

interface Case<Given, Expect> {
  name: string;
  kind: string;
  given: Given;
  expect: Expect;
  only?: string[];
}

interface Step {
  status?: number;
  body?: string;
  headers?: Record<string, string>;
  fault?: "network" | "silence";
  after_ms?: number;
}

interface Sending {
  platform: string;
  timeout_ms: number;
  endpoints: number;
  draws: number[];
  epoch_ms: number;
  script: Step[];
}

interface Shown {
  code: string;
  status: number;
  retryable: boolean;
  retry_after_ms: number;
  request_id: string | null;
}

interface Outcome {
  response?: unknown;
  error?: Shown;
}

const ran: Record<string, number> = {};

/** The cases of a file that are about the web; one of a kind that is not expected there is a fault. */
function cases<Given, Expect>(file: string, kind: string): Case<Given, Expect>[] {
  const text = readFileSync(new URL(`../../../clients/vectors/${file}.json`, import.meta.url), "utf8");
  const read = JSON.parse(text) as { format: number; cases: Case<Given, Expect>[] };
  expect(read.format).toBe(1);
  const mine = read.cases.filter(({ only }) => only === undefined || only.includes("typescript"));
  expect(new Set(mine.map((one) => one.kind))).toEqual(new Set([kind]));
  return mine;
}

const ofWeb = <Given extends { platform: string }, Expect>(file: string, kind: string): Case<Given, Expect>[] =>
  cases<Given, Expect>(file, kind).filter(({ given }) => given.platform === "web");

/** A clock that moves to the next timer when nothing else is to be done. */
class VirtualTime {
  nowMs = 0;
  private readonly timers = new Map<number, { at: number; run: () => void }>();
  private last = 0;

  constructor(epochMs: number) {
    vi.stubGlobal("setTimeout", (run: () => void, ms = 0): number => {
      this.timers.set(++this.last, { at: this.nowMs + Math.max(0, ms), run });
      return this.last;
    });
    vi.stubGlobal("clearTimeout", (timer: number) => this.timers.delete(timer));
    vi.spyOn(performance, "now").mockImplementation(() => this.nowMs);
    vi.spyOn(Date, "now").mockImplementation(() => epochMs + this.nowMs);
  }

  async until<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    const done = (): void => void (isDone = true);
    work.then(done, done);
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      if (isDone) return work;
      const [next] = [...this.timers].sort(([a, one], [b, other]) => one.at - other.at || a - b);
      if (next === undefined) throw new Error("nothing will ever happen");
      this.timers.delete(next[0]);
      this.nowMs = Math.max(this.nowMs, next[1].at);
      next[1].run();
    }
  }
}

beforeEach(() => void openPage());
afterEach(() => void vi.unstubAllGlobals());

async function outcomeOf(given: Sending): Promise<Outcome & { attempts: unknown[]; ended_at_ms: number }> {
  const time = new VirtualTime(given.epoch_ms);
  const urls = Array.from({ length: given.endpoints }, (_, number) => `https://id${number}.shop.example`);
  const attempts: { endpoint: number; at_ms: number }[] = [];
  const requests: string[] = [];
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    const step = given.script[Math.min(attempts.length, given.script.length - 1)]!;
    attempts.push({ endpoint: urls.findIndex((one) => url.startsWith(one)), at_ms: time.nowMs });
    const { "idempotency-key": key } = init.headers as Record<string, string>;
    requests.push(`${key} ${new TextDecoder().decode(init.body as Uint8Array)}`);
    return new Promise((resolve, reject) => {
      const fail = (): void => reject(new TypeError("failed to fetch"));
      init.signal?.addEventListener("abort", fail);
      if (step.fault === "silence") return;
      const { status = 0, body = "", headers = {} } = step;
      const settle = step.fault ? fail : () => resolve(new Response(body, { status, headers }));
      if (step.after_ms) setTimeout(settle, step.after_ms);
      else settle();
    });
  });
  let draws = 0;
  vi.spyOn(Math, "random").mockImplementation(() => given.draws[draws++ % given.draws.length]!);
  const cost: Cost = { attempts: 0, networkMs: 0, sentBytes: 0, reportBytes: 0, endpoint: "" };
  const deadline = new Deadline(given.timeout_ms);
  const work = send(
    {
      path: "/api/v1/identify",
      body: { tag: "signup" },
      apiKey: "svc_pk_us_production_0123456789abcdefghij",
      endpoints: new Endpoints(urls),
      idempotencyKey: "k".repeat(36),
      signal: new AbortController().signal,
      deadline,
    },
    cost,
  );
  const outcome = await time.until(
    work.then(
      (response): Outcome => ({ response }),
      (error: unknown): Outcome => ({ error: shown(error) }),
    ),
  );
  deadline.stop();
  expect(new Set(requests).size).toBe(1);
  return { attempts, ended_at_ms: time.nowMs, ...outcome };
}

function shown(error: unknown): Shown {
  if (!(error instanceof SvcError)) throw error;
  const { code, status, retryable, retryAfterMs, requestId = null } = error;
  return { code, status, retryable, retry_after_ms: retryAfterMs, request_id: requestId };
}

describe("retry.json", () => {
  test.each(ofWeb<Sending, unknown>("retry", "send"))("$name", async ({ given, expect: expected }) => {
    expect(await outcomeOf(given)).toEqual(expected);
    count("retry");
  });
});

describe("errors.json", () => {
  type Given = { platform: string; epoch_ms: number; response: Step };
  test.each(ofWeb<Given, Outcome>("errors", "response"))("$name", async ({ given, expect: expected }) => {
    // Every attempt gets this response, so that the last one is the error.
    const script = [given.response];
    const { response, error } = await outcomeOf({ ...given, script, timeout_ms: 60_000, endpoints: 1, draws: [0] });
    expect({ ...(response ? { response } : {}), ...(error ? { error } : {}) }).toEqual(expected);
    count("errors");
  });
});

describe("canonical.json", () => {
  const sorted = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(sorted);
    if (typeof value !== "object" || value === null) return value;
    const named = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(named.map(([name, one]) => [name, sorted(one)]));
  };
  type Text = { text: string; sha256: string };
  test.each(cases<unknown, Text>("canonical", "canonical"))("$name", async ({ given, expect: expected }) => {
    const text = toJson(sorted(given))!;
    expect(text).toBe(expected.text);
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
    expect(Buffer.from(hash).toString("hex")).toBe(expected.sha256);
    count("canonical");
  });
});

describe("token.json", () => {
  type Given = { content: string | null; faults: string[]; made: string; storage: boolean };
  type Expected = { client_token: string | null; content: string | null };
  // Without storage the client asks for no token (`client.ts`).
  const some = cases<Given, Expected>("token", "token").filter(({ given }) => given.storage);
  test.each(some)("$name", ({ given, expect: expected }) => {
    let { content } = given;
    const has = (fault: string): boolean => given.faults.includes(fault);
    const refuse = (): never => {
      throw new DOMException("refused", "SecurityError");
    };
    vi.stubGlobal("localStorage", {
      getItem: () => (has("read") ? refuse() : content),
      setItem: (_: string, value: string) => {
        if (has("write")) refuse();
        if (!has("lost_write")) content = value;
      },
    });
    Object.defineProperty(document, "cookie", { get: () => "", set: () => undefined, configurable: true });
    const { client_token = null } = clientToken("_svc", given.made);
    expect(client_token).toBe(expected.client_token);
    // What `localStorage` refuses to read, it refuses to write.
    if (!has("read")) expect(content).toBe(expected.content);
    count("token");
  });
});

describe("proof.json", () => {
  type Given = { origin: string; account_id: string | null; action: string | null; tag: string | null; signals: string };
  test.each(cases<Given, { text: string }>("proof", "proof"))("$name", ({ given, expect: expected }) => {
    const { origin, account_id, action, tag, signals } = given;
    const subject = { account_id: account_id ?? undefined, action: action ?? undefined, tag: tag ?? undefined };
    expect(signedText(origin, subject, signals)).toBe(expected.text);
    count("proof");
  });
});

function count(file: string): void {
  ran[file] = (ran[file] ?? 0) + 1;
}

test("all of them ran", () => {
  expect(ran).toEqual({ retry: 44, errors: 32, canonical: 44, token: 13, proof: 6 });
});
