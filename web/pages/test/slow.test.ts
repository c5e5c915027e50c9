// @vitest-environment happy-dom
// Screens on a slow line: each answer comes when a test gives it.
import { type ComponentType, h, render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ApiError } from "../console/api.js";
import { Attempts } from "../console/attempts.js";
import { FirstRun } from "../console/firstrun.js";
import { Invitation, Link } from "../console/invitation.js";
import { Members } from "../console/judging/members.js";
import { Notes } from "../console/judging/notes.js";
import { Reviews } from "../console/judging/reviews.js";
import { lazy } from "../console/lazy.js";
import { AccountMenu } from "../console/menu.js";
import { Rules } from "../console/rules/screen.js";
import { SignIn } from "../console/signin.js";
import { type Console, kept, Shared } from "../console/state.js";
import { Standing } from "../console/standing.js";
import { Dialog } from "../console/ui.js";
import { Account } from "../console/useraccount.js";
import { Visitor } from "../console/visitor.js";
import { Visitors } from "../console/visitors.js";
import { Webhooks } from "../console/webhooks.js";
import { Weights } from "../console/weights.js";

interface Asked {
  /** Such as "POST members/mem_1/invitation". */
  what: string;
  body: unknown;
  answer: (value: unknown) => Promise<void>;
  fail: (error?: Error) => Promise<void>;
}

const BUSY = new ApiError("Come back later.", 503);
let place: HTMLElement;
beforeEach(() => {
  place = document.body.appendChild(document.createElement("div"));
});
afterEach(() => {
  act(() => render(null, place));
  place.remove();
  kept.clear();
});

const soon = () => act(() => new Promise<void>((done) => setTimeout(done)));

/** A screen and its requests that have no answer yet; those in `known` have one at once. */
function screen(known: Record<string, unknown> = {}) {
  const open: Asked[] = [], notify = vi.fn();
  const ask = (method: string, path: string, body?: unknown, query?: Record<string, unknown>) => {
    const what = `${method} ${path}${query?.environment ? ` of ${query.environment}` : ""}`;
    if (what in known) return Promise.resolve(known[what]);
    return new Promise((done, broken) => {
      const end = async (how: () => void) => {
        open.splice(open.indexOf(asked), 1);
        how();
        for (let round = 0; round < 3; round += 1) await soon();
      };
      const asked: Asked = { what, body, answer: (value) => end(() => done(value)), fail: (error = BUSY) => end(() => broken(error)) };
      open.push(asked);
    });
  };
  const api = {
    organization: "org_1",
    manage: ask,
    get: (path: string, query?: Record<string, unknown>) => ask("GET", path, undefined, query),
    call: (method: string, path: string, { body }: { body?: unknown } = {}) => ask(method, path, body),
  };
  const session = { role: "admin", organization: { id: "org_1", name: "Shop" }, member: { id: "mem_0", name: "Ada" } };
  const show = async (Shown: ComponentType<never>, props: object = {}, { environment = "development", query = {}, id = "" } = {}) => {
    const value = { api, session, notify, environment, place: { screen: "x", id, query }, texts: { signals: {} } } as unknown as Console;
    await act(() => render(h(Shared.Provider, { value, children: h(Shown as ComponentType<object>, props) }), place));
    for (let round = 0; round < 3; round += 1) await soon(); // what was loaded loads more
  };
  const asked = (what: string) => open.filter((one) => one.what === what);
  const only = (what: string) => {
    expect(asked(what).length, `${what} of ${open.map((one) => one.what).join(", ")}`).toBe(1);
    return asked(what)[0]!;
  };
  return { show, asked, only, notify, open };
}

const said = () => place.textContent ?? "";
const button = (name: string) => {
  const found = [...place.querySelectorAll("button")].find((one) => (one.getAttribute("aria-label") ?? one.textContent) === name);
  if (!found) throw new Error(`no ${name} in ${said()}`);
  return found;
};
/** As fingers do: the second one comes when the first was drawn. */
const twice = async (name: string) => {
  for (let time = 0; time < 2; time += 1) await act(() => button(name).click());
};
const press = (key: string) => act(() => void document.body.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true, bubbles: true })));

