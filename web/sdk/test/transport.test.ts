import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { SvcError } from "../src/api.js";
import { Deadline, pause } from "../src/deadline.js";
import { listenToPolicy } from "../src/explain.js";
import { backoffMs, type Cost, Endpoints, type Message, retryAfterMs, send } from "../src/transport.js";
import { openPage, type World } from "./page.js";
import { IDENTIFIED, refusal, REQUEST_ID, Server, type Step, UNAVAILABLE } from "./server.js";

const KEY = "svc_pk_us_production_0123456789abcdefghij";
let world: World;
let servers: Server[] = [];

beforeEach(() => {
  world = openPage();
});

afterEach(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  servers = [];
  vi.unstubAllGlobals();
});

async function serving(...steps: Step[]): Promise<Server> {
  const server = await Server.start(...steps);
  servers.push(server);
  return server;
}

/** An address at which nothing listens any more. */
async function nobody(): Promise<string> {
  const server = await Server.start(IDENTIFIED);
  const { url } = server;
  await server.stop();
  return url;
}

interface Outcome {
  response?: Record<string, unknown>;
  error?: SvcError;
  cost: Cost;
}

async function sent(urls: string | string[] | Endpoints, changes: Partial<Message> = {}): Promise<Outcome> {
  const endpoints = urls instanceof Endpoints ? urls : new Endpoints([urls].flat());
  const cost: Cost = { attempts: 0, networkMs: 0, sentBytes: 0, reportBytes: 0, endpoint: "" };
  const message: Message = {
    path: "/api/v1/identify",
    body: { tag: "signup" },
    apiKey: KEY,
    endpoints,
    idempotencyKey: "k".repeat(32),
    signal: new AbortController().signal,
    deadline: new Deadline(8000),
    ...changes,
  };
  try {
    return { response: await send(message, cost), cost };
  } catch (error) {
    expect(error).toBeInstanceOf(SvcError);
    return { error: error as SvcError, cost };
  } finally {
    message.deadline.stop();
  }
}

const keys = (server: Server): unknown[] => server.received.map(({ headers }) => headers["idempotency-key"]);

/** What the requests asked for where their identification was made before. */
const replays = (server: Server): unknown[] => server.received.map(({ headers }) => headers["x-svc-replay"]);

const BARE: Step = { status: 200, body: { request_id: REQUEST_ID, duplicate: true } };

describe("one attempt", () => {
  test("sends the key, the idempotency key and JSON", async () => {
    const server = await serving(IDENTIFIED);
    const { response, cost } = await sent(server.url);
    expect(response).toEqual(IDENTIFIED.body);
    expect(cost).toMatchObject({ attempts: 1, endpoint: server.url, sentBytes: cost.reportBytes });
    const [request] = server.received;
    expect(request).toMatchObject({ path: "/api/v1/identify", body: { tag: "signup" } });
    expect(request?.headers).toMatchObject({
      "x-api-key": KEY,
      "idempotency-key": "k".repeat(32),
      "content-type": "application/json",
    });
    expect(request?.headers["content-encoding"]).toBeUndefined();
  });

  test("compresses what is longer than 1 kB", async () => {
    const server = await serving(IDENTIFIED);
    const { cost } = await sent(server.url, { body: { tag: "a".repeat(2000) } });
    expect(server.received[0]?.headers["content-encoding"]).toBe("gzip");
    expect(server.received[0]?.body).toEqual({ tag: "a".repeat(2000) });
    expect(cost.sentBytes).toBeLessThan(cost.reportBytes / 10);
  });

  test("sends as it is where the browser can't compress", async () => {
    vi.stubGlobal("CompressionStream", undefined);
    const server = await serving(IDENTIFIED);
    await sent(server.url, { body: { tag: "a".repeat(2000) } });
    expect(server.received[0]?.headers["content-encoding"]).toBeUndefined();
  });

  test("sends as it is where compressing never ends", async () => {
    vi.stubGlobal("CompressionStream", TransformStream);
    vi.spyOn(Response.prototype, "arrayBuffer").mockReturnValue(new Promise(() => undefined));
    const server = await serving(IDENTIFIED);
    expect((await sent(server.url, { body: { tag: "a".repeat(2000) } })).response).toEqual(IDENTIFIED.body);
    expect(server.received[0]?.headers["content-encoding"]).toBeUndefined();
    vi.restoreAllMocks();
  });

  test("asks a duplicate of the browser's own for the whole response, once", async () => {
    const server = await serving(BARE, { status: 200, body: { ...IDENTIFIED.body, duplicate: true } });
    expect((await sent(server.url)).response).toEqual({ ...IDENTIFIED.body, duplicate: true });
    expect(replays(server)).toEqual([undefined, "full"]);
    expect(new Set(keys(server)).size).toBe(1);
  });

  test.each([[BARE], [refusal(503, "busy")], [(response: ServerResponse): unknown => response.destroy()]] as Step[][])(
    "passes a duplicate on where there is no more to have: %o",
    async (step) => {
      const server = await serving(BARE, step!);
      expect((await sent(server.url)).response).toEqual(BARE.body);
      expect(server.received).toHaveLength(2);
    },
  );
});

