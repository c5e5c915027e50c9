// @vitest-environment happy-dom
import { h, render } from "preact";
import { describe, expect, it } from "vitest";
import { acquaintance, Proof } from "../parts/identity.js";
import { Score } from "../parts/score.js";
import type { Explained, VisitRow } from "../parts/wire.js";

const visit = (minute: number, visitor_is_new = false): VisitRow => ({
  request_id: String(minute),
  occurred_at: new Date(2026, 0, 5, 10, minute).toISOString(),
  visitor_id: "v",
  visitor_is_new,
});
const event: Explained = {
  ...visit(9),
  suspect_score: 30,
  suspect_level: "medium",
  signals: [{ signal: "headless", group: "bot", weight: 30, confidence: "high" }],
  document: {
    signals: {},
    suspect_threshold: 30,
    network: { state: "enriched" },
    evidence: { headless: ["no_chrome_object"] },
    linkage: { outcome: "token", confidence: 100, token_conflict: false },
  },
};

describe("how long a visitor is known", () => {
  it("is since the first visit, where that is among those shown", () => {
    expect(acquaintance(event, [visit(9), visit(5), visit(1, true)])).toMatch(/^Known since .*10:01.*; this is visit 3\.$/);
  });

  it("is a bound where older visits are not shown", () => {
    expect(acquaintance(event, [visit(9), visit(5)])).toMatch(/^Known since .*10:05.* or earlier; this is visit 2 or later\.$/);
  });

  it("is not at all at the first visit", () => {
    expect(acquaintance({ ...event, visitor_is_new: true }, [visit(9, true)])).toMatch(/^New/);
  });
});

describe("the score", () => {
  it("shows names in the evidence as code", () => {
    const place = document.createElement("div");
    const texts = { signals: {}, evidence: { no_chrome_object: "The page has no `chrome` object." }, changes: {}, linkage: {}, proof: {}, reasons: {} };
    render(h(Score, { event, texts }), place);
    const sentence = place.querySelector(".evidence li");
    expect(sentence?.textContent).toBe("The page has no chrome object.");
    expect(sentence?.querySelector("code")?.textContent).toBe("chrome");
  });
});

describe("the proof", () => {
  const shown = (proven: boolean, proof?: string): string => {
    const place = document.createElement("div");
    const linkage = { ...event.document!.linkage, ...(proof && { proof }) };
    const texts = { signals: {}, evidence: {}, changes: {}, linkage: {}, proof: { time: "signed days from the arrival" }, reasons: {} };
    render(h(Proof, { event: { ...event, proven, document: { ...event.document!, linkage } }, texts }), place);
    return place.textContent ?? "";
  };

  it("says that a visit is proven, or why it is not", () => {
    expect(shown(true, "valid")).toMatch(/^Proven: /);
    expect(shown(false, "valid")).toMatch(/^Not proven: .* by no key that the token had before\.$/);
    expect(shown(false, "time")).toBe("Not proven: signed days from the arrival.");
    expect(shown(false, "of a later version")).toBe("Not proven: of a later version.");
    expect(shown(false)).toBe("Not proven: the report is not signed.");
  });
});