const RULE = { id: "rul_1", name: "Live one", condition: "score > 1", action: "block", mode: "active", note: "", counts: { matched_24h: 0, matched_30d: 0, errors_24h: 0 } };
const RULES_READ = { "GET rules/language": { variables: [], functions: [], lists: [] }, "GET rules/history of live": { revisions: [] }, "GET rules/history of test": { revisions: [] }, "GET people": { people: [] } };
const MEMBER = { id: "mem_1", name: "Bob", email: "bob@shop.example", role: "analyst", status: "active" };
const ENDPOINT = { id: "whe_1", url: "https://shop.example/hooks", environment: "live", events: [], status: "active", format: "json", description: "" };
const ATTEMPT = { id: "a", endpoint_id: "whe_1", event_id: "e", event: "webhook.test", status: "failed", occurred_at: "2026-01-05T10:00:00Z" };

it.each([
  ["an invitation", Members, {}, { "GET members": { members: [MEMBER] } }, "New link for Bob", "POST members/mem_1/invitation"],
  ["a test", Webhooks, {}, { "GET webhooks": { endpoints: [ENDPOINT] }, "GET webhook-deliveries": { deliveries: [] } }, "Test https://shop.example/hooks", "POST webhooks/whe_1/test"],
  ["a delivery", Attempts, { rows: [ATTEMPT], empty: "" }, {}, "Redeliver webhook.test of 2026-01-05T10:00:00Z", "POST webhooks/whe_1/redeliver"],
  ["a key", FirstRun, {}, { "GET sdk-keys": { keys: [] }, "GET public-keys": { keys: {} } }, "Issue a public key", "POST sdk-keys"],
])("makes %s once, however often it is asked for meanwhile", async (_name, Screen, props, known, name, what) => {
  const { show, only } = screen(known);
  await show(Screen as ComponentType<never>, props);
  button(name).focus();
  await twice(name);
  expect([document.activeElement, button(name).disabled, button(name).getAttribute("aria-disabled")]).toEqual([button(name), false, "true"]);
  await only(what).fail();
  expect(said()).toContain("Come back later.");
  expect([document.activeElement, button(name).getAttribute("aria-disabled")]).toEqual([button(name), "false"]);
  const held = new KeyboardEvent("keydown", { key: "Enter", repeat: true, cancelable: true, bubbles: true });
  button(name).dispatchEvent(held);
  expect(held.defaultPrevented).toBe(true);
  const tab = new KeyboardEvent("keydown", { key: "Tab", repeat: true, cancelable: true, bubbles: true });
  button(name).dispatchEvent(tab);
  expect(tab.defaultPrevented, "the focus moves on").toBe(false);
});

const SESSION = { role: "admin", organization: { id: "org_1", name: "Shop" }, member: { id: "mem_0", name: "Ada", email: "ada@shop.example" } };
const INVITED = { organization: "Shop", email: "ada@shop.example", name: "Ada", role: "admin", expires_at: "2026-01-05T10:00:00Z" };
it.each([
  ["signs in", SignIn, "onSignIn", { options: () => Promise.resolve({}) }, "Sign in"],
  ["signs in with a key", SignIn, "onSignIn", { options: () => Promise.resolve({}) }, "Sign in with the key"],
  ["accepts an invitation", Invitation, "onAccept", { read: () => Promise.resolve(INVITED) }, "Accept the invitation"],
  ["uses a link", Link, "onUse", { session: SESSION }, "Use the link"],
  ["signs out", AccountMenu, "onLeave", {}, "Sign out"],
])("%s once, and keeps the focus until it is done", async (_name, Screen, what, props, name) => {
  const { show } = screen();
  let fail!: (error: Error) => void;
  const done = vi.fn(() => new Promise((_, broken) => { fail = broken; }));
  await show(Screen as ComponentType<never>, { ...props, [what]: done });
  for (const field of place.querySelectorAll("input")) if (!field.readOnly) field.value = "a password, long";
  for (const field of place.querySelectorAll<HTMLInputElement>("input[type=email]")) field.value = "ada@shop.example";
  button(name).focus();
  await twice(name);
  expect(done).toHaveBeenCalledTimes(1);
  expect([document.activeElement, button(name).disabled]).toEqual([button(name), false]);
  fail(BUSY);
  await soon();
  expect([said().includes("Come back later."), document.activeElement]).toEqual([true, button(name)]);
  await act(() => button(name).click());
  expect([said().includes("Come back later."), done.mock.calls.length]).toEqual([false, 2]);
  fail(BUSY);
  await soon();
});