describe("another attempt", () => {
  const PROXY = "Does a proxy change the body";
  test.each<[unknown, string, boolean]>([
    [[{ field: "signals.test.signals", issue: "unknown_signal", location: "body" }],
      "said by the service: validation_error (signals.test.signals: unknown_signal)", false],
    [[{ field: "tag", issue: "too_long", location: "body" }, { field: "", issue: "too_deep", location: "body" }],
      "(tag: too_long, body: too_deep) Does a proxy change the body", true],
    [undefined, "said by the service: validation_error Does a proxy change the body", true],
    ["details of something else", "(body: undefined) Does a proxy change the body", true],
    [[null], "(body: undefined)", true],
  ])("a 422 names each field and its issue: %j", async (details, words, isProxy) => {
    const { body } = refusal(422, "validation_error") as { body: { error: object } };
    const server = await serving({ status: 422, body: { error: { ...body.error, details } }, headers: {} } as Step);
    const { error } = await sent(server.url);
    expect(error?.message).toContain(words);
    expect(error?.message.includes(PROXY)).toBe(isProxy);
  });

  test.each([408, 425, 429, 500, 502, 503, 504])("follows status %i, with the same idempotency key", async (status) => {
    const server = await serving(refusal(status, "busy"), IDENTIFIED);
    const { response, cost } = await sent(server.url);
    expect(response).toEqual(IDENTIFIED.body);
    expect(cost.attempts).toBe(2);
    expect(new Set(keys(server))).toEqual(new Set(["k".repeat(32)]));
    expect(replays(server)).toEqual([undefined, "full"]);
  });

  test("follows a connection that breaks", async () => {
    const server = await serving((response) => response.destroy(), IDENTIFIED);
    expect(await sent(server.url)).toMatchObject({ response: IDENTIFIED.body, cost: { attempts: 2 } });
  });

  test("follows a body that breaks off", async () => {
    const half: Step = (response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
      response.write('{"request_id":', () => response.destroy());
    };
    const server = await serving(half, IDENTIFIED);
    expect(await sent(server.url)).toMatchObject({ response: IDENTIFIED.body, cost: { attempts: 2 } });
  });

  test("is made twice at most", async () => {
    const server = await serving(UNAVAILABLE);
    const { error, cost } = await sent(server.url);
    expect(error).toMatchObject({ code: "service_unavailable", status: 503, retryable: true, requestId: REQUEST_ID });
    expect([cost.attempts, server.received.length]).toEqual([3, 3]);
  });

  test.each([400, 401, 402, 403, 404, 409, 413, 415, 422])("does not follow status %i", async (status) => {
    const server = await serving(refusal(status, "refused"));
    const { error } = await sent(server.url);
    expect(error).toMatchObject({ code: "refused", status, retryable: false, requestId: REQUEST_ID });
    expect(server.received).toHaveLength(1);
  });

  test("does not wait for a Retry-After beyond the time limit, but says it", async () => {
    const server = await serving(refusal(429, "rate_limited", { "retry-after": "3600" }));
    const { error, cost } = await sent(server.url);
    expect(error).toMatchObject({ code: "rate_limited", retryable: true, retryAfterMs: 3_600_000 });
    expect(cost.attempts).toBe(1);
  });

  test("waits for the network where the browser says that it is offline", async () => {
    const server = await serving((response) => response.destroy(), IDENTIFIED);
    world.browser.onLine = false;
    const pending = sent(server.url);
    await server.until(1);
    world.goOnline();
    expect(await pending).toMatchObject({ response: IDENTIFIED.body, cost: { attempts: 2 } });
  });
});

