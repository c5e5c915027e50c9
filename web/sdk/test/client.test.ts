// @vitest-environment happy-dom
/** The whole client in an emulated page, with a real server: the report is as real as the emulation allows. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { LoadOptions, SvcClient } from "../src/api.js";
import { pause } from "../src/deadline.js";
import { forget, load, SvcError } from "../src/index.js";
import { IDENTIFIED, refusal, REQUEST_ID, Server, type Step } from "./server.js";

const KEY = "svc_pk_us_development_abcdefghij";
let server: Server | undefined;

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  document.cookie = "_svc=; Path=/; Max-Age=-1";
});

afterEach(async () => {
  await server?.stop();
  server = undefined;
  vi.unstubAllGlobals();
});

async function serving(...steps: Step[]): Promise<Server> {
  server = await Server.start(...steps);
  return server;
}

const loaded = (options: Partial<LoadOptions> = {}): SvcClient =>
  load({ apiKey: KEY, endpoint: server?.url ?? "http://127.0.0.1:9", collectMs: 30, deferred: false, ...options });

/** A worker that says what a test tells it to, when it tells it to. */
class SlowWorker {
  onmessage: ((event: { data: object }) => void) | null = null;
  isEnded = false;
  postMessage(): void {}
  terminate(): void {
    this.isEnded = true;
  }
  say(data: object): void {
    this.onmessage?.({ data });
  }
}

const signals = (number: number): Record<string, unknown> =>
  server?.received[number]?.body["signals"] as Record<string, unknown>;