it("leads from a closed review to the environment that it is of", async () => {
  const review = { id: "rev_1", request_id: "r", visitor_id: "v", account_id: "a", environment: "staging", state: "closed", opened_at: "2026-01-05T10:00:00Z" };
  const { show } = screen({ "GET people": { people: [] }, "GET reviews": { reviews: [review] }, "GET reviews/count": { count: 1, is_exact: true } });
  await show(Reviews, {}, { query: { state: "closed" } });
  const links = [...place.querySelectorAll("tbody a")].map((one) => one.getAttribute("href"));
  expect(links).toEqual(["#/events/r?environment=staging", "#/visitors/v?environment=staging", "#/accounts/a?environment=staging"]);
});

it.each([[true, "2,345 open in development"], [false, "2,345+ open in development"]])("counts the open reviews behind those that it loads", async (is_exact, text) => {
  const reviews = Array.from({ length: 1000 }, (_, at) => ({ id: `rev_${at}`, request_id: "r", visitor_id: "v", environment: "development", state: "open", opened_at: "2026-01-05T10:00:00Z" }));
  const { show } = screen({ "GET people": { people: [] }, "GET reviews of development": { reviews, next_cursor: "c" }, "GET reviews/count of development": { count: 2345, is_exact } });
  await show(Reviews, {}, { query: { state: "list", rule: "another" } });
  expect(said()).toContain(text);
});

it("does not call a list empty of which only a part was looked at", async () => {
  const closed: Record<string, unknown> = { "GET people": { people: [] }, "GET reviews": { reviews: [], next_cursor: "c" }, "GET reviews/count": { count: 0, is_exact: false } };
  const { show } = screen(closed);
  await show(Reviews, {}, { query: { state: "closed", assignee: "none" } });
  expect(said()).toContain("None of the newest closed reviews match. Look further back.");
  expect(said()).not.toContain("0 reviews");
  closed["GET reviews"] = { reviews: [] };
  await show(Reviews, {}, { query: { state: "closed", assignee: "mem_0" } });
  expect(said()).toContain("No closed review matches.0 reviews");
  const seen = screen({ "GET visitors of development": { visitors: [] } });
  for (const [query, text] of [[{ ip_address: "10.0.0.1" }, "at this address"], [{ tag: "cart" }, "with the tag cart"]] as const) {
    await seen.show(Visitors, {}, { query });
    expect(said()).toContain(`Visitors of the newest 500 events ${text}, by their ids.`);
  }
});

it("lists members by their names", async () => {
  const members = ["Bob", "Zoe", "Ada"].map((name) => ({ ...MEMBER, id: name, name }));
  const { show } = screen({ "GET members": { members } });
  await show(Members);
  expect([...place.querySelectorAll("tbody strong")].map((one) => one.textContent)).toEqual(["Ada", "Bob", "Zoe"]);
});

it("says in passing what a dialog that was closed meanwhile could not write", async () => {
  const { show, only, notify } = screen();
  await show(Dialog, { title: "Make a list", onClose: () => undefined, onSubmit: () => new Promise((_, broken) => setTimeout(() => broken(BUSY))) });
  await act(() => place.querySelector("form")!.requestSubmit());
  await show(Rules);
  await act(() => new Promise((after) => setTimeout(after, 5)));
  expect(notify.mock.calls).toEqual([["Not saved: Come back later."]]);
  expect(only("GET rules of test")).toBeDefined();
});

it("keeps the focus in a dialog that is sent, and sends it once", async () => {
  const { show } = screen();
  let done!: (value: unknown) => void;
  const onSubmit = vi.fn(() => new Promise((end) => { done = end; }));
  await show(Dialog, { title: "Block all?", submit: "Block all", onClose: () => undefined, onSubmit });
  button("Block all").focus();
  await twice("Block all");
  expect(onSubmit).toHaveBeenCalledTimes(1);
  expect([document.activeElement, button("Block all").disabled]).toEqual([button("Block all"), false]);
  done(undefined);
});

