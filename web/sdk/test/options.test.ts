import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { IdentifyOptions, LoadOptions } from "../src/api.js";
import { load, SvcError, VERSION } from "../src/index.js";
import { checked, checkedCall } from "../src/options.js";
import { openPage } from "./page.js";

const KEY = "svc_pk_us_development_abc";
const SCRIPT = "https://id.shop.example/sdk/v1/svc.esm.js";

/** Checks that an option of `identify` is accepted, or refused by name with these words. */
function isSaidOf(name: string, value: unknown, message: string | undefined): void {
  const attempt = (): unknown => checkedCall({ [name]: value } as IdentifyOptions);
  if (message === undefined) return expect(attempt).not.toThrow();
  expect(attempt).toThrow(SvcError);
  expect(attempt).toThrow(message);
  expect(attempt).toThrow(`\`${name}\``);
}

describe("on a server", () => {
  test("importing is safe, and load() says what to do", () => {
    expect(VERSION).toMatch(/^\d+\.\d+\.\d+$/);
    const failed = vi.fn(() => load({ apiKey: KEY, endpoint: "https://id.shop.example" }));
    expect(failed).toThrow(SvcError);
    expect(failed.mock.results[0]?.value).toMatchObject({
      code: "not_a_browser",
      message: expect.stringContaining("in an effect") as string,
    });
  });
});

