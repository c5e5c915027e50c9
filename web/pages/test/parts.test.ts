// @vitest-environment happy-dom
import { h, render } from "preact";
import { act } from "preact/test-utils";
import { describe, expect, it, vi } from "vitest";
import { Activity, summary, Velocity } from "../parts/activity.js";
import { acquaintance, Certainty, Proof } from "../parts/identity.js";
import { Score } from "../parts/score.js";
import { type Explained, NO_TEXTS, type VisitRow, type Windows } from "../parts/wire.js";

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
    expect(acquaintance(event, [visit(9), visit(5), visit(1, true)])).toMatch(/^Known since .*10:01.*; 3 visits are listed\.$/);
  });

  it("is a bound where older visits are not shown", () => {
    expect(acquaintance(event, [visit(9), visit(5)])).toMatch(/^Known since .*10:05.* or earlier; 2 visits are listed\.$/);
  });

  it("is not known before a token that took the place of another has come back", () => {
    expect(acquaintance({ ...event, visitor_confidence: 89 }, [visit(9)])).toMatch(/^Seen before\./);
  });

  it("is not at all at the first visit", () => {
    expect(acquaintance({ ...event, visitor_is_new: true }, [visit(9, true)])).toMatch(/^New/);
  });
});

describe("the score", () => {
  it("shows names in the evidence as code", () => {
    const place = document.createElement("div");
    const texts = { ...NO_TEXTS, evidence: { no_chrome_object: "The page has no `chrome` object." } };
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
    const proofs = { time: "signed days from the arrival", valid: "the key is new", none: "the report is not signed" };
    const texts = { ...NO_TEXTS, proof: proofs };
    render(h(Proof, { event: { ...event, proven, document: { ...event.document!, linkage } }, texts }), place);
    return place.textContent ?? "";
  };

  it("says that a visit is proven, or why it is not", () => {
    expect(shown(true, "valid")).toMatch(/^Proven: /);
    expect(shown(false, "valid")).toBe("Not proven: the key is new.");
    expect(shown(false, "time")).toBe("Not proven: signed days from the arrival.");
    expect(shown(false, "of a later version")).toBe("Not proven: of a later version.");
    expect(shown(false)).toBe("Not proven: the report is not signed.");
  });
});

describe("the certainty", () => {
  const shown = (visitor_confidence: number, outcome: string, proven = false): string => {
    const place = document.createElement("div");
    const texts = { ...NO_TEXTS, certainty: { likeness: "By likeness.", token: "By a token.", proven: "By a proven token." } };
    const linkage = { ...event.document!.linkage, outcome };
    render(h(Certainty, { event: { ...event, visitor_confidence, proven, document: { ...event.document!, linkage } }, texts }), place);
    return place.textContent ?? "";
  };

  it("says below 90 what keeps the visitor from being certain", () => {
    expect(shown(89, "exact")).toBe("89 % sure that this is one deviceBy likeness.");
    expect(shown(89, "token")).toBe("89 % sure that this is one deviceBy a token.");
    expect(shown(89, "token", true)).toBe("89 % sure that this is one deviceBy a proven token.");
    expect(shown(90, "token")).toBe("90 % sure that this is one device");
  });
});

describe("accounts and velocity", () => {
  const counts = (...[hour, day, month]: [number, number, number]): Windows => ({ "1h": hour, "24h": day, "30d": month });
  const few = counts(1, 2, 3);
  const velocity = {
    visitor: { events: counts(3, 9, 64), accounts: counts(2, 2, 5), addresses: few, countries: few },
    address: { events: few, visitors: few, accounts: few },
  };
  const account = { events: few, visitors: counts(1, 1, 1), addresses: few, countries: few };
  const named: Explained = { ...event, account_id: "user-1", velocity: { ...velocity, account } };

  it("are counted in three windows, up to 64", () => {
    const place = document.createElement("div");
    render(h(Velocity, { event: { ...event, velocity } }), place);
    const rows = [...place.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent));
    expect(rows.slice(0, 3)).toEqual([["This browser"], ["Visits", "3", "9", "64 or more"], ["Accounts", "2", "2", "5"]]);
    expect(rows.flat()).not.toContain("Account user-1");
    render(h(Velocity, { event: named }), place);
    expect(place.textContent).toContain("Account user-1");
    expect(place.textContent).toContain("Browsers");
    render(h(Velocity, { event: named, names: ["Visitor", "Address", "Devices"] }), place);
    expect([...place.querySelectorAll("tbody th")].map((cell) => cell.textContent).filter((text) => text === "Devices")).toHaveLength(2);
    expect(place.textContent).not.toContain("Browsers");
    render(h(Velocity, { event }), place);
    expect(place.textContent).toBe("");
  });

  it("are summed up in a sentence", () => {
    expect(summary(named)).toBe("Identified. This browser acted for 2 accounts within an hour. user-1 was used by 1 browser within 30 days.");
    expect(summary({ ...named, decision: { action: "review", rule_id: "rul_1", rule: "Fifth account" } })).toContain("Your rule “Fifth account” decided: review.");
    expect(summary({ ...event, velocity: { ...velocity, visitor: { ...velocity.visitor, accounts: counts(0, 0, 0) } } })).toBe(
      "Identified. This browser acted for no account within an hour.",
    );
  });

  it("are sent by a form, which says what came of it and what is wrong", async () => {
    const place = document.createElement("div");
    const onAct = vi.fn().mockResolvedValueOnce(named).mockRejectedValueOnce(new Error("`action` is a name"));
    const submit = async (): Promise<void> => {
      place.querySelector("form")?.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
      await act(async () => undefined);
    };
    await act(async () => render(h(Activity, { event, onAct }), place));
    place.querySelector<HTMLInputElement>("input[name=account]")!.value = "user-1";
    await submit();
    expect(onAct).toHaveBeenLastCalledWith({ accountId: "user-1", action: undefined });
    expect(place.querySelector("[role=status]")?.textContent).toContain("2 accounts");
    place.querySelector<HTMLInputElement>("input[name=action]")!.value = "Log in";
    await submit();
    expect(onAct).toHaveBeenLastCalledWith({ accountId: "user-1", action: "Log in" });
    expect(place.querySelector("[role=alert]")?.textContent).toBe("action is a name");
    expect(place.querySelector("[role=status]")?.textContent).toBe("");
  });
});
