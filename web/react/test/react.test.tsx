// @vitest-environment happy-dom
import { act, type ReactNode, StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { renderToString } from "react-dom/server";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Identification, SvcError } from "@svc/web";
import { SvcProvider, useVisitor, type UseVisitorOptions, type VisitorState } from "../src/index.js";

const sdk = vi.hoisted(() => ({ load: vi.fn(), identify: vi.fn(), forget: vi.fn() }));
vi.mock("@svc/web", async (original) => ({ ...(await original<object>()), load: sdk.load }));

const FOUND: Identification = { request_id: "r1", visitor_id: "v1" };
let root: Root | undefined;
let state: VisitorState | undefined;

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);
  sdk.identify.mockReset().mockResolvedValue(FOUND);
  sdk.forget.mockReset().mockResolvedValue(undefined);
  sdk.load.mockReset().mockReturnValue({ identify: sdk.identify, forget: sdk.forget });
});

afterEach(async () => {
  await act(async () => root?.unmount());
  root = state = undefined;
});

function Visitor(options: UseVisitorOptions): ReactNode {
  state = useVisitor(options);
  return <p>{state.data?.visitor_id ?? (state.isLoading ? "..." : "nobody")}</p>;
}

async function show(shown: ReactNode): Promise<string> {
  root ??= createRoot(document.createElement("div"));
  await act(async () => root?.render(shown));
  return state?.data?.visitor_id ?? (state?.isLoading ? "..." : "nobody");
}

test("the hook identifies when the component appears, with its tag", async () => {
  expect(
    await show(
      <SvcProvider apiKey="svc_pk_x" endpoint="/">
        <Visitor tag="signup" />
      </SvcProvider>,
    ),
  ).toBe("v1");
  expect(state).toMatchObject({ data: FOUND, error: null, isLoading: false });
  expect(sdk.load).toHaveBeenCalledExactlyOnceWith({ apiKey: "svc_pk_x", endpoint: "/" });
  expect(sdk.identify).toHaveBeenCalledExactlyOnceWith({ tag: "signup" });
});

test("the account and the action are sent, and another account is identified again", async () => {
  const of = (accountId: string): ReactNode => (
    <SvcProvider apiKey="svc_pk_x">
      <Visitor accountId={accountId} action="log_in" tag="t" />
    </SvcProvider>
  );
  await show(of("a"));
  await show(of("a"));
  expect(sdk.identify).toHaveBeenCalledExactlyOnceWith({ accountId: "a", action: "log_in", tag: "t" });
  await show(of("b"));
  expect(sdk.identify).toHaveBeenLastCalledWith({ accountId: "b", action: "log_in", tag: "t" });
  await act(async () => void (await state?.identify({ accountId: "c" })));
  expect(sdk.identify).toHaveBeenLastCalledWith({ accountId: "c", action: "log_in", tag: "t" });
  expect(sdk.identify).toHaveBeenCalledTimes(3);
});

test("an unknown option is refused by name, and nothing is sent", async () => {
  const { load } = await vi.importActual<{ load: typeof sdk.load }>("@svc/web");
  sdk.load.mockImplementation(load);
  const fetch = vi.fn();
  vi.stubGlobal("fetch", fetch);
  const wrong = { acountId: "a" } as UseVisitorOptions;
  await show(
    <SvcProvider apiKey="svc_pk_x" endpoint="/">
      <Visitor {...wrong} />
    </SvcProvider>,
  );
  expect(state?.error).toMatchObject({ code: "invalid_options", message: expect.stringContaining("`acountId`") as string });
  expect(fetch).not.toHaveBeenCalled();
});

test("it waits to be called with immediate={false}, while the provider already collects", async () => {
  await show(
    <SvcProvider apiKey="svc_pk_x">
      <Visitor immediate={false} />
    </SvcProvider>,
  );
  expect([sdk.load.mock.calls.length, sdk.identify.mock.calls.length, state?.isLoading]).toEqual([1, 0, false]);
  let result: Identification | null | undefined;
  await act(async () => (result = await state?.identify({ tag: "pay" })));
  expect(result).toEqual(FOUND);
  expect(sdk.identify).toHaveBeenCalledExactlyOnceWith({ tag: "pay" });
});

