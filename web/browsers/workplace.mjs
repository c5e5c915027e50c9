/**
 * Uses the console of a running service as those do who work with it all day, by keyboard alone, and prints what happened as JSON.
 *
 *     node workplace.mjs '{"service", "secret", "management", "fresh": {"link", "secret"}}'
 *
 * `fresh` leads to an organization without events: the first one appears by itself.
 * A developer adds a rule in shadow mode, tries it, activates it, sees it decide, and lists what it matched in both modes. An analyst finds the visitor by a part of its id,
 * blocks it, undoes that, looks at an account and what it is linked to, adds accounts of events to a list and keeps filters by a name,
 * works off reviews, labels an event and writes a note.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keyboard } from "./keyboard.mjs";
import { launch } from "./launch.mjs";
import { findings, overflows, watch } from "./watch.mjs";

const { service, secret, management, fresh } = JSON.parse(process.argv[2]);
const ENVIRONMENT = "environment=development";
const browser = await launch();
const page = await browser.newPage();
const found = await watch(page, service);
const { reach, press } = keyboard(page, (found.outlines = []));

async function screen(title) {
  await page.waitForFunction(
    (wanted) => document.querySelector("h1")?.textContent === wanted && !document.querySelector("[aria-busy=true]") && !document.body.textContent.includes("Loading …"),
    {},
    title,
  );
}

const says = (text) => page.waitForFunction((wanted) => document.body.innerText.includes(wanted), {}, text);
const text = () => page.$eval("main", (element) => element.innerText);
const type = (what) => page.keyboard.type(what);
const api = (path) => page.evaluate(async (to) => {
  const response = await fetch(`console/api/${to}`);
  return response.headers.get("content-type").startsWith("application/json") ? response.json() : response.text();
}, path);
const look = async (name) => {
  found.looks[name] = { overflows: await overflows(page), axe: await findings(page) };
};
const clear = async () => {
  await page.keyboard.down("Control");
  await page.keyboard.press("a");
  await page.keyboard.up("Control");
};

const sample = JSON.parse(await readFile(new URL("../../svc/identify/samples/first_visit.json", import.meta.url), "utf8"));
async function identify(account_id, device = 1, key = secret) {
  const headers = { "content-type": "application/json", "x-api-key": key, "x-svc-visitor-ip": "81.2.69.160", "x-svc-visitor-user-agent": sample.user_agent, "x-svc-visitor-origin": "https://shop.example" };
  const signals = structuredClone(sample.signals);
  signals.client_token = `the browser ${device}`;
  for (const image of ["geometry", "text"]) signals.components.canvas.value[image] += `device ${device}`; // enough to be another one
  signals.components.audio.value += device;
  signals.components.screenResolution.value = [1200 + 80 * device, 800];
  signals.components.hardwareConcurrency.value = 2 + 2 * device;
  const body = JSON.stringify({ sdk: { platform: "web", version: "0.1.0" }, signals, account_id, action: "sign_up" });
  const response = await fetch(`${service}/api/v1/identify`, { method: "POST", headers, body });
  if (!response.ok) throw new Error(`identify: ${response.status} ${await response.text()}`);
  return response.json();
}

/** Request ids of the events of the list, once this one is among them. */
async function listed(id) {
  await page.waitForSelector(`tr.event a[href*="${id}"]`);
  return page.$$eval("tr.event td:nth-child(2) a, tr.event th a", (all) => all.map((one) => one.hash.match(/events\/([^?]*)/)?.[1]).filter(Boolean));
}

/** Opens the page of an event, by the search of the head. */
async function event(id) {
  await page.keyboard.press("Escape");
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("/");
  await type(id);
  await page.keyboard.press("Enter");
  await screen("Event");
}

async function developer() {
  await identify("user-1");
  await identify("user-2");
  await press("Rules", { back: true });
  await screen("Rules");
  await look("rules");
  await press("Add a rule");
  await page.waitForSelector("dialog[open]");
  await type("Second account");
  await reach("textarea[aria-autocomplete]");
  await type("score >= 0 && visits > 1");
  await page.waitForSelector(".fault");
  found.fault = await page.$eval(".fault p", (element) => element.textContent);
  await press("Go there");
  found.caret = await page.evaluate(() => document.activeElement.selectionStart);
  await clear();
  await type("velocity.visitor.acc");
  await page.waitForSelector(".completions:not([hidden])");
  await page.keyboard.press("Enter");
  await type('["');
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await type('"] >= 2');
  found.condition = await page.$eval("textarea", (field) => field.value);
  await look("rule");
  await press("Done");
  await page.waitForFunction(() => document.querySelector("dialog") === null);
  await press("Preview", { back: true });
  await page.waitForSelector(".preview .examples time");
  found.preview = await page.$eval(".preview", (element) => element.innerText);
  await press("Save", { back: true });
  await says("The rules are saved");
  const shadowed = await identify("user-3");
  found.shadowed = shadowed.request_id;
  await event(shadowed.request_id);
  await says("in shadow mode");
  found.shadow = await text();

  await press("Rules", { back: true });
  await screen("Rules");
  await press('[aria-label="Edit Second account"]');
  await page.waitForSelector("dialog[open]");
  await reach("[name=mode]");
  await type("active");
  await press("Done");
  await page.waitForFunction(() => document.querySelector("dialog") === null);
  await press("Save", { back: true });
  await says("Revision 2");
  found.decided = await identify("user-4");
  await event(found.decided.request_id);
  await says("by the rule Second account");
  found.event = await text();
  await look("event");
  await press("Rules", { back: true });
  await screen("Rules");
  await says("Matched 2 in 24 hours");
  found.history = await page.$$eval(".timeline > li", (all) => all.map((one) => one.innerText));
  await press('[aria-label^="development: events that Second account"]');
  await screen("Events");
  await says("Decided by Second account");
  found.matches = { decided: await listed(found.decided.request_id), address: await page.evaluate(() => location.hash) };
  await look("matches");
  await press("Show its shadow matches");
  await says("Matched in shadow mode by Second account");
  found.matches.shadowed = await listed(found.shadowed);
  await press("Clear the rule");
  await page.waitForFunction(() => document.querySelector(".chip") === null);
  found.matches.all = await listed(found.decided.request_id);
}

