import { describe, expect, it } from "vitest";
import { valuesFor } from "../console/addtolist.js";
import type { Api } from "../console/api.js";
import { marks } from "../console/chart.js";
import vectorsOfFiles from "../../../tests/domain/csv_tables.json" with { type: "json" };
import { inParts, pasted, tableOf } from "../console/entries/csv.js";
import { usable } from "../console/firstrun.js";
import { zone } from "../console/format.js";
import { keyOf, layout, type Node, shortened, spread } from "../console/graph.js";
import { shade } from "../console/map.js";
import { growth } from "../console/overview.js";
import { former, precisionOf } from "../console/judging/performance.js";
import { nameOf, takers } from "../console/judging/people.js";
import { actOf, after, byRule, isWanted } from "../console/judging/queue.js";
import { range, used } from "../console/judging/scores.js";
import { listAll } from "../console/ring.js";
import { completions } from "../console/rules/complete.js";
import { decidesOtherwise } from "../console/rules/screen.js";
import { conditionErrors, differences, offsetOf } from "../console/rules/diff.js";
import { viewOf } from "../console/saved.js";
import { hits } from "../console/search.js";
import { COLUMNS, LINES, TILES } from "../console/tiles.js";
import type { EventRow, Key, Language, Review, Rule, StoredList } from "../console/wire.js";

const rule = (id: string, more: Partial<Rule> = {}): Rule => ({ id, name: id, condition: "score > 1", action: "block", mode: "active", note: "", ...more });

describe("rulesets", () => {
  it("differ by rules that are added, removed, moved and changed", () => {
    const before = [rule("a"), rule("b"), rule("c")];
    expect(differences(before, before)).toEqual([]);
    const after = [rule("c"), rule("a", { mode: "shadow" }), rule("new")];
    expect(differences(before, after)).toEqual([
      { kind: "moved", name: "c", fields: [] },
      { kind: "changed", name: "a", fields: [{ field: "mode", before: "active", after: "shadow" }] },
      { kind: "added", name: "new", fields: [] },
      { kind: "removed", name: "b", fields: [] },
    ]);
    expect(differences(before, before.slice(1)), "what follows a removed one has not moved").toEqual([{ kind: "removed", name: "a", fields: [] }]);
  });

  it("have their errors where the service says that they are", () => {
    const message = "rules[0].condition: line 2, column 3: undeclared reference to 'x; y'; rules[3].condition: there is no list 'a'";
    expect(conditionErrors(message)).toEqual(new Map([
      [0, { line: 2, column: 3, text: "undeclared reference to 'x; y'" }],
      [3, { line: 1, column: 1, text: "there is no list 'a'" }],
    ]));
    expect(conditionErrors("Another error.").size).toBe(0);
    expect([offsetOf("ab\ncd", 1, 1), offsetOf("ab\ncd", 2, 2), offsetOf("ab", 9, 9)]).toEqual([0, 4, 2]);
  });
});

describe("completion of conditions", () => {
  const language: Language = {
    variables: [{ name: "visitor.is_new", type: "bool" }, { name: "visitor.id", type: "string" }, { name: "velocity.visitor.accounts", type: "map<string, int>" }],
    functions: ['in_list("blocked_visitors")'],
    lists: [{ name: "blocked_visitors", kind: "visitor" }, { name: "vip", kind: "account" }],
  };
  const labels = (before: string) => completions(before, language, ["tor", "tor_exit", "headless"]).found.map(({ label }) => label);

  it("offers variables and functions by how they begin", () => {
    expect(labels("score > 1 && visitor.i")).toEqual(["visitor.is_new", "visitor.id"]);
    expect(labels("in")).toEqual(['in_list("blocked_visitors")']);
    expect(labels("visitor.id"), "what is whole needs no completion").toEqual([]);
    expect(labels("score > ")).toEqual([]);
    expect(completions("!visitor.is", language, []).replaces).toBe("visitor.is".length);
  });

  it("offers lists, windows, variables and signals within quotes", () => {
    expect(labels('in_list("v')).toEqual(["vip"]);
    expect(labels('velocity.visitor.accounts["')).toEqual(["1h", "24h", "30d"]);
    expect(labels('present("velocity')).toEqual(["velocity.visitor.accounts"]);
    expect(labels('"to')).toEqual(["tor", "tor_exit"]);
    expect(labels('level == "visitor.i')).toEqual([]);
  });
});

const vectors = vectorsOfFiles as { name: string; kind: string; text: string; error?: string; separator?: string; has_header?: boolean; entries?: [string, string, string][] }[];

