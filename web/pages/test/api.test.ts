import { afterEach, expect, it, vi } from "vitest";
import { Api, ApiError, patiently } from "../console/api.js";

const api = new Api(() => undefined);
const answer = (body: string, init?: ResponseInit) => vi.stubGlobal("fetch", async () => new Response(body, init));
afterEach(() => vi.unstubAllGlobals());

it("says what to do about a response that was cut off", async () => {
  answer('{"rows":');
  await expect(api.get("events")).rejects.toThrow("The response was cut off on its way. Try again.");
});

it("names the seconds to wait, since no header is shown", async () => {
  const error = { code: "rate_limited", message: "Too many. Wait for the seconds in Retry-After." };
  answer(JSON.stringify({ error }), { status: 429, headers: { "retry-after": "7" } });
  await expect(api.get("events")).rejects.toThrow("Too many. Wait 7 s.");
});

it("waits where the service says so, and not for ever", async () => {
  const waits: number[] = [];
  const wait = async (seconds: number) => void waits.push(seconds);
  const full = () => Promise.reject(new ApiError("too many", 429, "rate_limited", [], 2));
  const asks = [full, full, () => Promise.resolve("done")];
  expect(await patiently(() => asks.shift()!(), wait)).toBe("done");
  expect(waits).toEqual([2, 2]);
  await expect(patiently(full, wait)).rejects.toThrow("too many");
  await expect(patiently(() => Promise.reject(new ApiError("no", 422)), wait)).rejects.toThrow("no");
  expect(waits.length).toBe(6);
});
