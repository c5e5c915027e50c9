// @vitest-environment happy-dom
import { flushSync, mount, unmount } from "svelte";
import { get } from "svelte/store";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Identification, SvcError } from "@svc/web";
import type { SvcOptions, UseVisitorOptions, Visitor } from "../src/index.js";
import App from "./App.svelte";

const sdk = vi.hoisted(() => ({ load: vi.fn(), identify: vi.fn(), forget: vi.fn() }));
vi.mock("@svc/web", async (original) => ({ ...(await original<object>()), load: sdk.load }));

const FOUND: Identification = { request_id: "r1", visitor_id: "v1" };
const OPTIONS: SvcOptions = { apiKey: "svc_pk_x", endpoint: "/" };
let app: Record<string, unknown> | undefined;
let visitor!: Visitor;

beforeEach(() => {
  localStorage.clear();
  sdk.identify.mockReset().mockResolvedValue(FOUND);
  sdk.forget.mockReset().mockResolvedValue(undefined);
  sdk.load.mockReset().mockReturnValue({ identify: sdk.identify, forget: sdk.forget });
});

afterEach(async () => {
  if (app) await unmount(app);
  app = undefined;
});

async function show(options?: UseVisitorOptions, given: SvcOptions | null = OPTIONS): Promise<string> {
  const target = document.createElement("div");
  const seen = (one: Visitor): void => void (visitor = one);
  app = mount(App as never, { target, props: { given, options, seen } as never });
  await settled();
  return target.textContent;
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
  flushSync();
}

test("the store identifies when the component appears, with its options", async () => {
  expect(await show({ tag: "signup", accountId: "a" })).toBe("v1");
  expect(get(visitor)).toEqual({ data: FOUND, error: null, isLoading: false });
  expect(sdk.load).toHaveBeenCalledExactlyOnceWith(OPTIONS);
  expect(sdk.identify).toHaveBeenCalledExactlyOnceWith({ tag: "signup", accountId: "a" });
});

test("it waits to be called with immediate: false, while the SDK already collects", async () => {
  expect(await show({ immediate: false, action: "pay" })).toBe("nobody");
  expect([sdk.load.mock.calls.length, sdk.identify.mock.calls.length]).toEqual([1, 0]);
  expect(await visitor.identify({ tag: "t" })).toEqual(FOUND);
  expect(sdk.identify).toHaveBeenCalledExactlyOnceWith({ action: "pay", tag: "t" });
});

test("nothing is collected before the first call with eager: false", async () => {
  await show({ immediate: false }, { ...OPTIONS, eager: false });
  expect(sdk.load).not.toHaveBeenCalled();
  await visitor.identify();
  expect(sdk.load).toHaveBeenCalledExactlyOnceWith(OPTIONS);
});

test("an error is shown, and not thrown, also that of wrong options", async () => {
  const problem = new SvcError("network", "No connection");
  sdk.identify.mockRejectedValue(problem);
  await show();
  expect(get(visitor)).toEqual({ data: null, error: problem, isLoading: false });
  const { load } = await vi.importActual<{ load: typeof sdk.load }>("@svc/web");
  sdk.load.mockImplementation(load);
  await unmount(app!);
  await show({ acountId: "a" } as UseVisitorOptions);
  expect(get(visitor).error).toMatchObject({ code: "invalid_options", message: expect.stringContaining("`acountId`") as string });
});

test("forget empties what is shown, and what is still on its way is not shown", async () => {
  let arrive: (found: Identification) => void = () => undefined;
  sdk.identify.mockReturnValue(new Promise((resolve) => (arrive = resolve)));
  await show();
  expect(get(visitor).isLoading).toBe(true);
  await visitor.forget();
  expect(sdk.forget).toHaveBeenCalledTimes(1);
  arrive(FOUND);
  await settled();
  expect(get(visitor)).toEqual({ data: null, error: null, isLoading: false });
});

test("forget before anything was loaded removes the token of an earlier visit, and loads nothing", async () => {
  localStorage.setItem("_shop", "0".repeat(32));
  await show({ immediate: false }, { ...OPTIONS, eager: false, storage: "_shop" });
  await visitor.forget();
  expect([localStorage.length, sdk.load.mock.calls.length]).toEqual([0, 0]);
});

test("without a context the store says what is missing", async () => {
  await expect(show({}, null)).rejects.toThrow("provideSvc");
});