describe("entries of lists", () => {
  it.each(vectors)("are read from files, or refused by their line: $name", ({ kind, text, error, separator, has_header, entries }) => {
    if (error !== undefined) {
      expect(() => tableOf(text, kind)).toThrow(`L${error.slice(1)}`);
      return;
    }
    const expected = entries!.map(([value, note, expires]) => ({ value, note, expires_at: expires ? new Date(expires).toISOString() : null }));
    expect(tableOf(text, kind)).toEqual({ separator, hasHeader: has_header, entries: expected });
  });

  it("have times as the service takes them", () => {
    expect(tableOf("a,,2026-02-01T01:00:00+01:00", "account").entries[0]!.expires_at).toBe("2026-02-01T00:00:00.000Z");
    for (const time of ["soon", "1/2/2031", "2031-01-05"]) expect(() => tableOf(`a,,${time}`, "account")).toThrow(`Line 1: '${time}' is not a time`);
  });

  it("are pasted as they come", () => {
    expect(pasted("203.0.113.7, 198.51.100.0/24\n203.0.113.7;", "address")).toEqual(["203.0.113.7", "198.51.100.0/24"]);
    expect(pasted("user 1\n user,2 \n", "account"), "ids of accounts have blanks and commas").toEqual(["user 1", "user,2"]);
    for (const header of ["value;note\nuser-1;x", "User ID\nuser-1", "Value, Note\nuser-1"]) expect(() => pasted(header, "account")).toThrow("looks like a header");
    expect(pasted("ID\nGB", "country")).toEqual(["ID", "GB"]);
    expect(inParts([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]]);
  });

  it("are taken from events by the kind of the list, each once", () => {
    const event = (account_id: string | undefined, identifiable = true) => ({ visitor_id: "v", account_id, identifiable, ip_address: "1.2.3.4" }) as EventRow;
    const rows = [event("a"), event("a"), event(undefined, false)];
    expect([valuesFor("account", rows), valuesFor("visitor", rows), valuesFor("address", rows), valuesFor("tag", rows)]).toEqual([["a"], ["v"], ["1.2.3.4"], []]);
  });
});

it("puts what is chosen on a list with two requests, whatever is there", async () => {
  const asked: unknown[] = [];
  const api = {
    call: async (...of: unknown[]) => (asked.push(of), { entries: [{ list_id: "lst_a", list: "vip", entry: { value: "b" } }] }),
    manage: async (...of: unknown[]) => void asked.push(of),
  } as unknown as Api;
  const chosen = { visitors: ["v"], accounts: ["a", "b", "c"] };
  const { added, there, back } = await listAll(api, { id: "lst_a", name: "vip", kind: "account" } as StoredList, chosen, "why");
  expect([added, there]).toEqual([2, 1]);
  const entries = ["a", "c"].map((value) => ({ value, note: "why", expires_at: null }));
  expect(asked).toEqual([["POST", "standing", { body: { ...chosen, list_id: "lst_a" } }], ["POST", "lists/lst_a/entries", { entries }]]);
  await back();
  expect(asked[2]).toEqual(["DELETE", "lists/lst_a/entries", { values: ["a", "c"] }]);
});

it("tells a change of what decides from one of shadows, which an analyst saves", () => {
  const before = [rule("a"), rule("s", { mode: "shadow" }), rule("b")];
  const [a, s, b] = before as [Rule, Rule, Rule];
  for (const quiet of [[s, a, b], [a, b], [a, { ...s, condition: "score > 9" }, b, rule("n", { mode: "off" })]]) expect(decidesOtherwise(before, quiet)).toBe(false);
  for (const loud of [[b, s, a], [a, s], [a, { ...s, mode: "active" as const }, b], [{ ...a, note: "x" }, s, b], [a, s, b, rule("n")]]) expect(decidesOtherwise(before, loud)).toBe(true);
});

describe("saved filters", () => {
  it("are what of an address filters, and nothing else of it", () => {
    expect(viewOf({ environment: "staging", level: "high", window: "7d", evil: "x" })).toEqual({ window: "7d", level: "high" });
    expect(viewOf({ rule: "rul_a", shadow: "true" })).toEqual({ rule: "rul_a", shadow: "true" });
  });

  it("keep the filters of visitors and accounts, and their order", () => {
    expect(viewOf({ q: "anna", min_accounts: "3", network: "10.0.0.0/8", sort: "events" })).toEqual({ sort: "events", min_accounts: "3", network: "10.0.0.0/8", q: "anna" });
  });
});