async function analyst() {
  const { visitor_id } = found.decided;
  await identify("user-4", 2);
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("/");
  await type(`${visitor_id.slice(0, 8)}…`);
  await page.keyboard.press("Enter");
  await screen("Visitor");
  found.visitor = await text();
  await look("visitor");
  found.effect = (await api("standing?environment=test")).lists[0];
  await press("Block this visitor");
  await says(found.effect.reason ?? "Blocked from the next request on.");
  found.blocked = (await identify("user-5")).decision;
  await reach("Undo", { back: false });
  await page.keyboard.press("Enter");
  await says("It is as it was before.");
  found.undone = (await identify("user-5")).decision;
  await unread(visitor_id);

  await press("Accounts", { back: true });
  await screen("Accounts");
  await press('a.account[title="user-4"]');
  await screen("Account");
  await page.waitForSelector(".graph");
  found.account = await text();
  found.nodes = await page.$$eval(".graph a", (all) => all.length);
  await look("account");

  await press("Events", { back: true });
  await screen("Events");
  await reach("input.account_id");
  await type("user-5");
  await page.keyboard.press("Enter");
  await says("2 events, no older ones");
  await press("Save these filters …");
  await page.waitForSelector("dialog[open]");
  await type("Suspects");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("dialog") === null);
  await reach('[aria-label="Select all that are shown"]');
  await page.keyboard.press("Space");
  await says("2 events selected");
  await press("Add to a list …", { back: true });
  await page.waitForSelector("dialog[open] option");
  await reach("[name=list]");
  await type("blocked_acc");
  await says("1 account");
  await press("Add");
  await says("1 entry added to blocked_accounts");
  found.refused = (await identify("user-5", 3)).decision;
  await page.reload();
  await screen("Events");
  await page.waitForFunction(() => [...document.querySelectorAll(".filters option")].some((one) => one.textContent === "Suspects"));
  found.saved = await page.$$eval(".filters option", (all) => all.map((one) => one.textContent).filter((one) => one === "Suspects"));
  found.exported = (await api(`events/export?${ENVIRONMENT}&account_id=user-5&format=csv`)).split("\n").length;
  await press("Lists", { back: true });
  await screen("Lists");
  await look("lists");
  await press("blocked_accounts");
  await screen("List");
  await says("user-5");
  await look("list");
  await imports();
}

/** Chooses files for a list: what would be added is seen before it is. */
async function imports() {
  const folder = await mkdtemp(join(tmpdir(), "svc-lists-"));
  const choose = async (content, said) => {
    await writeFile(join(folder, "list.csv"), content);
    await press("Import …", { back: true });
    const field = await page.waitForSelector("dialog[open] [type=file]");
    await field.uploadFile(join(folder, "list.csv"));
    await says(said);
    return page.$eval("dialog[open]", (element) => element.innerText);
  };
  found.unclear = await choose("user-8;chargeback\n", "Line 1:");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector("dialog") === null);
  found.read = await choose("\ufeffValue;Note\r\nuser-8;chargeback\r\nuser-9;\r\n", "2 entries, separated by semicolons");
  await look("import");
  await press("Import");
  await says("2 entries added.");
  await page.waitForFunction(() => document.querySelector("dialog") === null && document.body.innerText.includes("user-9"));
  found.imported = await page.$$eval("tbody tr", (all) => all.map((one) => one.innerText.split(/\s+/).filter(Boolean).slice(0, 2).join(" ")));
  await rm(folder, { recursive: true });
}

