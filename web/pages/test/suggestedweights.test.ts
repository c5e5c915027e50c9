// @vitest-environment happy-dom
import { h, render } from "preact";
import { act } from "preact/test-utils";
import { describe, expect, it } from "vitest";
import { ApiError } from "../console/api.js";
import { type Console, Shared } from "../console/state.js";
import { missing, Suggested, suggested } from "../console/suggestedweights.js";
import { Weights } from "../console/weights.js";
import type { Suggestion } from "../console/wire.js";

const FEW: Suggestion = { platform: "web", fraud: 12, legitimate: 1, suspect_threshold: 30, needed: 50, is_complete: true, weights: [] };
const ENOUGH: Suggestion = {
  ...FEW,
  fraud: 130,
  legitimate: 1410,
  before: { precision: 0.7, recall: 0.6 },
  after: { precision: null, recall: 0.8 },
  weights: [
    { signal: "headless", before: 30, after: 42, events: 120, fraud: 90 },
    { signal: "incognito", before: 5, after: 5, events: 40, fraud: 4 },
  ],
};

/** The card, once somebody has asked; `answer` is thrown where it is an error. Whatever is asked for is noted. */
async function asked(answer: Suggestion | ApiError) {
  const place = document.createElement("div"), tried: unknown[] = [], requests: unknown[] = [];
  const api = { manage: async (...sent: unknown[]) => { requests.push(sent); if (answer instanceof ApiError) throw answer; return answer; } };
  const shared = { api, environment: "development", session: { role: "viewer" } } as unknown as Console;
  render(h(Shared.Provider, { value: shared }, h(Suggested, { platform: "web", onTry: (weights) => tried.push(weights) })), place);
  expect(requests, "nothing is fitted before somebody asks").toEqual([]);
  const press = (text: string) => act(async () => {
    [...place.querySelectorAll("button")].find((button) => button.textContent === text)!.click();
    await new Promise((done) => setTimeout(done));
  });
  await act(async () => undefined);
  await press("Suggest weights");
  return { place, tried, requests, press };
}

it("takes the key of an address for a key, whatever else it names", async () => {
  const paths: string[] = [];
  const api = { manage: async (_: string, path: string) => { paths.push(path); throw new ApiError("none"); } };
  const shared = { api, environment: "development", session: { role: "admin" }, place: { screen: "weights", id: "", query: { key_id: "a/../../risk-weights?x#" } } } as unknown as Console;
  await act(async () => render(h(Shared.Provider, { value: shared }, h(Weights, {})), document.createElement("div")));
  expect(paths).toContain("sdk-keys/a%2F..%2F..%2Frisk-weights%3Fx%23/risk-weights");
});

describe("weights that labels suggest", () => {
  it("says which labels are missing", () => {
    expect(missing(FEW)).toEqual(["38 more labeled fraud", "49 more labeled legitimate"]);
    expect(missing({ ...FEW, fraud: 50 })).toEqual(["49 more labeled legitimate"]);
    expect(missing(ENOUGH)).toEqual([]);
  });

  it("takes those that differ into the editor, and no other", async () => {
    expect(suggested(ENOUGH)).toEqual({ headless: 42 });
    const { place, tried, requests, press } = await asked(ENOUGH);
    expect(requests).toEqual([["GET", "risk-weights/web/suggestion", undefined, { environment: "test" }]]);
    const rows = [...place.querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent));
    expect(rows).toEqual([
      ["In force", "70 %", "60 %"],
      ["Suggested", "none reaches it", "80 %"],
      ["headless", "30", "42", "120", "90 (75 %)"],
      ["incognito", "5", "the same", "40", "4 (10 %)"],
    ]);
    expect(place.textContent).toContain("Fitted to 130 fraud events and 1,410 legitimate events of staging and development on web.");
    expect(place.textContent).not.toContain("Older labels were left out");
    expect((await asked({ ...ENOUGH, is_complete: false })).place.textContent).toContain("Older labels were left out");
    await press("Try these");
    expect(tried).toEqual([{ headless: 42 }]);
  });

  it("offers nothing to try where the weights in force are as good", async () => {
    const { place } = await asked({ ...ENOUGH, weights: ENOUGH.weights.slice(1) });
    expect([...place.querySelectorAll("button")].map((button) => button.disabled)).toEqual([false, true]);
    expect(place.textContent).toContain("as good as any");
  });

  it("says plainly that there are too few labels, and why the service refuses", async () => {
    const few = (await asked(FEW)).place;
    expect(few.textContent).toContain("Too few labels: 12 fraud events and 1 legitimate event of staging and development on web. A suggestion needs 50 of each: 38 more labeled fraud and 49 more labeled legitimate.");
    expect(few.querySelectorAll("button").length, "only the one that asks").toBe(1);
    const refused = (await asked(new ApiError("Another long read of the organization is running.", 429, "rate_limited"))).place;
    expect(refused.querySelector("[role=alert]")!.textContent).toBe("Another long read of the organization is running.");
  });
});