describe("charts, maps and graphs", () => {
  it("labels accounts by what tells them apart", () => {
    expect(["user-1", "customer+039@mail.example", "bulk.customer+039@mail.example", "0123456789abcdef0", "\u{1f642}".repeat(17)].map(shortened)).toEqual(["user-1", "customer+039@…", "bulk.cus…er+039", "01234567…bcdef0", `${"\u{1f642}".repeat(8)}…${"\u{1f642}".repeat(6)}`]);
  });
  it("have whole marks in even steps", () => {
    expect(marks(0)).toEqual([0, 1]);
    expect(marks(3)).toEqual([0, 1, 2, 3]);
    expect(marks(36)).toEqual([0, 10, 20, 30, 40]);
    for (let most = 1; most < 3000; most += 7) {
      expect(marks(most).length).toBeLessThanOrEqual(6);
      expect(marks(most).at(-1)).toBeGreaterThanOrEqual(most);
    }
  });

  it("have one square for each country, within the map", () => {
    expect(TILES.size).toBeGreaterThan(200);
    expect(new Set([...TILES.values()].map(String)).size).toBe(TILES.size);
    for (const [code, [x, y]] of TILES) expect([/^[A-Z]{2}$/.test(code), x < COLUMNS, y < LINES]).toEqual([true, true, true]);
    expect([shade(0, 9), shade(9, 9)]).toEqual([0, 1]);
  });

  /** A visitor with some accounts, each of which has as many other visitors. */
  function graph(accounts: number, visitors: number) {
    const nodes: Node[] = [{ kind: "visitor", id: "m", steps: 0 }];
    const edges = [];
    for (let at = 0; at < accounts; at += 1) {
      nodes.push({ kind: "account", id: `a${at}`, steps: 1 });
      edges.push({ visitor_id: "m", account_id: `a${at}` });
      for (let other = 0; other < visitors; other += 1) {
        nodes.push({ kind: "visitor", id: `v${at} ${other}`, steps: 2 });
        edges.push({ visitor_id: `v${at} ${other}`, account_id: `a${at}` });
      }
    }
    return { nodes, ...layout(nodes, edges) };
  }

  it.each([[1, 0], [1, 2], [3, 0], [2, 3], [20, 1], [1, 48], [48, 0]])("place every node apart and within the picture: %i and %i of each", (accounts, visitors) => {
    const { nodes, places, box } = graph(accounts, visitors);
    const all = nodes.map((node) => places.get(keyOf(node))!);
    all.forEach((one, at) => all.slice(0, at).forEach((other) => expect(Math.hypot(one.x - other.x, one.y - other.y)).toBeGreaterThan(18)));
    for (const { x, y } of all) expect([x > box.x, y > box.y, x < box.x + box.width, y < box.y + box.height]).toEqual([true, true, true, true]);
  });

  it("take no more height than their nodes need", () => {
    const heights = [graph(1, 0), graph(1, 2), graph(3, 0), graph(4, 3), graph(20, 1)].map(({ box }) => box.height);
    expect(heights[1]).toBeLessThan(200);
    expect(heights[2]).toBeLessThan(200);
    expect(heights).toEqual([...heights].sort((one, other) => one - other));
  });

  it("spread nodes no further than they must be", () => {
    expect(spread([])).toEqual([]);
    expect(spread([1])).toEqual([1]);
    expect(spread([0, 0])).toEqual([-0.25, 0.25]);
    expect(spread([-2, 0, 0, 2])).toEqual([-2, -0.25, 0.25, 2]);
    const even = spread(new Array<number>(30).fill(0));
    expect(even.at(-1)! - even[0]!).toBeCloseTo((29 * 2 * Math.PI) / 30);
    const around = spread([-3.1, 0, 3.1]);
    expect(around.map((angle, at) => angle - around[0]! - (at * 2 * Math.PI) / 3).every((rest) => Math.abs(rest) < 1e-9)).toBe(true);
  });
});

it("says how numbers grew", () => {
  expect([growth(12, 10), growth(5, 10), growth(10, 10), growth(3, 0), growth(0, 0), growth(3, undefined)]).toEqual(["+20 %", "−50 %", "as before", "none before", "as before", ""]);
});

it("leads to what a search found", () => {
  expect(hits("x", { visitors: [], accounts: [], tag: false })).toEqual([]);
  expect(hits("x", { visitors: ["v"], accounts: ["x"], tag: true })).toEqual([["visitors", "v"], ["accounts", "x"], ["visitors", "", { tag: "x" }]]);
  expect(hits("1.2.3.4", { visitors: [], accounts: [], tag: false, network: "1.2.3.4" })).toEqual([["visitors", "", { ip_address: "1.2.3.4" }]]);
  expect(hits("1.2.3.4/8", { visitors: [], accounts: [], tag: false, network: "1.0.0.0/8" })).toEqual([["visitors", "", { network: "1.0.0.0/8" }]]);
});

