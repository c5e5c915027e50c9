import { afterEach, expect, it, vi } from "vitest";
import { Api } from "../console/api.js";

const api = new Api(() => undefined);
const answer = (body: string, init?: ResponseInit) => vi.stubGlobal("fetch", async () => new Response(body, init));
afterEach(() => vi.unstubAllGlobals());

it("says what to do about a response that was cut off", async () => {
  answer('{"rows":');
  await expect(api.get("events")).rejects.toThrow("The response was cut off on its way. Try again.");
});

it("asks for nothing at a path of which a browser would make another one", async () => {
  const sent = vi.fn();
  vi.stubGlobal("fetch", sent);
  for (const id of ["..", ".", "../risk-weights", "key_1/..", "../../../../session"]) await expect(api.manage("DELETE", `sdk-keys/${id}`)).rejects.toThrow("nothing at this address");
  expect(sent).not.toHaveBeenCalled();
});

it("ends no session for what was refused to the one before it", async () => {
  const ended = vi.fn(), refusing = new Api(ended);
  answer("{}", { status: 401 });
  await refusing.get("events").catch(() => undefined);
  expect(ended).toHaveBeenCalledTimes(1);
  const late = refusing.get("events").catch(() => undefined);
  refusing.sessions += 1;
  await late;
  expect(ended).toHaveBeenCalledTimes(1);
});

it("tells of a refusal for the role, which may have been changed, and of no other", async () => {
  const refused = new Api(() => undefined), told = vi.spyOn(refused, "onRole");
  for (const code of ["insufficient_role", "cross_origin_request"]) {
    answer(JSON.stringify({ error: { code, message: "No." } }), { status: 403 });
    await refused.get("events").catch(() => undefined);
  }
  expect(told).toHaveBeenCalledTimes(1);
});

it("says of what was written that it is done, or may be, where the answer is lost", async () => {
  answer('{"key":', { status: 201 });
  await expect(api.manage("POST", "sdk-keys", {})).rejects.toThrow("The response was cut off on its way. It is done: load the page again.");
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
  await expect(api.manage("POST", "sdk-keys", {})).rejects.toThrow("it may be done: look before you try again");
  await expect(api.manage("DELETE", "accounts/checkout-1/notes/1")).rejects.toThrow("it may be done");
  await expect(api.manage("DELETE", "accounts/checkout-1")).rejects.toThrow("the erasure goes on");
  for (const read of [api.get("events"), api.manage("POST", "rules/preview", {}), api.call("POST", "standing", {}), api.call("POST", "session", {})]) await expect(read).rejects.toThrow("cannot be reached");
});

it("takes a line that is silent for a minute for dead", async () => {
  vi.useFakeTimers();
  vi.stubGlobal("fetch", () => new Promise(() => undefined));
  const said = Promise.all(["GET", "POST"].map((method) => api.call(method, "views").catch((error: Error) => error.message)));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await said).toEqual([expect.stringContaining("cannot be reached"), expect.stringContaining("it may be done")]);
  const ended = vi.fn();
  for (const erased of ["visitors/a", "accounts/b"]) api.manage("DELETE", erased).catch(ended);
  await vi.advanceTimersByTimeAsync(600_000);
  expect(ended, "an erasure of many events goes on").not.toHaveBeenCalled();
  vi.useRealTimers();
});

it("names the seconds to wait, since no header is shown", async () => {
  const error = { code: "rate_limited", message: "Too many. Wait for the seconds in Retry-After." };
  answer(JSON.stringify({ error }), { status: 429, headers: { "retry-after": "7" } });
  await expect(api.get("events")).rejects.toThrow("Too many. Wait 7 s.");
});

it("waits where the service says so, and not for ever", async () => {
  const waits: number[] = [];
  const patient = new Api(() => undefined, async (seconds) => void waits.push(seconds));
  const responses = (statuses: number[], retryAfter: string) =>
    vi.stubGlobal("fetch", async () => new Response('{"done":true}', { status: statuses.length > 1 ? statuses.shift()! : statuses[0]!, headers: { "retry-after": retryAfter } }));
  responses([429, 429, 200], "2");
  expect(await patient.get("events")).toEqual({ done: true });
  expect(waits).toEqual([2, 2]);
  responses([429], "1");
  await expect(patient.manage("POST", "lists", {})).rejects.toThrow("429");
  expect(waits.splice(2)).toEqual([1, 1, 1, 1]);
  responses([429], "60");
  await expect(patient.get("events")).rejects.toThrow("429");
  responses([422], "1");
  await expect(patient.get("events")).rejects.toThrow("422");
  responses([429], "1");
  await expect(patient.call("POST", "session", {})).rejects.toThrow("429");
  expect(waits).toEqual([2, 2]);
});
