// @vitest-environment happy-dom
import { h, render } from "preact";
import { describe, expect, it } from "vitest";
import { compared } from "../console/decision.js";
import { Recognition } from "../console/event.js";
import { type Console, Shared } from "../console/state.js";
import { whyUnknown } from "../console/visitor.js";
import type { EventDetail, EventRow } from "../console/wire.js";
import { NO_TEXTS } from "../parts/wire.js";

const texts = { ...NO_TEXTS, linkage: { split_from: "until now taken for this one" } };
const shared = { texts, environment: "development" } as unknown as Console;

function shown(split_from?: string): HTMLElement {
  const linkage = { outcome: "ambiguous", confidence: 0, token_conflict: false, ...(split_from === undefined ? {} : { split_from }) };
  const found = { event: { visitor_id: "new0", visitor_is_new: true, document: { linkage } } } as unknown as EventDetail;
  const place = document.createElement("div");
  render(h(Shared.Provider, { value: shared }, h(Recognition, { found })), place);
  return place;
}

it("says of a visitor that is not kept what its event says", () => {
  const said = { linkage: { replayed: "new and not kept, since this report was sent before" }, certainty: { unidentifiable: "The report says too little." } };
  const why = (identifiable: boolean) => whyUnknown({ events: [{ identifiable } as EventRow] }, said);
  expect([why(true), why(false)]).toEqual(["New and not kept, since this report was sent before.", "The report says too little."]);
});

describe("how the visitor of an event was recognized", () => {
  it("leads to the visitor that it was split from", () => {
    const links = [...shown("former0").querySelectorAll("a")].map((link) => link.getAttribute("href"));
    expect(links).toEqual(["#/visitors/new0?environment=development", "#/visitors/former0?environment=development"]);
    expect(shown("former0").textContent).toContain("former0: until now taken for this one.");
  });

  it("says nothing of a split where there was none", () => {
    expect(shown().querySelectorAll("a").length).toBe(1);
    expect(shown().textContent).not.toContain("until now");
  });
});

it("says beside a term of a rule what it compared, unless its text says so", () => {
  const term = { depth: 0, kind: "term", result: true } as const;
  const accounts = { text: 'velocity.visitor.accounts["30d"]', value: "7" };
  expect(compared({ ...term, text: "", operator: ">=", left: accounts, right: { text: "5", value: "5" } })).toBe("7");
  const action = { text: "action", value: '"sign_up"' };
  expect(compared({ ...term, text: "", operator: "==", left: action, right: { text: '"sign_up"', value: '"sign_up"' } })).toBe("");
  expect(compared({ ...term, text: "", result: false, operator: "==", left: action, right: { text: '"log_in"', value: '"log_in"' } })).toBe('"sign_up"');
  expect(compared({ ...term, text: 'in_list("x")' })).toBe("");
});