describe("a report", () => {
  test("has the token, a nonce and what could be read; a source that fails costs only itself", async () => {
    await serving(IDENTIFIED);
    const client = loaded();
    expect(client.timing).toBeNull();
    expect(await client.identify({ tag: "signup" })).toEqual(IDENTIFIED.body);
    expect(server?.received[0]?.body).toMatchObject({ sdk: { platform: "web", version: "0.3.0" }, tag: "signup" });
    const report = signals(0);
    expect(report).toMatchObject({
      client_token: expect.stringMatching(/^[0-9a-f]{32}$/) as string,
      client_token_is_new: true,
    });
    expect(report["nonce"]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(report["collected_at"]).toBeTypeOf("number");
    expect(report["probes"]).toMatchObject({ version: 1, contexts: { page: { userAgent: navigator.userAgent } } });
    expect(Object.keys(report["components"] as object)).toContain("timezone");
    expect(Object.keys(report["botd"] as object)).toContain("webDriver");
    expect(client.timing).toMatchObject({
      attempts: 1,
      endpoint: server?.url,
      missed: expect.arrayContaining(["worker"]) as string[],
    });
    expect(client.timing?.notes.join()).toContain("worker");
  });

  test("has what its worker says until it is sent, and the deferred report what it says later", async () => {
    await serving({ status: 200, body: { ...IDENTIFIED.body, deferred_token: "d1" } }, { status: 202, body: { request_id: REQUEST_ID } });
    const worker = new SlowWorker();
    vi.stubGlobal("Worker", function start() {
      return worker;
    });
    const client = loaded({ deferred: true, workerUrl: "/svc.worker.js" });
    worker.say({ answers: { platform: "Linux x86_64" } });
    await client.identify();
    expect(client.timing?.missed).toContain("worker.graphics");
    expect(client.timing?.missed).not.toContain("worker");
    expect(signals(0)["probes"]).toMatchObject({ contexts: { worker: { platform: "Linux x86_64" } } });
    worker.say({ graphics: { gpuRenderer: "SwiftShader" } });
    expect(await client.deferredSent()).toBe(true);
    expect(signals(1)).toMatchObject({ tier: "deferred", worker: { gpuRenderer: "SwiftShader" } });
    expect(worker.isEnded).toBe(true);
  });

  test("is sent without the answers of a worker that never says anything", async () => {
    await serving({ status: 200, body: { ...IDENTIFIED.body, deferred_token: "d1" } }, { status: 202, body: { request_id: REQUEST_ID } });
    vi.stubGlobal("Worker", function start() {
      return new SlowWorker();
    });
    const client = loaded({ deferred: true, workerUrl: "/svc.worker.js" });
    await client.identify();
    expect(client.timing?.missed).toEqual(expect.arrayContaining(["worker", "worker.graphics"]));
    expect(signals(0)["probes"]).toMatchObject({ contexts: { worker: {} } });
    expect(await client.deferredSent()).toBe(true);
    expect(signals(1)).not.toHaveProperty("worker");
  });

  test("has the token that another tab has stored meanwhile, and none where that one has a key", async () => {
    await serving(IDENTIFIED, IDENTIFIED);
    vi.stubGlobal("crypto", { getRandomValues: (bytes: Uint8Array) => bytes.fill(7), subtle: {} });
    vi.stubGlobal("indexedDB", { open: () => ({}) }); // a busy browser that doesn't open it in time
    const other = "a".repeat(32);
    const first = loaded();
    localStorage.setItem("_svc", other);
    await first.identify();
    expect(signals(0)).toMatchObject({ client_token: other });
    expect(signals(0)["client_token_is_new"]).toBeUndefined();
    localStorage.clear();
    document.cookie = "_svc=; Path=/; Max-Age=-1";
    const second = loaded();
    localStorage.setItem("_svc", other);
    localStorage.setItem("_svc_key", "1");
    await second.identify();
    expect(signals(1)["client_token"]).toBeUndefined();
    expect(localStorage.getItem("_svc")).toBe(other);
  });

  test("goes on with its token where the key comes later", async () => {
    await serving(IDENTIFIED);
    const opening: { result?: object; onsuccess?: () => void } = {};
    vi.stubGlobal("indexedDB", { open: () => opening });
    const stored: { token: string }[] = [];
    const transaction = (): object => {
      const request: { result: object | undefined; onsuccess?: () => void } = { result: stored[0] };
      const store = { get: () => request, put: (kept: { token: string }) => stored.push(kept) };
      const made: { oncomplete?: () => void; objectStore(): object } = { objectStore: () => store };
      setTimeout(() => [request.onsuccess?.(), made.oncomplete?.()]);
      return made;
    };
    const client = loaded();
    localStorage.setItem("_svc", "b".repeat(32)); // by another tab
    await client.identify();
    opening.result = { transaction, close: () => undefined };
    opening.onsuccess?.();
    await vi.waitFor(() => expect(stored).toHaveLength(1));
    expect(stored[0]?.token).toBe(signals(0)["client_token"]);
  });

  test("is the same byte for byte on equal visits, but for nonce and time, whichever answer comes first", async () => {
    await serving(IDENTIFIED, IDENTIFIED);
    const worker = new SlowWorker();
    vi.stubGlobal("Worker", function start() {
      return worker;
    });
    const said = [{ answers: { platform: "Linux x86_64" } }, { flushMs: 5 }, { graphics: { gpuRenderer: "SwiftShader" } }];
    Object.assign(navigator, { userAgentData: { brands: [], mobile: false, platform: "Linux" } });
    const texts: string[] = [];
    try {
      for (const [number, sooner] of [true, false].entries()) {
        const client = loaded({ workerUrl: "/svc.worker.js", collectMs: 2000 });
        if (!sooner) await pause(20);
        for (const one of said) worker.say(one);
        await client.identify();
        const { nonce, collected_at, client_token, client_token_is_new, ...rest } = signals(number);
        expect([nonce, collected_at, client_token]).not.toContain(undefined);
        expect(client_token_is_new).toBe(sooner ? true : undefined);
        expect(rest["incognito"]).toBe(false);
        delete (rest["botd"] as { process?: unknown }).process; // node's own, which no page has
        texts.push(JSON.stringify(rest));
      }
    } finally {
      delete (navigator as { userAgentData?: unknown }).userAgentData;
    }
    expect(texts[1]).toBe(texts[0]);
    const components = Object.values(signals(0)["components"] as Record<string, object>);
    expect(new Set(components.flatMap((component) => Object.keys(component)))).toEqual(new Set(["value"]));
    expect(signals(0)["botd"]).not.toHaveProperty("rtt");
  });

  test("asks for a signed verdict only with the option, and keeps none in the cache", async () => {
    const signed = { ...IDENTIFIED, body: { ...IDENTIFIED.body, verdict: "a.b.c" } };
    await serving(signed, IDENTIFIED);
    const client = loaded({ verdict: true, cache: { storage: "memory", durationMs: 60_000 } });
    expect(await client.identify()).toEqual(signed.body);
    expect(await client.identify()).not.toHaveProperty("verdict");
    await loaded().identify();
    expect(server?.received.map(({ body }) => body["verdict"])).toEqual([true, undefined]);
  });

  test("asks for a test verdict with a development key alone, and caches it apart", async () => {
    await serving(IDENTIFIED);
    const test = { signals: ["tor"], accountVelocity: 5 };
    const cache = { storage: "local", durationMs: 60_000 } as const;
    const client = loaded({ test, cache });
    await client.identify();
    expect(await client.identify()).toMatchObject({ cached: true });
    await loaded({ cache }).identify();
    const live = loaded({ test, apiKey: "svc_pk_us_production_abcdefghij" });
    await live.identify();
    expect([0, 1, 2].map((number) => signals(number)["test"])).toEqual([
      { signals: ["tor"], account_velocity: 5 },
      undefined,
      undefined,
    ]);
    expect(client.timing?.notes.join()).not.toContain("test");
    expect(live.timing?.notes.join()).toContain("`test` needs a development key");
  });

  test("is sent once: the next identification collects again", async () => {
    await serving(IDENTIFIED);
    const client = loaded();
    await client.identify();
    await client.identify();
    expect(signals(0)["nonce"]).not.toBe(signals(1)["nonce"]);
    expect(server?.received[0]?.headers["idempotency-key"]).not.toBe(server?.received[1]?.headers["idempotency-key"]);
    expect(signals(1)).toMatchObject({ client_token: signals(0)["client_token"] });
    expect(signals(1)["client_token_is_new"]).toBeUndefined();
  });

  test("has no token with storage: false, and nothing is stored", async () => {
    await serving(IDENTIFIED);
    await loaded({ storage: false }).identify();
    expect(signals(0)["client_token"]).toBeUndefined();
    expect([localStorage.length, document.cookie]).toEqual([0, ""]);
  });
});

describe("a page that the browser makes ahead of a click", () => {
  const show = (): void => {
    Object.assign(document, { prerendering: false });
    document.dispatchEvent(new Event("prerenderingchange"));
  };

  beforeEach(() => void Object.assign(document, { prerendering: true }));
  afterEach(() => void Reflect.deleteProperty(document, "prerendering"));

  test("is identified when somebody opens it; before, nothing is read, stored or sent", async () => {
    await serving(IDENTIFIED);
    const client = loaded();
    const results = [client.identify({ tag: "a" }), client.identify({ tag: "a" }), client.identify({ tag: "b" })];
    await pause(100);
    expect([server?.received.length, localStorage.length, document.cookie]).toEqual([0, 0, ""]);
    show();
    expect(await Promise.all(results)).toHaveLength(3);
    expect(server?.received).toHaveLength(2);
    expect(signals(0)).toHaveProperty("client_token");
  });

  test("sends nothing where the call was aborted before", async () => {
    await serving(IDENTIFIED);
    const stop = new AbortController();
    const left = loaded().identify({ signal: stop.signal });
    stop.abort();
    await expect(left).rejects.toMatchObject({ code: "aborted" });
    show();
    await pause(100);
    expect(server?.received).toHaveLength(0);
  });
});

describe("calls at the same time", () => {
  test("share one request for the same tag, and have their own for others", async () => {
    await serving(IDENTIFIED);
    const client = loaded();
    const results = await Promise.all([
      client.identify({ tag: "a" }),
      client.identify({ tag: "a" }),
      client.identify({ tag: "b" }),
      client.identify(),
    ]);
    expect(results).toHaveLength(4);
    expect(server?.received.map(({ body }) => body["tag"])).toEqual(
      expect.arrayContaining(["a", "b", undefined]) as unknown[],
    );
    expect(server?.received).toHaveLength(3);
  });

  test("are of the same account, action and tag, or share nothing", async () => {
    await serving(IDENTIFIED);
    const client = loaded();
    const asked = [{ accountId: "a" }, { action: "a" }, { tag: "a" }, { accountId: "a", tag: "a" }, { tag: "a", accountId: "a" }];
    await Promise.all([...asked, ...asked].map((one) => client.identify(one)));
    const sent = server?.received.map(({ body: { account_id, action, tag } }) => JSON.stringify({ account_id, action, tag }));
    expect(sent?.sort()).toEqual(['{"account_id":"a","tag":"a"}', '{"account_id":"a"}', '{"action":"a"}', '{"tag":"a"}']);
  });

  test("may be left by one caller, and end when the last leaves", async () => {
    await serving(() => undefined);
    const client = loaded();
    const [one, other] = [new AbortController(), new AbortController()];
    const first = client.identify({ signal: one.signal }).catch((error: unknown) => error);
    const second = client.identify({ signal: other.signal }).catch((error: unknown) => error);
    await server?.until(1);
    one.abort();
    expect(await first).toMatchObject({ code: "aborted" });
    other.abort();
    expect(await second).toMatchObject({ code: "aborted" });
    await expect(client.identify({ signal: one.signal })).rejects.toMatchObject({ code: "aborted" });
    expect(server?.received).toHaveLength(1);
  });

  test("have each their own time limit, also where they share a request", async () => {
    await serving((response) => setTimeout(() => response.writeHead(200).end(JSON.stringify(IDENTIFIED.body)), 300));
    const client = loaded();
    const patient = client.identify();
    await server?.until(1);
    const stop = new AbortController();
    const hurried = client.identify({ timeoutMs: 20, signal: stop.signal });
    await expect(hurried).rejects.toMatchObject({
      code: "timeout",
      message: expect.stringContaining(" within 20 ms") as string,
    });
    stop.abort(); // who has left already leaves nobody else behind
    expect(await patient).toEqual(IDENTIFIED.body);
    expect(server?.received).toHaveLength(1);
  });

  test("do not share a request that the last caller has left, as where an effect runs twice", async () => {
    await serving(IDENTIFIED);
    const client = loaded();
    const left = new AbortController();
    const first = client.identify({ signal: left.signal }).catch((error: unknown) => error);
    left.abort();
    const second = client.identify();
    expect(await first).toMatchObject({ code: "aborted" });
    const third = client.identify();
    expect(await second).toEqual(IDENTIFIED.body);
    expect(await third).toEqual(IDENTIFIED.body);
    expect(server?.received).toHaveLength(1);
  });
});

test("a page whose promises are those of an older library identifies as any other", async () => {
  await serving(IDENTIFIED);
  const all = Promise.all.bind(Promise) as (list: unknown[]) => Promise<unknown[]>;
  vi.spyOn(Promise, "all").mockImplementation(((list: unknown) =>
    Array.isArray(list) ? all(list) : Promise.reject(new TypeError("expecting an array"))) as typeof Promise.all);
  vi.spyOn(Promise.prototype, "finally").mockImplementation(() => {
    throw new TypeError("there is no finally");
  });
  try {
    const client = loaded();
    const { signal } = new AbortController();
    expect(await Promise.all([client.identify({ signal }), client.identify(), client.identify({ signal })])).toHaveLength(3);
    expect(server?.received).toHaveLength(1);
  } finally {
    vi.restoreAllMocks();
  }
});

describe("errors", () => {
  test("of options come before anything is sent", async () => {
    await serving(IDENTIFIED);
    const client = loaded();
    for (const wrong of [{ accountId: "a\n" }, { action: "Log in" }, { tag: "x".repeat(1025) }, { acountId: "a" }]) {
      const [name] = Object.keys(wrong) as [string];
      const message = expect.stringContaining(`\`${name}\``) as string;
      await expect(client.identify(wrong)).rejects.toMatchObject({ name: "SvcError", code: "invalid_options", message });
    }
    await expect(forget({ storge: "_shop" } as object)).rejects.toMatchObject({ code: "invalid_options" });
    expect(server?.received).toHaveLength(0);
  });

  const needed = ["fetch", "AbortController", "TextEncoder", "URL", "Map"];
  test.each([
    ...[...needed, "crypto"].map((name) => [name, undefined]),
    ...needed.map((name) => [name, "a variable of the page"]),
  ] as [string, unknown][])("of a browser without %s say so, also where it is %j", (name, value) => {
    vi.stubGlobal(name, value);
    expect(() => loaded()).toThrow(
      expect.objectContaining({ code: "unsupported_browser", retryable: false, message: expect.stringContaining(name) as string }) as Error,
    );
  });

  test.each([
    ["tag", "x".repeat(1025)],
    ["tag", 7],
    ["timeoutMs", -1],
    ["signal", new AbortController()],
    ["signal", true],
  ])("of a wrong %s are invalid options", async (name, value) => {
    await serving(IDENTIFIED);
    const problem = await loaded()
      .identify({ [name]: value })
      .catch((error: unknown) => error);
    expect(problem).toBeInstanceOf(SvcError);
    expect(problem).toMatchObject({ code: "invalid_options" });
    expect(server?.received).toHaveLength(0);
  });

  test("of the service have its code and id; the next call begins again", async () => {
    await serving(refusal(401, "unauthorized"), IDENTIFIED);
    const client = loaded();
    await expect(client.identify()).rejects.toMatchObject({
      name: "SvcError",
      code: "unauthorized",
      status: 401,
      requestId: REQUEST_ID,
    });
    expect(client.timing?.attempts).toBe(1);
    expect(await client.identify()).toEqual(IDENTIFIED.body);
  });

  test("of any other kind are SvcErrors, too", async () => {
    await serving(IDENTIFIED);
    const client = loaded();
    vi.stubGlobal("TextEncoder", undefined);
    await expect(client.identify()).rejects.toMatchObject({ name: "SvcError", code: "internal_error" });
  });

  test("of load() are of this kind alone, whatever the page has put in the place of the browser's objects", () => {
    vi.stubGlobal("document", { ...document, addEventListener: "an image of this name" });
    expect(() => loaded()).toThrow(expect.objectContaining({ name: "SvcError", code: "internal_error" }) as Error);
  });

  test("a time limit ends while collecting, too", async () => {
    await serving(IDENTIFIED);
    await expect(loaded({ collectMs: 3000 }).identify({ timeoutMs: 1 })).rejects.toMatchObject({
      code: "timeout",
      message: expect.stringContaining("was not collected within 1 ms, so nothing was sent") as string,
    });
    expect(server?.received).toHaveLength(0);
  });
});

describe("the second report", () => {
  const withToken: Step = { status: 200, body: { ...IDENTIFIED.body, deferred_token: "d1" } };

  test("follows with the token of the first", async () => {
    await serving(withToken, { status: 202, body: { request_id: REQUEST_ID } });
    const client = loaded({ deferred: true });
    await client.identify();
    expect(await client.deferredSent()).toBe(true);
    expect(server?.received[1]).toMatchObject({
      path: `/api/v1/events/${REQUEST_ID}/supplement`,
      body: { token: "d1", signals: { tier: "deferred", version: 1 } },
    });
    expect(server?.received[1]?.headers["idempotency-key"]).toBeUndefined();
  });

  test("leaves no listener behind: a page that identifies at each step would gather them", async () => {
    await serving(withToken, { status: 202, body: { request_id: REQUEST_ID } });
    const speech = Object.assign(new EventTarget(), { getVoices: () => [] });
    vi.stubGlobal("speechSynthesis", speech);
    const places = [window, speech] as EventTarget[];
    const named = (calls: unknown[][]): unknown[] => calls.map(([name]) => name).sort();
    const added = places.map((place) => vi.spyOn(place, "addEventListener"));
    const removed = places.map((place) => vi.spyOn(place, "removeEventListener"));
    const client = loaded({ deferred: true });
    await client.identify();
    expect(await client.deferredSent()).toBe(true);
    expect(added.map(({ mock }) => named(mock.calls))).toEqual([["pagehide"], ["voiceschanged"]]);
    expect(removed.map(({ mock }) => named(mock.calls))).toEqual([["pagehide"], ["voiceschanged"]]);
    vi.restoreAllMocks();
  });

  test("is sent with what is known where the page is left", async () => {
    await serving(withToken, { status: 202, body: { request_id: REQUEST_ID } });
    vi.stubGlobal("speechSynthesis", Object.assign(new EventTarget(), { getVoices: () => [] })); // says nothing
    const soon = globalThis.setTimeout;
    vi.stubGlobal("setTimeout", (run: () => void, ms = 0) => (ms < 1000 ? soon(run, ms) : 0)); // and is waited for forever
    const client = loaded({ deferred: true });
    await client.identify();
    window.dispatchEvent(new Event("pagehide"));
    expect(await client.deferredSent()).toBe(true);
    expect(server?.received[1]?.body["signals"]).toMatchObject({ tier: "deferred", version: 1 });
    expect(server?.received[1]?.headers["content-encoding"]).toBeUndefined();
  });

  test("follows where the page's own script is never idle", async () => {
    await serving(withToken, { status: 202, body: { request_id: REQUEST_ID } });
    vi.stubGlobal("requestIdleCallback", () => 0);
    const client = loaded({ deferred: true });
    await client.identify();
    expect(await client.deferredSent()).toBe(true);
  });

  test("that is refused is no error", async () => {
    await serving(withToken, refusal(422, "invalid_supplement"));
    const client = loaded({ deferred: true });
    await client.identify();
    expect(await client.deferredSent()).toBe(false);
  });

  test.each([
    [{ deferred: false }, withToken],
    [{}, { status: 200, body: { request_id: REQUEST_ID, duplicate: true } }],
  ] as [object, Step][])("is not sent with %j, nor after a duplicate", async (options, step) => {
    await serving(step);
    const client = loaded({ deferred: true, ...options });
    await client.identify();
    expect(await client.deferredSent()).toBe(false);
    expect(server?.received.filter(({ path }) => path !== "/api/v1/identify")).toEqual([]);
  });

  test("follows a duplicate that has the whole response", async () => {
    const whole = { ...IDENTIFIED.body, deferred_token: "d1", duplicate: true };
    await serving(refusal(503, "busy"), { status: 200, body: whole }, { status: 202, body: { request_id: REQUEST_ID } });
    const client = loaded({ deferred: true });
    expect(await client.identify()).toEqual(whole);
    expect(await client.deferredSent()).toBe(true);
    expect(server?.received[2]?.body["token"]).toBe("d1");
  });
});

describe("the cache", () => {
  test.each(["memory", "session", "local"] as const)(
    "in %s answers the same question without a request",
    async (storage) => {
      await serving({ status: 200, body: { ...IDENTIFIED.body, deferred_token: "d1" } });
      const cache = { storage, durationMs: 60_000 };
      const client = loaded({ cache });
      const first = await client.identify({ tag: "a" });
      expect(first.cached).toBeUndefined();
      expect(await client.identify({ tag: "a" })).toEqual({ ...IDENTIFIED.body, cached: true });
      await client.identify({ tag: "b" });
      expect(server?.received).toHaveLength(2);
      await loaded({ cache }).identify({ tag: "a" });
      expect(server?.received).toHaveLength(storage === "memory" ? 3 : 2);
      await pause(0); // the second client answered before it had looked for its token
      await client.forget();
      expect([localStorage.length, sessionStorage.length]).toEqual([0, 0]);
    },
  );

  test("holds a response for its account and action alone", async () => {
    await serving(IDENTIFIED);
    const client = loaded({ cache: { storage: "session", durationMs: 60_000 } });
    for (const one of [{ accountId: "a" }, { accountId: "b" }, { accountId: "a", action: "log_in" }, {}]) {
      expect((await client.identify({ ...one, tag: "t" })).cached).toBeUndefined();
      expect((await client.identify({ ...one, tag: "t" })).cached).toBe(true);
    }
    expect(server?.received).toHaveLength(4);
  });

  test("is off by default, and ends", async () => {
    await serving(IDENTIFIED);
    const off = loaded();
    await off.identify();
    await off.identify();
    const short = loaded({ cache: { storage: "memory", durationMs: 1 } });
    await short.identify();
    await vi.waitFor(async () => expect((await short.identify()).cached).toBeUndefined());
    expect(server?.received.length).toBeGreaterThanOrEqual(4);
  });

  test.each(["session", "local"] as const)("in %s storage that is refused costs nothing but itself", async (storage) => {
    await serving(IDENTIFIED);
    vi.stubGlobal(`${storage}Storage`, undefined);
    Object.defineProperty(globalThis, `${storage}Storage`, {
      configurable: true,
      get: () => {
        throw new DOMException("refused", "SecurityError");
      },
    });
    const client = loaded({ cache: { storage, durationMs: 60_000 } });
    expect(await client.identify()).toEqual(IDENTIFIED.body);
    expect(await client.identify()).toEqual(IDENTIFIED.body);
    expect(server?.received).toHaveLength(2);
  });

  test("holds no duplicate without a visitor", async () => {
    const bare = { status: 200, body: { request_id: REQUEST_ID, duplicate: true } };
    await serving(bare, bare, IDENTIFIED);
    const client = loaded({ cache: { storage: "memory", durationMs: 60_000 } });
    expect((await client.identify()).duplicate).toBe(true);
    expect(await client.identify()).toEqual(IDENTIFIED.body);
  });

  test("holds the whole response of an earlier attempt as any other", async () => {
    await serving(refusal(503, "busy"), { status: 200, body: { ...IDENTIFIED.body, duplicate: true } });
    const client = loaded({ cache: { storage: "memory", durationMs: 60_000 } });
    expect((await client.identify()).duplicate).toBe(true);
    expect(await client.identify()).toEqual({ ...IDENTIFIED.body, cached: true });
    expect(server?.received).toHaveLength(2);
  });
});

describe("forget", () => {
  test("removes the token, and this client stores nothing from then on", async () => {
    await serving(IDENTIFIED);
    const client = loaded();
    await client.identify();
    await client.forget();
    expect([localStorage.length, document.cookie]).toEqual([0, ""]);
    await client.identify();
    expect(signals(1)["client_token"]).toBeUndefined();
    expect([localStorage.length, document.cookie]).toEqual([0, ""]);
  });

  test("says so where the browser keeps the token all the same", async () => {
    await serving(IDENTIFIED);
    const client = loaded();
    vi.stubGlobal("localStorage", { getItem: () => "0".repeat(32), removeItem: () => undefined });
    await expect(client.forget()).rejects.toMatchObject({ name: "SvcError", code: "storage" });
  });

  test("ends where the database hangs", async () => {
    vi.stubGlobal("indexedDB", { deleteDatabase: () => ({}) });
    vi.useFakeTimers();
    try {
      const forgotten = expect(forget()).rejects.toMatchObject({ name: "SvcError", code: "storage" });
      await vi.advanceTimersByTimeAsync(5000);
      await forgotten;
    } finally {
      vi.useRealTimers();
    }
  });

  test("without a client removes what earlier visits stored, and reads and stores nothing", async () => {
    await serving(IDENTIFIED);
    const cache = { storage: "local", durationMs: 60_000 } as const;
    await loaded({ cache, storage: "_shop" }).identify();
    localStorage.setItem("other", "stays");
    await forget({ cache, storage: "_shop" });
    expect([Object.keys(localStorage), document.cookie]).toEqual([["other"], ""]);
    await forget();
    await forget({ storage: false });
    await expect(forget({ storage: "a b" })).rejects.toMatchObject({ code: "invalid_options" });
  });
});
