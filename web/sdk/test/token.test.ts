// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import { clientToken, forgetToken, isNoted, noteKey, randomHex, storedToken, timeOrderedId } from "../src/token.js";

const HEX = /^[0-9a-f]{32}$/;
const OTHER = "0123456789abcdef0123456789abcdef";
const inCookie = (): string | undefined => /(?:^|; )_svc=([^;]*)/.exec(document.cookie)?.[1];

beforeEach(() => {
  localStorage.clear();
  document.cookie = "_svc=; Path=/; Max-Age=-1";
  vi.restoreAllMocks();
});

function refuseCookies(): void {
  vi.spyOn(document, "cookie", "get").mockReturnValue("");
  vi.spyOn(document, "cookie", "set").mockReturnValue(undefined);
}

function refuseLocalStorage(): void {
  const refuse = (): never => {
    throw new DOMException("denied", "SecurityError");
  };
  vi.spyOn(window, "localStorage", "get").mockImplementation(refuse);
  vi.stubGlobal("localStorage", new Proxy({}, { get: refuse }));
}

test("a time-ordered id is a UUIDv7 of this moment, and no two are alike", () => {
  vi.spyOn(Date, "now").mockReturnValue(0x0190_1234_5678);
  const made = Array.from({ length: 100 }, timeOrderedId);
  for (const id of made) expect(id).toMatch(/^01901234-5678-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(new Set(made).size).toBe(100);
});

test("the first visit makes a token of 128 bits and keeps it in both places", () => {
  const token = clientToken("_svc");
  expect(token).toEqual({ client_token: expect.stringMatching(HEX) as string, client_token_is_new: true });
  expect([inCookie(), localStorage.getItem("_svc")]).toEqual([token.client_token, token.client_token]);
});

test("later visits have the same one, which is not new", () => {
  const { client_token } = clientToken("_svc");
  expect(clientToken("_svc")).toEqual({ client_token });
});

test("either place restores the other", () => {
  localStorage.setItem("_svc", OTHER);
  expect(clientToken("_svc")).toEqual({ client_token: OTHER });
  expect(inCookie()).toBe(OTHER);
  localStorage.clear();
  expect(clientToken("_svc")).toEqual({ client_token: OTHER });
  expect(localStorage.getItem("_svc")).toBe(OTHER);
});

test("a cookie that somebody else has set counts less than what the page's own origin has stored", () => {
  const { client_token } = clientToken("_svc");
  document.cookie = `_svc=${OTHER}; Path=/`;
  expect(clientToken("_svc")).toEqual({ client_token });
  expect(inCookie()).toBe(client_token);
});

test("a cookie alone is given no key, unless there is nothing else to store in", () => {
  document.cookie = `_svc=${OTHER}; Path=/`;
  expect(storedToken("_svc")).toEqual({ known: OTHER, sure: null });
  localStorage.setItem("_svc", OTHER);
  expect(storedToken("_svc")).toEqual({ known: OTHER, sure: OTHER });
  refuseLocalStorage();
  expect(storedToken("_svc")).toEqual({ known: OTHER, sure: OTHER });
  vi.unstubAllGlobals();
});

test("whether the token has a key is noted beside it, and forgotten with it", () => {
  expect(isNoted("_svc")).toBe(false);
  noteKey("_svc");
  expect(isNoted("_svc")).toBe(true);
  forgetToken("_svc");
  expect(isNoted("_svc")).toBe(false);
});

test("a cookie that is there is not written again: a server's own may last longer than a script's", () => {
  document.cookie = `_svc=${OTHER}; Path=/`;
  const write = vi.spyOn(document, "cookie", "set");
  expect(clientToken("_svc")).toEqual({ client_token: OTHER });
  expect(write).not.toHaveBeenCalled();
});

test.each(["", "x", `${OTHER}0`, OTHER.toUpperCase(), "<script>"])(
  "what is no token (%j) is replaced by a new one",
  (stored) => {
    localStorage.setItem("_svc", stored);
    document.cookie = `_svc=${stored}; Path=/`;
    const token = clientToken("_svc");
    expect(token.client_token_is_new).toBe(true);
    expect(localStorage.getItem("_svc")).toBe(token.client_token);
  },
);

test("one place is enough", () => {
  refuseCookies();
  const token = clientToken("_svc");
  expect(token.client_token_is_new).toBe(true);
  expect(clientToken("_svc")).toEqual({ client_token: token.client_token });
});

test("where nothing can be stored there is no token", () => {
  refuseCookies();
  refuseLocalStorage();
  expect(clientToken("_svc")).toEqual({});
  vi.unstubAllGlobals();
});

test("a place that says yes and keeps nothing is none", () => {
  refuseCookies();
  vi.stubGlobal("localStorage", { getItem: () => null, setItem: () => undefined, removeItem: () => undefined });
  expect(clientToken("_svc")).toEqual({});
  vi.unstubAllGlobals();
});

test("another name is another token", () => {
  expect(clientToken("one").client_token).not.toBe(clientToken("two").client_token);
});

test("forgetting removes it everywhere", () => {
  clientToken("_svc");
  expect(forgetToken("_svc")).toBe(true);
  expect([inCookie() ?? "", localStorage.getItem("_svc")]).toEqual(["", null]);
  expect(clientToken("_svc").client_token_is_new).toBe(true);
});

test("forgetting says so where the browser keeps it all the same", () => {
  clientToken("_svc");
  vi.stubGlobal("localStorage", { getItem: () => OTHER, removeItem: () => undefined });
  expect(forgetToken("_svc")).toBe(false);
  vi.unstubAllGlobals();
});

test("tokens don't need Array.from, which old libraries replace by one that maps nothing", () => {
  const from = vi.spyOn(Array, "from").mockImplementation((list: unknown) => [...(list as Iterable<unknown>)]);
  expect(randomHex()).toMatch(HEX);
  expect(from).not.toHaveBeenCalled();
});

test("tokens don't need crypto.randomUUID, which plain http doesn't have", () => {
  vi.stubGlobal("crypto", { getRandomValues: (bytes: Uint8Array) => bytes.fill(171) });
  expect(randomHex()).toBe("ab".repeat(16));
  vi.unstubAllGlobals();
});