describe("in a page of https://shop.example", () => {
  beforeEach(() => void openPage());
  afterEach(() => vi.unstubAllGlobals());

  test("the rest has defaults", () => {
    expect(checked({ apiKey: KEY }, SCRIPT)).toEqual({
      apiKey: KEY,
      endpoints: ["https://id.shop.example"],
      timeoutMs: 10_000,
      collectMs: 1000,
      storage: "_svc",
      workerUrl: undefined,
      deferred: true,
      cache: false,
      verdict: false,
      test: undefined,
    });
  });

  test("a test verdict is checked, and has the names of the service", () => {
    const test = { signals: ["tor"], accountVelocity: 64 };
    expect(checked({ apiKey: KEY, test }, SCRIPT).test).toEqual({ signals: ["tor"], account_velocity: 64 });
    expect(checked({ apiKey: KEY, test: {} }, SCRIPT).test).toEqual({ signals: [], account_velocity: 0 });
  });

  test("one that is undefined is as one that is missing, also in a project with exactOptionalPropertyTypes", () => {
    const nothing = undefined;
    const given: LoadOptions = {
      apiKey: KEY, endpoint: nothing, timeoutMs: nothing, collectMs: nothing, storage: nothing,
      workerUrl: nothing, deferred: nothing, verdict: nothing, cache: nothing,
      test: nothing,
    };
    expect(checked(given, SCRIPT)).toEqual(checked({ apiKey: KEY }, SCRIPT));
    const call: IdentifyOptions = {
      accountId: nothing, action: nothing, tag: nothing, signal: nothing, timeoutMs: nothing,
    };
    expect(checkedCall(call)).toEqual(checkedCall({}));
  });

  test("of a call, null is as one that is missing: somebody who is logged out has no account", () => {
    const call: IdentifyOptions = { accountId: null, action: null, tag: null, signal: null, timeoutMs: null };
    expect(checkedCall(call)).toEqual(checkedCall({}));
    expect(Object.values(checkedCall(call).subject)).toEqual([undefined, undefined, undefined]);
  });

  test("a key may have blanks around it, as where it was copied or read from a file", () => {
    expect(checked({ apiKey: `\u00a0${KEY}\n` }, SCRIPT).apiKey).toBe(KEY);
  });

  test("endpoints may have a path, and be several", () => {
    const { endpoints } = checked(
      { apiKey: KEY, endpoint: ["https://shop.example/id/", "/id", "https://b.example"] },
      undefined,
    );
    expect(endpoints).toEqual(["https://shop.example/id", "https://shop.example/id", "https://b.example"]);
    expect(checked({ apiKey: KEY, endpoint: "https://b.example/api/v1/" }, undefined).endpoints).toEqual(["https://b.example"]);
  });

  test.each([
    ["https://shop.example/sdk/v1/svc.esm.js", "https://shop.example/sdk/v1/svc.worker.js"],
    ["https://shop.example/sdk/0.2.0/svc.js?x=1", "https://shop.example/sdk/0.2.0/svc.worker.js"],
    ["https://shop.example/assets/bundle-4f2a.js", undefined],
    [SCRIPT, undefined],
    [undefined, undefined],
  ])("the worker of script %s is %s", (script, expected) => {
    expect(checked({ apiKey: KEY, endpoint: "https://id.shop.example" }, script).workerUrl).toBe(expected);
  });

  test.each<[string, unknown]>([
    ["load() takes an object", null],
    ["load() takes an object", "svc_pk_x"],
    ["`apikey` is not an option: load() takes an object of apiKey, endpoint,", { apikey: KEY }],
    ["`apiUrl` is not an option", { apiKey: KEY, endpoint: "/", apiUrl: undefined }],
    ["must be a public key", {}],
    ["must be a public key", { apiKey: "abc" }],
    ["revoke it", { apiKey: "svc_sk_us_production_abc" }],
    ["revoke it", { apiKey: "svc_mk_us_abc" }],
    ["revoke it", { apiKey: "svc_px_us_production_abc" }],
    ["`endpoint` must be", { apiKey: KEY }],
    ["`endpoint` must be", { apiKey: KEY, endpoint: "ftp://id.shop.example" }],
    ["`endpoint` must be", { apiKey: KEY, endpoint: "https://" }],
    ["`endpoint` must be", { apiKey: KEY, endpoint: new URL("https://id.shop.example") }],
    ["`endpoint` must be", { apiKey: KEY, endpoint: null }],
    ["`endpoint` must be", { apiKey: KEY, endpoint: 5 }],
    ["`endpoint` must be", { apiKey: KEY, endpoint: {} }],
    ["without @, ? and #", { apiKey: KEY, endpoint: "https://id.shop.example/?env=test" }],
    ["without @, ? and #", { apiKey: KEY, endpoint: ["/id", "https://id.shop.example/#v1"] }],
    ["without @, ? and #", { apiKey: KEY, endpoint: "https://me:secret@id.shop.example" }],
    ["must be a public key", { apiKey: `${KEY}\u200b` }],
    ["must be a public key", { apiKey: "svc_pk_\u2026" }],
    ["empty list", { apiKey: KEY, endpoint: [] }],
    ["give the service a certificate", { apiKey: KEY, endpoint: "http://id.shop.example" }],
    ["`timeoutMs`", { apiKey: KEY, endpoint: "/", timeoutMs: 0 }],
    ["`timeoutMs`", { apiKey: KEY, endpoint: "/", timeoutMs: "1000" }],
    ["`collectMs`", { apiKey: KEY, endpoint: "/", collectMs: Number.NaN }],
    ["`storage`", { apiKey: KEY, endpoint: "/", storage: "a b" }],
    ["`storage`", { apiKey: KEY, endpoint: "/", storage: "" }],
    ["`storage`", { apiKey: KEY, endpoint: "/", storage: true }],
    ["`cache.storage`", { apiKey: KEY, endpoint: "/", cache: { storage: "disk", durationMs: 1 } }],
    ["12 hours", { apiKey: KEY, endpoint: "/", cache: { storage: "local", durationMs: 43_200_001 } }],
    ["`test` takes an object of signals, accountVelocity", { apiKey: KEY, endpoint: "/", test: null }],
    ["`test` takes an object", { apiKey: KEY, endpoint: "/", test: "tor" }],
    ["`account_velocity` is not an option: `test` takes", { apiKey: KEY, endpoint: "/", test: { account_velocity: 5 } }],
    ["`test` is { signals", { apiKey: KEY, endpoint: "/", test: { signals: "tor" } }],
    ["`test` is { signals", { apiKey: KEY, endpoint: "/", test: { signals: ["tor", 7] } }],
    ["`test` is { signals", { apiKey: KEY, endpoint: "/", test: { accountVelocity: 65 } }],
    ["`test` is { signals", { apiKey: KEY, endpoint: "/", test: { accountVelocity: -1 } }],
    ["`test` is { signals", { apiKey: KEY, endpoint: "/", test: { accountVelocity: 1.5 } }],
    ["`test` is { signals", { apiKey: KEY, endpoint: "/", test: { accountVelocity: "5" } }],
    ["in memory only", { apiKey: KEY, endpoint: "/", storage: false, cache: { storage: "local", durationMs: 1 } }],
  ])("wrong options are said: %s", (message, options) => {
    const attempt = vi.fn(() => checked(options as LoadOptions, undefined));
    expect(attempt).toThrow(message);
    expect(attempt.mock.results[0]?.value).toMatchObject({
      name: "SvcError",
      code: "invalid_options",
      retryable: false,
    });
  });

  test("what other scripts put on the prototype of all objects is none", () => {
    const pollution = {
      endpoint: "https://evil.example", workerUrl: "data:,", timeoutMs: 1, collectMs: 1, storage: false, deferred: false,
      verdict: true, cache: { storage: "local", durationMs: 1 }, accountId: 7, action: 7, tag: 7, unknown: 7,
      test: 7, signals: 7, accountVelocity: 7,
    };
    for (const [name, value] of Object.entries(pollution)) {
      Object.defineProperty(Object.prototype, name, { value, configurable: true });
    }
    try {
      expect(checked({ apiKey: KEY }, SCRIPT)).toEqual({
        apiKey: KEY, endpoints: ["https://id.shop.example"], timeoutMs: 10_000, collectMs: 1000, storage: "_svc",
        workerUrl: undefined, deferred: true, cache: false, verdict: false, test: undefined,
      });
      expect(checked({ apiKey: KEY, test: {} }, SCRIPT).test).toEqual({ signals: [], account_velocity: 0 });
      expect(checkedCall({}).subject).toEqual({ account_id: undefined, action: undefined, tag: undefined });
    } finally {
      for (const name of Object.keys(pollution)) delete (Object.prototype as Record<string, unknown>)[name];
    }
  });

  test.each([
    ["x".repeat(1024), undefined],
    ["😀".repeat(1024), undefined],
    ["😀".repeat(1025), "1024 characters"],
    ["x".repeat(1025), "1024 characters"],
    ["order 😀".slice(0, 7), "half of a character"],
    [`${"😀".slice(1)} order`, "half of a character"],
    ["line\nline\n", undefined],
    [7, "1024 characters"],
  ])("a tag has characters as the service counts them: %j", (tag, message) => isSaidOf("tag", tag, message));

  test.each([
    ["Ünser Kunde #1 ", undefined],
    ["😀".repeat(256), undefined],
    ["😀".repeat(257), "1 to 256 characters"],
    ["", "1 to 256 characters"],
    ["a\n", "without control characters"],
    ["\x85", "without control characters"],
    ["\x7f", "without control characters"],
    ["order 😀".slice(0, 7), "half of a character"],
    [7, "1 to 256 characters"],
  ])("an account has the form that the service accepts: %j", (id, message) => isSaidOf("accountId", id, message));

  test.each([
    ["log_in", undefined],
    [`a${"-.".repeat(31)}z`, undefined],
    ["a".repeat(65), "such as log_in"],
    ["", "such as log_in"],
    ["Log_in", "such as log_in"],
    ["log in", "such as log_in"],
    ["log_in\n", "such as log_in"],
    ["1st", "such as log_in"],
  ])("an action has the form that the service accepts: %j", (action, message) => isSaidOf("action", action, message));

  test.each<[string, unknown]>([
    ["`linkedId` is not an option: identify() takes an object of accountId, action, tag, signal, timeoutMs.", { linkedId: "a" }],
    ["`account_id` is not an option", { account_id: "a", accountId: "a" }],
    ["`toString` is not an option", { toString: 1 }],
    ["`__proto__` is not an option", JSON.parse('{ "__proto__": 1 }')],
    ["identify() takes an object", "signup"],
  ])("an option that there is none of is refused by name: %s", (message, options) => {
    expect(() => checkedCall(options as IdentifyOptions)).toThrow(message);
  });

  test("http is fine on this machine", () => {
    expect(checked({ apiKey: KEY, endpoint: "http://localhost:8080" }, undefined).endpoints).toEqual([
      "http://localhost:8080",
    ]);
  });
});
