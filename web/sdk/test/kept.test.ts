import { expect, test, vi } from "vitest";
import { Kept } from "../src/kept.js";

test("a question is asked once, also while its answer is on the way", async () => {
  const kept = new Kept();
  const ask = vi.fn(async () => ({ renderer: "SwiftShader" }));
  kept.begin("en-US 1");
  const both = [kept.once("gpu", ask), kept.once("gpu", ask)];
  expect(await Promise.all(both)).toEqual([{ renderer: "SwiftShader" }, { renderer: "SwiftShader" }]);
  kept.begin("en-US 1");
  await kept.once("gpu", ask);
  expect(ask).toHaveBeenCalledOnce();
});

test("a question that failed is asked again", async () => {
  const kept = new Kept();
  const ask = vi.fn().mockRejectedValueOnce(new Error("late")).mockResolvedValue(4);
  await expect(kept.once("cores", ask)).rejects.toThrow("late");
  expect(await kept.once("cores", ask)).toBe(4);
});

test("everything is asked again where the browser shows itself in another way", async () => {
  const kept = new Kept();
  const ask = vi.fn(() => 1);
  for (const about of ["en-US 1", "en-US 1.1", "de-DE 1.1", "de-DE 1.1"]) {
    kept.begin(about);
    await kept.once("fonts", ask);
  }
  expect(ask).toHaveBeenCalledTimes(3);
});
