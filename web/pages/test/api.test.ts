import { afterEach, expect, it, vi } from "vitest";
import { Api } from "../console/api.js";

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
