import { afterEach, expect, test, vi } from "vitest";
import { now, own, toJson } from "../src/json.js";

afterEach(() => {
  delete (Array.prototype as { toJSON?: unknown }).toJSON;
  delete (String.prototype as { toJSON?: unknown }).toJSON;
});

test.each([
  { a: 1, b: [1, "x", null, undefined, NaN, Infinity, () => 1], c: undefined, d: () => 1, e: { f: [] }, g: {} },
  [],
  {},
  null,
  true,
  1.5e300,
  'quotes " and \u2028 and \ud800 and 😀',
  { "na\"me": { toString: 1 } },
  [new Float32Array([1.5, 2]), [[[]]]],
])("is what JSON.stringify writes: %j", (value) => {
  expect(toJson(value)).toBe(JSON.stringify(value));
});

test("has no word for what JSON has none", () => {
  expect(toJson(undefined)).toBeUndefined();
});

test("lists stay lists on pages whose lists have toJSON", () => {
  const value = { languages: { value: [["en-US"], ["en"]] } };
  const before = JSON.stringify(value);
  Object.assign(Array.prototype, { toJSON: () => "[list]" });
  Object.assign(String.prototype, { toJSON: () => "text" });
  expect(JSON.stringify(value)).not.toBe(before);
  expect(toJson(value)).toBe(before);
});

test("an object's own members are those that count", () => {
  const polluted = Object.create({ endpoint: "https://evil.example" }, {}) as { endpoint?: string; apiKey?: string };
  polluted.apiKey = "k";
  expect(own(polluted).endpoint).toBeUndefined();
  expect(own(polluted).apiKey).toBe("k");
  expect("toString" in own(polluted)).toBe(false);
});

test("the time is a number where a library made it a date", () => {
  vi.spyOn(Date, "now").mockReturnValue(new Date(1_772_359_200_000) as unknown as number);
  expect(now()).toBe(1_772_359_200_000);
});
