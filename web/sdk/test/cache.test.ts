// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Cache, responseCache } from "../src/cache.js";

const DURATION_MS = 60_000;
const RESPONSE = { request_id: "r", visitor_id: "v", triggers: [{ signal: "tor", group: "network", weight: 50, confidence: "high" }] };
const NOW = 1_772_359_200_000;

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

afterEach(() => {
  delete (Array.prototype as { toJSON?: unknown }).toJSON;
  vi.restoreAllMocks();
});

const opened = (storage: "memory" | "session" | "local"): Cache =>
  responseCache({ storage, durationMs: DURATION_MS }, "_svc_responses", "svc_pk_x");

test.each(["memory", "session", "local"] as const)("in %s keeps responses also on pages of old libraries", (storage) => {
  vi.spyOn(Date, "now").mockImplementation(() => new Date(NOW) as unknown as number); // date.js
  Object.assign(Array.prototype, { toJSON: () => "[list]" }); // Prototype
  const cache = opened(storage);
  cache.put("a", RESPONSE);
  cache.put("b", { ...RESPONSE, request_id: "s" });
  expect(cache.get("a")).toEqual({ ...RESPONSE, cached: true });
  expect(cache.get("b")?.request_id).toBe("s");
  expect(cache.get("c")).toBeNull();
});

test.each(["memory", "session", "local"] as const)("in %s keeps nothing for longer where the clock goes back", (storage) => {
  const clock = vi.spyOn(Date, "now").mockReturnValue(NOW + 365 * 24 * 3600 * 1000);
  opened(storage).put("a", RESPONSE);
  const cache = opened(storage);
  cache.put("b", RESPONSE);
  clock.mockReturnValue(NOW);
  expect([cache.get("a"), cache.get("b")]).toEqual([null, null]);
  cache.put("c", RESPONSE);
  clock.mockReturnValue(NOW + DURATION_MS - 1);
  expect(cache.get("c")).toEqual({ ...RESPONSE, cached: true });
  clock.mockReturnValue(NOW + DURATION_MS);
  expect(cache.get("c")).toBeNull();
});
