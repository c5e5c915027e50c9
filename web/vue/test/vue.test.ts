// @vitest-environment happy-dom
import { type App, createApp, createSSRApp, defineComponent, h, nextTick, ref } from "vue";
import { renderToString } from "vue/server-renderer";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Identification, SvcError } from "@svc/web";
import { createSvc, type SvcOptions, useVisitor, type UseVisitorOptions, type VisitorState } from "../src/index.js";

const sdk = vi.hoisted(() => ({ load: vi.fn(), identify: vi.fn(), forget: vi.fn() }));
vi.mock("@svc/web", async (original) => ({ ...(await original<object>()), load: sdk.load }));

const FOUND: Identification = { request_id: "r1", visitor_id: "v1" };
const OPTIONS: SvcOptions = { apiKey: "svc_pk_x", endpoint: "/" };
let app: App | undefined;
let state!: VisitorState;

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  sdk.identify.mockReset().mockResolvedValue(FOUND);
  sdk.forget.mockReset().mockResolvedValue(undefined);
  sdk.load.mockReset().mockReturnValue({ identify: sdk.identify, forget: sdk.forget });
});

afterEach(() => {
  app?.unmount();
  app = undefined;
});

const Visitor = (options?: Parameters<typeof useVisitor>[0]) =>
  defineComponent(() => {
    state = useVisitor(options);
    return () => h("p", state.data.value?.visitor_id ?? (state.isLoading.value ? "..." : "nobody"));
  });

async function show(options?: Parameters<typeof useVisitor>[0], given = OPTIONS): Promise<string> {
  const place = document.createElement("div");
  app = createApp(Visitor(options));
  app.use(createSvc(given)).mount(place);
  await settled();
  return place.textContent;
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
  await nextTick();
}

test("the composable identifies when the component appears, with its options", async () => {
  expect(await show({ tag: "signup", action: "sign_up" })).toBe("v1");
  expect([state.data.value, state.error.value, state.isLoading.value]).toEqual([FOUND, null, false]);
  expect(sdk.load).toHaveBeenCalledExactlyOnceWith(OPTIONS);
  expect(sdk.identify).toHaveBeenCalledExactlyOnceWith({ tag: "signup", action: "sign_up" });
});

test("another account is identified again, the same one is not", async () => {
  const account = ref<UseVisitorOptions>({ accountId: "a" });
  await show(() => ({ ...account.value, action: "log_in" }));
  account.value = { accountId: "a" };
  await settled();
  expect(sdk.identify).toHaveBeenCalledExactlyOnceWith({ accountId: "a", action: "log_in" });
  account.value = { accountId: "a", tag: null };
  await settled();
  expect(sdk.identify, "null is as undefined").toHaveBeenCalledTimes(1);
  account.value = { accountId: "b" };
  await settled();
  expect(sdk.identify).toHaveBeenLastCalledWith({ accountId: "b", action: "log_in" });
  expect(sdk.identify).toHaveBeenCalledTimes(2);
});

test("it waits to be called with immediate: false, while the plugin already collects", async () => {
  expect(await show({ immediate: false })).toBe("nobody");
  expect([sdk.load.mock.calls.length, sdk.identify.mock.calls.length]).toEqual([1, 0]);
  expect(await state.identify({ tag: "pay" })).toEqual(FOUND);
  expect(sdk.identify).toHaveBeenCalledExactlyOnceWith({ tag: "pay" });
});

test("nothing is collected before the first call with eager: false", async () => {
  await show({ immediate: false }, { ...OPTIONS, eager: false });
  expect(sdk.load).not.toHaveBeenCalled();
  await state.identify();
  expect(sdk.load).toHaveBeenCalledExactlyOnceWith(OPTIONS);
});

test("an error is shown, and not thrown, also that of wrong options", async () => {
  const problem = new SvcError("network", "No connection");
  sdk.identify.mockRejectedValue(problem);
  await show();
  expect([state.data.value, state.error.value, state.isLoading.value]).toEqual([null, problem, false]);
  app?.unmount();
  const { load } = await vi.importActual<{ load: typeof sdk.load }>("@svc/web");
  sdk.load.mockImplementation(load);
  await show({ acountId: "a" } as UseVisitorOptions);
  expect(state.error.value).toMatchObject({ code: "invalid_options", message: expect.stringContaining("`acountId`") as string });
});

test("forget empties what is shown, and what is still on its way is not shown", async () => {
  let arrive: (found: Identification) => void = () => undefined;
  sdk.identify.mockReturnValue(new Promise((resolve) => (arrive = resolve)));
  await show();
  expect(state.isLoading.value).toBe(true);
  await state.forget();
  expect(sdk.forget).toHaveBeenCalledTimes(1);
  arrive(FOUND);
  await settled();
  expect([state.data.value, state.isLoading.value]).toEqual([null, false]);
});

test("forget before anything was loaded removes the token of an earlier visit, and loads nothing", async () => {
  localStorage.setItem("_shop", "0".repeat(32));
  await show({ immediate: false }, { ...OPTIONS, eager: false, storage: "_shop" });
  await state.forget();
  expect([localStorage.length, sdk.load.mock.calls.length]).toEqual([0, 0]);
  await state.identify();
  expect(sdk.load).toHaveBeenCalledExactlyOnceWith({ ...OPTIONS, storage: false, cache: false });
});

test("rendering on a server identifies nobody", async () => {
  const rendered = createSSRApp(Visitor()).use(createSvc({ ...OPTIONS, eager: false }));
  expect(await renderToString(rendered)).toBe("<p>...</p>");
  vi.stubGlobal("window", undefined);
  await renderToString(createSSRApp(Visitor()).use(createSvc(OPTIONS)));
  vi.unstubAllGlobals();
  expect(sdk.load).not.toHaveBeenCalled();
});

test("without the plugin the composable says what is missing", () => {
  const alone = createApp(Visitor());
  alone.config.warnHandler = () => undefined;
  expect(() => alone.mount(document.createElement("div"))).toThrow("createSvc");
});