it.each([[true, ["Cancel", "Remove"]], [false, ["Remove", "Cancel"]]])("gives the focus to Cancel where a dialog has no field and is dangerous: %s", async (danger, buttons) => {
  const { show } = screen();
  await show(Dialog, { title: "Remove?", submit: "Remove", danger, onClose: () => undefined, onSubmit: vi.fn() });
  expect([...place.querySelectorAll("button")].map((one) => one.textContent)).toEqual(buttons);
});

it("shows the error of a dialog that is longer than the window", async () => {
  const { show } = screen();
  await show(Dialog, { title: "Add an endpoint", onClose: () => undefined, onSubmit: () => Promise.reject(BUSY) });
  await act(() => place.querySelector("form")!.requestSubmit());
  await soon();
  expect([said().includes("Come back later."), place.querySelector("dialog")!.scrollTop]).toEqual([true, 9999]);
});

it("says that proposals cannot be loaded, which would otherwise seem to be none", async () => {
  const { show, only } = screen({ ...RULES_READ, "GET rules of test": { revision: 1, rules: [] } });
  await show(Rules);
  await only("GET rule-proposals of test").fail();
  expect(said()).toContain("Come back later.");
});

it("calls a note written although its screen was left, and takes no text that would be lost", async () => {
  const { show, only, notify } = screen({ "GET people": { people: [] }, "GET visitors/v/notes": { notes: [] } });
  await show(Notes, { of: "visitors", id: "v" });
  const field = place.querySelector("textarea")!;
  field.value = "A note.";
  await act(() => button("Write").closest("form")!.requestSubmit());
  expect(field.readOnly).toBe(true);
  await act(() => render(null, place));
  await only("POST visitors/v/notes").answer({});
  expect(notify).not.toHaveBeenCalled();
});

it("does not offer to undo what it has just done while it does not know that it is done", async () => {
  const lists = ["blocked", "trusted"].map((name) => ({ id: name, name: `${name}_visitors` }));
  const { show, asked, only } = screen();
  await show(Standing, { kind: "visitor", value: "v" });
  await only("GET standing of test").answer({ lists });
  await act(() => button("Block this visitor").click());
  await only("POST lists/blocked/entries").fail();
  await act(() => button("Block this visitor").click());
  expect([button("Block this visitor").getAttribute("aria-disabled"), asked("POST lists/blocked/entries")], "until it is known").toEqual(["true", []]);
  await only("GET standing of test").answer({ lists: [{ ...lists[0], entry: { value: "v" } }, lists[1]] });
  expect(button("Unblock this visitor").getAttribute("aria-disabled"), "its answer was lost").not.toBe("true");
});

it("shows no rules of production as those of staging, where they would be saved", async () => {
  const { show, only } = screen({ ...RULES_READ, "GET rules of live": { revision: 1, rules: [RULE] }, "GET rule-proposals of live": { proposals: [] } });
  await show(Rules, {}, { environment: "production" });
  expect(said()).toContain("Live one");
  await show(Rules, {}, { environment: "staging" });
  expect(said()).not.toContain("Live one");
  expect(said()).toContain("Loading");
  await only("GET rules of test").answer({ revision: 1, rules: [] });
  expect(said()).toContain("No rules");
});

it("takes no edit of rules that are being saved, which would be lost, and shows no preview of other rules", async () => {
  const rules = [RULE, { ...RULE, id: "rul_2", name: "Another" }];
  const { show, only } = screen({ ...RULES_READ, "GET rules of live": { revision: 1, rules }, "GET rule-proposals of live": { proposals: [] } });
  await show(Rules, {}, { environment: "production" });
  await act(() => button("Move Live one down").click());
  await act(() => button("Preview").click());
  await act(() => button("Move Live one up").click());
  await only("POST rules/preview of live").answer({ events: 0, rules: [], before: {}, after: {} });
  expect(said()).not.toContain("There is no event in production");
  await act(() => button("Move Live one down").click());
  await act(() => button("Save").click());
  expect(button("Move Live one up").closest("[inert]")).not.toBeNull();
  await only("PUT rules of live").fail();
  expect(button("Move Live one up").closest("[inert]")).toBeNull();
});