it("shows a snippet with a key that works", () => {
  const key = (more: Partial<Key>): Key => ({ id: "key", name: "k", kind: "public", environment: "production", prefix: "", last4: "", status: "active", last_used_at: null, expires_at: null, created_at: "", ...more });
  const keys = [key({}), key({ kind: "secret" }), key({ status: "revoked" }), key({ environment: "staging" }), key({ expires_at: "2026-01-01T00:00:00Z" })];
  expect(usable(keys, "production", Date.parse("2026-01-02T00:00:00Z"))).toEqual([keys[0]]);
});

it("names the time zone", () => {
  expect(zone(new Date())).toMatch(/^(UTC|[\w/+-]+ \(UTC([+−]\d+(:\d\d)?)?\))$/);
});

describe("reviews", () => {
  const review = (id: string, rule?: string) => ({ id, ...(rule && { rule }) }) as Review;

  it("are counted by what opened them, most first", () => {
    expect(byRule([review("1", "b"), review("2", "a"), review("3"), review("4", "a")])).toEqual([["a", 2], ["b", 1], ["by hand", 1]]);
  });

  it("go on with the one that takes the place of the closed one, or the last", () => {
    expect([after(0, 3), after(2, 2), after(5, 0), after(1, 5)]).toEqual([0, 1, 0, 1]);
  });

  it("take the keys j k f l n b u and digits, but from nobody who writes, and with no modifier", () => {
    const key = (name: string, more = {}) => ({ key: name, ctrlKey: false, metaKey: false, altKey: false, ...more });
    expect(["j", "k", "f", "l", "n", "b", "u", "x"].map((name) => actOf(key(name), false))).toEqual(["next", "previous", "fraud", "legitimate", "note", "block", "undo", undefined]);
    expect(["0", "1", "8", "9"].map((name) => actOf(key(name), false))).toEqual([{ reason: "" }, { reason: "chargeback" }, { reason: "other" }, undefined]);
    expect([actOf(key("f"), true), actOf(key("l", { ctrlKey: true }), false)]).toEqual([undefined, undefined]);
  });
});

it("marks rules that are no longer in force, whatever their names", () => {
  const found = former([{ rule_id: "new" }, { rule_id: "old" }, {}], { rules: [{ ...rule("new"), id: "new", counts: { matched_24h: 0, matched_30d: 0, errors_24h: 0 } }] });
  expect([...found]).toEqual(["old"]);
});

it("shows a precision with its interval", () => {
  expect(precisionOf({ precision: 0.9, precision_low: 0.769, precision_high: 0.96 })).toBe("90 % (77 to 96)");
  expect(precisionOf({ precision: null, precision_low: null, precision_high: null })).toBe("");
});

describe("who takes a review", () => {
  const people = [{ id: "mem_b", name: "Bob", judges: true }, { id: "mem_a", name: "Ada", judges: true }, { id: "mem_v", name: "Vic", judges: false }];

  it("is oneself first, then others by name, and nobody who may not judge", () => {
    expect(takers(people, "mem_b")).toEqual([["mem_b", "you"], ["mem_a", "Ada"]]);
    expect(takers(people)).toEqual([["mem_a", "Ada"], ["mem_b", "Bob"]]);
  });

  it("is still shown who has one, also where that member may no more, or is removed", () => {
    expect(takers(people, "mem_a", "mem_v")).toEqual([["mem_a", "you"], ["mem_b", "Bob"], ["mem_v", "Vic"]]);
    expect(takers(people, "mem_a", "mem_x").at(-1)).toEqual(["mem_x", "mem_x"]);
    expect(nameOf("mem_x", [], "mem_x")).toBe("you");
  });

  it("filters the queue", () => {
    const shown = (whose?: string) => [null, "mem_a", "mem_b"].filter((assignee) => isWanted({ assignee }, whose));
    expect([shown(), shown("none"), shown("mem_a")]).toEqual([[null, "mem_a", "mem_b"], [null], ["mem_a"]]);
  });
});

describe("scores by label", () => {
  const line = (from: number, to: number | null, fraud = 0, legitimate = 0) => ({ from, to, fraud, legitimate });

  it("are named by their lowest and highest", () => {
    expect([line(0, 1), line(1, 10), line(500, null)].map(range)).toEqual(["0", "1 to 9", "500 and more"]);
  });

  it("end at the highest score that an event has", () => {
    const lines = [line(0, 1, 0, 3), line(1, 10), line(10, 20, 1), line(20, 30), line(30, null)];
    expect(used(lines)).toEqual(lines.slice(0, 3));
    expect(used(lines.slice(3))).toEqual([]);
  });
});