/** Blocks the visitor while no rule reads the list, which the rules screen warns of and the page says. */
async function unread(visitor_id) {
  await press("Rules", { back: true });
  await screen("Rules");
  for (const name of ["Blocked", "Trusted"]) {
    await press(`[aria-label="Remove ${name}"]`);
    await page.waitForSelector("dialog[open]");
    await press("Remove");
    await page.waitForFunction(() => document.querySelector("dialog") === null);
  }
  await press("Preview", { back: true });
  await page.waitForSelector(".preview");
  found.warned = await page.$eval(".preview", (element) => element.innerText);
  await press("Save", { back: true });
  await says("The rules are saved");
  found.savedWith = await page.$$eval("p.note", (all) => all.map((one) => one.innerText));
  await look("warned");
  await page.goto(`${service}/console#/visitors/${visitor_id}?${ENVIRONMENT}`);
  await screen("Visitor");
  await press("Block this visitor");
  await says("No active rule reads it, so nothing is blocked.");
  found.unread = { standing: await page.$eval(".standing", (element) => element.innerText), decision: (await identify("user-4")).decision };
  await look("unread");
  await press("Unblock");
  await says("Removed from blocked_visitors.");
  await press("Rules", { back: true });
  await screen("Rules");
  await press('[aria-label="Restore revision 2"]');
  await page.waitForSelector("dialog[open]");
  await press("Restore");
  await page.waitForFunction(() => document.querySelector("dialog") === null);
  await says("Revision 4");
}

/** Works off the reviews that the rule has opened, by their keys, and sees what came of it. */
async function reviewer() {
  await press("Reviews", { back: true });
  await screen("Reviews");
  await page.waitForSelector(".bottom-bar");
  found.queue = await text();
  await look("reviews");
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("n");
  await type("the same card");
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await says("2 of");
  await page.keyboard.press("k");
  await says("1 of");
  await page.keyboard.press("f");
  await says("Closed as fraud.");
  await says("1 of 1");
  await page.waitForFunction(() => [...document.querySelectorAll("button")].every((one) => !one.textContent.startsWith("Legitimate") || !one.disabled));
  await page.keyboard.press("l");
  await says("Closed as legitimate.");
  found.left = await text();
  await press("Performance", { back: true });
  await screen("Performance");
  found.performance = await text();
  await look("performance");
  await event(found.decided.request_id);
  await press("Fraud");
  await says("Label: fraud");
  found.labeled = (await api(`events?${ENVIRONMENT}&label=fraud`)).rows.map((row) => row.request_id);
  await press("a.visitor");
  await screen("Visitor");
  await reach("[maxlength='2000']");
  await type("Called: it is a farm.");
  await press("Write");
  await page.waitForSelector(".notes li");
  found.note = await page.$eval(".notes", (list) => list.innerText);
}

/** Asks which weights the labels suggest: two labels are too few. */
async function tuner() {
  await press("Weights");
  await screen("Weights");
  await press("Suggest weights");
  await says("Too few labels");
  found.suggestion = await text();
  await look("weights");
}

/** Invites a member, who comes in by the link. */
async function admin() {
  await press("Members", { back: true });
  await screen("Members");
  await press("Invite a member");
  await page.waitForSelector("dialog[open]");
  await type("ada@shop.example");
  await reach("[name=name]");
  await type("Ada");
  await press("Invite");
  await page.waitForSelector("dialog .secret code");
  found.invitation = await page.$eval("dialog .secret code", (element) => element.textContent);
  await look("invitation");
  await press("I have it");
  await says("invited");
  found.members = await text();
}

/** Revokes the keys of browsers, after a script ran on the shop's pages. */
async function incident() {
  await press("Keys", { back: true });
  await screen("Keys");
  await press("Revoke", { back: true }); // the last one: that of the browsers' keys
  await page.waitForSelector("dialog [name=from]");
  await reach("[name=from]");
  await page.$eval("[name=from]", (field) => (field.value = "2026-01-01T00:00"));
  await look("browserkeys");
  await press("Count");
  await page.waitForFunction(() => document.querySelector("dialog h2")?.textContent.startsWith("Revoke"));
  found.counted = await page.$eval("dialog", (element) => element.innerText);
  await press("Revoke");
  await says("The keys are revoked.");
}

found.looks = {};
try {
  await page.goto(fresh.link);
  await screen("Live");
  await says("svc_pk_");
  found.first = await text();
  await look("first");
  await identify("user-1", 1, fresh.secret);
  await page.waitForSelector("tbody tr");
  found.arrived = await text();
  await press(".account > summary", { back: true });
  await press("Sign out");
  await page.waitForSelector("[name=key]");
  await page.type("[name=key]", management);
  await page.keyboard.press("Enter");
  await screen("Live");
  await page.waitForSelector(".state.open");
  await developer();
  await analyst();
  await reviewer();
  await tuner();
  await admin();
  await incident();
} catch (error) {
  const seen = await page.evaluate(() => `${location.href}\n${document.activeElement.outerHTML.slice(0, 300)}\n${document.body.innerText.slice(0, 3000)}`).catch((why) => `the page cannot be read: ${why.message}`);
  console.error(`${JSON.stringify({ ...found, event: "", visitor: "" })}\n${seen}`);
  throw error;
}
await browser.close();
console.log(JSON.stringify(found));