it("shows no weights of the organization as those of a key", async () => {
  const weights = { max_weight: 100, platforms: [{ platform: "web", suspect_threshold: 50, revision: 1, weights: { tor: 7 }, defaults: {}, signals: ["tor"], vpn_weights_mode: "method", residential_proxy_weights_mode: "method" }] };
  const { show, only } = screen({ "GET sdk-keys": { keys: [] }, "GET risk-signals": { signals: [] }, "GET risk-weights": weights });
  await show(Weights);
  expect(place.querySelector("[aria-label='Weight of tor']")).not.toBeNull();
  await show(Weights, {}, { environment: "development", query: { key_id: "key_1" } });
  expect(place.querySelector("[aria-label='Weight of tor']")).toBeNull();
  expect(only("GET sdk-keys/key_1/risk-weights")).toBeDefined();
});

const reviews = ["a", "b", "c", "d"].map((id) => ({ id, rule: `Rule ${id}`, environment: "development", opened_at: "2026-01-05T10:00:00Z", request_id: id, visitor_id: "v", assignee: null, suspect_score: 5 }));
const QUEUE = { "GET people": { people: [] }, "GET reviews of development": { reviews }, ...Object.fromEntries(reviews.map(({ id }) => [`GET events/${id}`, new Promise(() => undefined)])) };
const shown = () => place.querySelector("h2")?.textContent?.slice(0, 6);

it("stays on the review that is shown when another one comes back, and says why until that is judged", async () => {
  const { show, only, notify } = screen(QUEUE);
  await show(Reviews);
  place.querySelector("textarea")!.value = "As last week.";
  await press("f");
  expect(shown()).toBe("Rule b");
  await only("POST reviews/a/close").fail();
  expect([shown(), said().includes("Come back later.")]).toEqual(["Rule b", true]);
  expect(notify).toHaveBeenLastCalledWith("Not done: Closed as fraud.");
  await press("l");
  await only("POST reviews/b/close").answer({});
  expect([shown(), said().includes("Come back later.")]).toEqual(["Rule c", true]);
  await act(() => button("Try again").click());
  expect([shown(), place.querySelector("textarea")!.value, said().includes("Come back later.")]).toEqual(["Rule a", "As last week.", false]);
  await press("f");
  expect(only("POST reviews/a/close").body).toEqual({ label: "fraud", note: "As last week." });
  await only("POST reviews/a/close").answer({});
});

it("shows the review whose label was taken back, wherever it stands in the queue", async () => {
  const { show, only } = screen(QUEUE);
  await show(Reviews);
  for (const key of ["j", "j", "f"]) await press(key);
  expect(shown()).toBe("Rule d");
  await only("POST reviews/c/close").answer({});
  await press("u");
  expect(shown()).toBe("Rule c");
  await only("POST reviews/c/reopen").answer({ review: reviews[2] });
});

it("has the review that is shown in its address, for Back and for a colleague", async () => {
  const replaced = vi.spyOn(history, "replaceState");
  const { show } = screen(QUEUE);
  await show(Reviews);
  await press("j");
  expect(replaced.mock.lastCall![2]).toBe("#/x?environment=development&review=b");
  await show(Attempts, { rows: [], empty: "" });
  await show(Reviews, {}, { environment: "development", query: { review: "b" } });
  expect([shown(), said().includes("led to")]).toEqual(["Rule b", false]);
  await show(Reviews, {}, { environment: "development", query: { review: "d" } });
  expect(shown()).toBe("Rule d");
  replaced.mockImplementation(() => { throw new DOMException("", "SecurityError"); });
  await press("k");
  expect(shown()).toBe("Rule c");
  replaced.mockRestore();
});

it("says what became of the review of an address before it shows another one", async () => {
  const { show } = screen({ ...QUEUE, "GET reviews/e": { review: { ...reviews[0], id: "e", state: "closed", label: "fraud", closed_by: "mem_0" } } });
  await show(Reviews, {}, { environment: "development", query: { review: "e" } });
  expect(shown()).toBe("Rule a");
  expect(said()).toMatch(/The review that you were led to is closed, by .+: fraud/);
});