describe("the wait before it", () => {
  test("is any moment up to 100 ms, doubled each time, up to 2 s", () => {
    expect([1, 2, 3, 4, 5, 6, 9].map((attempt) => backoffMs(attempt, 0, () => 1))).toEqual([
      100, 200, 400, 800, 1600, 2000, 2000,
    ]);
    expect(backoffMs(3, 0, () => 0)).toBe(0);
  });

  test("is never shorter than the service asked for", () => {
    expect(backoffMs(1, 7000, () => 1)).toBe(7000);
  });

  test.each([
    [null, 0],
    ["", 0],
    ["3", 3000],
    ["0", 0],
    ["soon", 0],
    ["Thu, 01 Jan 1970 00:00:10 GMT", 9000],
    ["Thu, 01 Jan 1970 00:00:00 GMT", 0],
  ])("reads Retry-After %j as %i ms", (header, expected) => {
    expect(retryAfterMs(header, 1000)).toBe(expected);
  });
});

describe("the time limit", () => {
  test("ends a request without a response", async () => {
    const server = await serving(() => undefined);
    const { error, cost } = await sent(server.url, { deadline: new Deadline(150) });
    expect(error).toMatchObject({ code: "timeout", status: 0, retryable: true });
    expect(error?.message).toMatch(/^No response from http:\/\/127\.0\.0\.1:\d+ within 150 ms/);
    expect(error?.message).not.toContain("hidden");
    expect(cost.attempts).toBe(1);
  });

  test("holds where scripts of the page replace fetch by one that hangs and is not told to stop", async () => {
    const server = await serving(IDENTIFIED);
    const { fetch } = globalThis;
    let calls = 0;
    vi.stubGlobal("fetch", (url: string, init: RequestInit) => (calls++ ? fetch(url, init) : new Promise(() => undefined)));
    expect((await sent(server.url, { deadline: new Deadline(50) })).error).toMatchObject({ code: "timeout" });
    calls = 0;
    expect(await sent(server.url)).toMatchObject({ response: IDENTIFIED.body, cost: { attempts: 2 } });
  }, 10_000);

  test("is said as it was given, whatever was left of it for the last attempt", async () => {
    const server = await serving(() => undefined);
    const deadline = new Deadline(150);
    await pause(50);
    expect((await sent(server.url, { deadline })).error?.message).toContain(" within 150 ms");
  });

  test("does not count while the page is hidden, and says so when it ends", async () => {
    const server = await serving((response) =>
      setTimeout(() => response.writeHead(200).end(JSON.stringify(IDENTIFIED.body)), 300),
    );
    world.page.show("hidden");
    expect(await sent(server.url, { deadline: new Deadline(50) })).toMatchObject({ response: IDENTIFIED.body });

    const silent = await serving(() => undefined);
    const deadline = new Deadline(50);
    const pending = sent(silent.url, { deadline });
    await silent.until(1);
    world.page.show("visible");
    expect((await pending).error?.message).toContain("The page was hidden meanwhile");
  });

  test("ends when the caller aborts", async () => {
    const server = await serving(() => undefined);
    const stop = new AbortController();
    const pending = sent(server.url, { signal: stop.signal });
    await server.until(1);
    stop.abort();
    expect((await pending).error).toMatchObject({ code: "aborted", retryable: false });
    expect(server.received).toHaveLength(1);
  });
});