test("nothing is collected before the first call with eager={false}", async () => {
  await show(
    <SvcProvider apiKey="svc_pk_x" eager={false}>
      <Visitor immediate={false} />
    </SvcProvider>,
  );
  expect(sdk.load).not.toHaveBeenCalled();
  await act(async () => void (await state?.identify()));
  expect(sdk.load).toHaveBeenCalledTimes(1);
});

test("an error is shown, and not thrown", async () => {
  const problem = new SvcError("network", "No connection");
  sdk.identify.mockRejectedValue(problem);
  await show(
    <SvcProvider apiKey="svc_pk_x">
      <Visitor />
    </SvcProvider>,
  );
  expect(state).toMatchObject({ data: null, error: problem, isLoading: false });
  sdk.load.mockImplementation(() => {
    throw new SvcError("invalid_options", "wrong");
  });
  await act(async () => root?.unmount());
  root = undefined;
  await show(
    <SvcProvider apiKey="svc_pk_x">
      <Visitor />
    </SvcProvider>,
  );
  expect(state?.error).toMatchObject({ code: "invalid_options" });
});

test("forget empties what is shown, and is that of the client", async () => {
  await show(
    <SvcProvider apiKey="svc_pk_x">
      <Visitor />
    </SvcProvider>,
  );
  expect(state?.data).toEqual(FOUND);
  await act(async () => state?.forget());
  expect(sdk.forget).toHaveBeenCalledTimes(1);
  expect(state).toMatchObject({ data: null, error: null, isLoading: false });
  const problem = new SvcError("storage", "kept");
  sdk.forget.mockRejectedValue(problem);
  await act(async () => expect(state?.forget()).rejects.toBe(problem));
});

test("what is still on its way when the visitor is forgotten is not shown", async () => {
  let arrive: (found: Identification) => void = () => undefined;
  sdk.identify.mockReturnValue(new Promise((resolve) => (arrive = resolve)));
  await show(
    <SvcProvider apiKey="svc_pk_x">
      <Visitor />
    </SvcProvider>,
  );
  expect(state?.isLoading).toBe(true);
  await act(async () => state?.forget());
  await act(async () => arrive(FOUND));
  expect(state).toMatchObject({ data: null, isLoading: false });
});

test("forget before anything was loaded removes the token of an earlier visit, and loads nothing", async () => {
  localStorage.setItem("_shop", "0".repeat(32));
  sessionStorage.setItem("_shop_responses", "[]");
  await show(
    <SvcProvider apiKey="svc_pk_x" eager={false} storage="_shop" cache={{ storage: "session", durationMs: 1000 }}>
      <Visitor immediate={false} />
    </SvcProvider>,
  );
  await act(async () => state?.forget());
  expect([localStorage.length, sessionStorage.length, sdk.load.mock.calls.length]).toEqual([0, 0, 0]);
  await act(async () => void (await state?.identify()));
  expect(sdk.load).toHaveBeenCalledExactlyOnceWith({ apiKey: "svc_pk_x", storage: false, cache: false });
});

test("strict mode, which mounts twice, loads once", async () => {
  expect(
    await show(
      <StrictMode>
        <SvcProvider apiKey="svc_pk_x">
          <Visitor />
        </SvcProvider>
      </StrictMode>,
    ),
  ).toBe("v1");
  expect(sdk.load).toHaveBeenCalledTimes(1);
});

test("rendering on a server loads nothing", () => {
  expect(
    renderToString(
      <SvcProvider apiKey="svc_pk_x">
        <Visitor />
      </SvcProvider>,
    ),
  ).toContain("...");
  expect(sdk.load).not.toHaveBeenCalled();
});

test("without a provider the hook says what is missing", () => {
  expect(() => renderToString(<Visitor />)).toThrow("<SvcProvider>");
});