it("says that there are others behind a thousand open reviews, and shows those once these are closed", async () => {
  const known: Record<string, unknown> = { ...QUEUE, "GET reviews of development": { reviews: Array(400).fill(reviews[0]), next_cursor: "c" } };
  const { show, only } = screen(known);
  await show(Reviews);
  for (const text of ["1,200+ open in development", "1,200+ Rule a", "1 of 1,200+"]) expect(said()).toContain(text);
  // A member's own may be behind them.
  known["GET reviews of development"] = { reviews: [{ ...reviews[1], assignee: "mem_0" }] };
  await show(Reviews, {}, { environment: "development", query: { assignee: "mem_0" } });
  expect([shown(), said().includes("1 of 1Next")]).toEqual(["Rule b", true]);
  await show(Reviews);
  await press("f");
  await only("POST reviews/a/close").answer({});
  expect([shown(), said().includes("1 open in development")]).toEqual(["Rule b", true]);
});

it("says of how many events it lists tags, addresses and visitors, where there are more", async () => {
  const times = { first_seen: "2026-01-05T10:00:00Z", last_seen: "2026-01-05T10:00:00Z", first_seen_at: "2026-01-05T10:00:00Z", last_seen_at: "2026-01-05T10:00:00Z" };
  const visitor = { ...times, visitor_id: "v", event_count: 9000, environment_event_count: 201, identifiable: true, tags: [], addresses: [], events: [] };
  const account = { ...times, account_id: "a", event_count: 2000, velocity: {}, labels: { fraud: 0, legitimate: 0 }, visitors: [], addresses: [], events: [] };
  for (const [most, known] of [[true, [visitor, account]], [false, [{ ...visitor, environment_event_count: 200 }, { ...account, event_count: 1999 }]], [true, [{ ...visitor, environment_event_count: 60, tags: Array.from({ length: 50 }, (_, at) => ({ ...times, tag: `t${at}`, events: 1 })) }, { ...account, event_count: 100, addresses: Array.from({ length: 100 }, (_, at) => ({ ...times, ip_address: `10.0.0.${at}`, events: 1 })) }]]] as const) {
    const { show } = screen({ "GET visitors/v of development": known[0], "GET accounts/a of development": known[1] });
    await show(Visitor, {}, { id: "v" });
    expect(said().includes("those of its newest 200 events")).toBe(most);
    expect(said()).toContain(" events kept");
    await show(Account, {}, { id: "a" });
    expect(said().includes("those of its newest 2,000 events")).toBe(most);
    expect(said()).toMatch(/ events (or more )?kept, 0 visitors in 30 days/);
  }
});

it.each([".", ".."])("asks for no account with the id %s, which a path cannot name", async (id) => {
  const { show, open } = screen();
  await show(Account, {}, { id });
  expect(open).toEqual([]);
  expect(said()).toContain("svc account erase");
  expect(place.querySelector("a")!.hash).toContain(`account_id=${id}`);
});

it("shows no reviews of another environment while its own are loaded", async () => {
  const known: Record<string, unknown> = { ...QUEUE };
  const { show } = screen(known);
  await show(Reviews);
  expect(shown()).toBe("Rule a");
  delete known["GET reviews of development"];
  await show(Reviews, {}, { environment: "production" });
  expect(shown()).toBeUndefined();
});

it("judges nothing behind a dialog", async () => {
  const { show, asked } = screen(QUEUE);
  await show(Reviews);
  const dialog = document.body.appendChild(document.createElement("dialog"));
  dialog.open = true;
  await press("f");
  dialog.remove();
  expect([shown(), asked("POST reviews/a/close")]).toEqual(["Rule a", []]);
});

it("closes the chosen reviews although a colleague has closed one of them", async () => {
  const { show, only, notify } = screen(QUEUE);
  await show(Reviews, {}, { environment: "development", query: { state: "list" } });
  await act(() => place.querySelector<HTMLInputElement>("th input")!.click());
  await act(() => button("Close …").click());
  await act(() => place.querySelector<HTMLFormElement>("dialog form")!.requestSubmit());
  await only("POST reviews/a/close").fail(new ApiError("This review is closed.", 409, "review_closed"));
  for (const id of ["b", "c", "d"]) await only(`POST reviews/${id}/close`).answer({});
  expect(notify).toHaveBeenLastCalledWith("3 reviews closed. 1 review had been closed before.");
  expect(said()).toContain("No open review");
});

it("says after a minute that the script of a screen does not come", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  await act(() => render(h(lazy(() => new Promise<never>(() => undefined)), {}), place));
  vi.advanceTimersByTime(60_000);
  vi.useRealTimers();
  await soon();
  expect(said()).toContain("This screen cannot be loaded");
});