describe("several endpoints", () => {
  test("are tried in order, and the one that works is kept", async () => {
    const server = await serving(IDENTIFIED);
    const endpoints = new Endpoints([await nobody(), server.url]);
    expect(await sent(endpoints)).toMatchObject({
      response: IDENTIFIED.body,
      cost: { attempts: 2, endpoint: server.url },
    });
    expect(await sent(endpoints)).toMatchObject({ cost: { attempts: 1, endpoint: server.url } });
  });

  test("share one idempotency key, so that nothing is identified twice", async () => {
    const first = await serving(UNAVAILABLE);
    const second = await serving(IDENTIFIED);
    await sent([first.url, second.url]);
    expect([...keys(first), ...keys(second)]).toEqual(["k".repeat(32), "k".repeat(32)]);
  });

  test("are left for another one that is the service", async () => {
    const page = await serving({ status: 404, body: "<html>" });
    const server = await serving(IDENTIFIED);
    expect(await sent([page.url, server.url])).toMatchObject({ response: IDENTIFIED.body });
  });

  test("may be more than three", async () => {
    const server = await serving(IDENTIFIED);
    const others = await Promise.all([nobody(), nobody(), nobody()]);
    expect(await sent([...others, server.url])).toMatchObject({ response: IDENTIFIED.body, cost: { attempts: 4 } });
  });

  test("do not change what the service refuses", async () => {
    const first = await serving(refusal(401, "unauthorized"));
    const second = await serving(IDENTIFIED);
    expect((await sent([first.url, second.url])).error).toMatchObject({ code: "unauthorized" });
    expect(second.received).toHaveLength(0);
  });
});

describe("messages", () => {
  test("name the key, without all of it, and the origin that was sent", async () => {
    const server = await serving(refusal(401, "unauthorized"));
    const { error } = await sent(server.url);
    expect(error?.message).toContain("said by the service: unauthorized");
    expect(error?.message).toContain("svc_pk_us_production_...ghij");
    expect(error?.message).toContain("https://shop.example");
    expect(error?.message).not.toContain(KEY);
  });

  test("name what may stop a connection", async () => {
    const url = await nobody();
    const { error, cost } = await sent(url);
    expect(error).toMatchObject({ code: "network", retryable: true, status: 0 });
    expect(error?.message).toContain(`No connection to ${url}`);
    expect(error?.message).toContain("extension");
    expect(cost.attempts).toBe(3);
  });

  test("tell an offline browser", async () => {
    world.browser.onLine = false;
    const { error, cost } = await sent(await nobody(), { deadline: new Deadline(2000) });
    expect(error).toMatchObject({ code: "offline", retryable: true });
    expect(cost.attempts).toBe(1);
  });

  test.each([
    { status: 200, body: "<html>" },
    { status: 200, body: { hello: 1 } },
    { status: 404, body: "Not Found" },
    { status: 403, body: [1] },
  ])("say that something else than the service responded: %j", async (step) => {
    const server = await serving(step);
    const { error } = await sent(server.url);
    expect(error).toMatchObject({ code: "bad_response", status: step.status, retryable: false });
    expect(error?.message).toContain("is `endpoint` right");
  });

  test("a proxy in front of a service that is down is asked again", async () => {
    const server = await serving({ status: 502, body: "<html>Bad Gateway" }, IDENTIFIED);
    expect(await sent(server.url)).toMatchObject({ response: IDENTIFIED.body, cost: { attempts: 2 } });
  });
});

describe("a policy of the page", () => {
  const violated = (blockedURI: string, disposition: "enforce" | "report"): Event =>
    Object.assign(new Event("securitypolicyviolation"), { blockedURI, disposition, effectiveDirective: "connect-src" });

  test("that stops the request is named, and nothing tried again", async () => {
    const url = await nobody();
    listenToPolicy();
    world.page.dispatchEvent(violated(url, "enforce"));
    const { error, cost } = await sent(url);
    expect(error).toMatchObject({ code: "blocked_by_policy", retryable: false });
    expect(cost.attempts).toBe(1);
  });

  test("that only reports is not to blame", async () => {
    const url = await nobody();
    listenToPolicy();
    world.page.dispatchEvent(violated(url, "report"));
    const { error, cost } = await sent(url);
    expect(error).toMatchObject({ code: "network", retryable: true });
    expect(cost.attempts).toBe(3);
  });
});
