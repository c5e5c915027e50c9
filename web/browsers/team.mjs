/**
 * A team in the console of a running service: an analyst tries a rule in shadow mode and proposes it, keeps filters for everybody, and
 * takes a ring of accounts as a whole; an admin finds the proposal first, and the filters by their address, and changes the analyst's role
 * twice. Prints what happened as JSON.
 *
 *     node team.mjs '{"service", "analyst": invitation, "admin": invitation, "account"}'
 */
import { launch } from "./launch.mjs";
import { findings, overflows, watch } from "./watch.mjs";

const { service, analyst, admin, account } = JSON.parse(process.argv[2]);
const PASSWORD = "a horse that is correct";
const E = "environment=development";
const browser = await launch();
const page = await browser.newPage();
const found = await watch(page, service);
found.looks = {};

const says = (on, text) => on.waitForFunction((wanted) => document.body.innerText.includes(wanted), {}, text);
const text = (on, of = "main") => on.$eval(of, (element) => element.innerText);
const click = (on, name) => on.waitForFunction((wanted) => {
  const button = [...document.querySelectorAll("dialog[open] button, button, a")].find((one) => (one.getAttribute("aria-label") === wanted || one.textContent === wanted) && !one.disabled && one.ariaDisabled !== "true");
  button?.click();
  return button !== undefined;
}, {}, name);
const disabled = (on) => on.$$eval("main button:disabled", (all) => all.map((one) => one.textContent));
const calm = (on) => on.waitForFunction(() => !document.querySelector("[aria-busy=true]") && !document.body.textContent.includes("Loading …"));
const look = async (on, name) => {
  found.looks[name] = { overflows: await overflows(on), axe: await findings(on) };
};
async function go(on, hash, title) {
  await on.evaluate((to) => { location.hash = to; }, hash);
  await on.waitForFunction((wanted) => document.querySelector("h1")?.textContent === wanted, {}, title);
  await calm(on);
}
async function enter(on, invitation) {
  await on.goto(invitation);
  await on.waitForSelector("[name=password]");
  await on.type("[name=password]", PASSWORD);
  await on.type("[name=again]", PASSWORD);
  await on.keyboard.press("Enter");
  await on.waitForFunction(() => document.querySelector("h1")?.textContent === "Live");
}
const get = (on, path, method = "GET", body = undefined) => on.evaluate(async (to, by, given) => {
  const sent = async (url, options) => {
    for (;;) {
      const response = await fetch(url, options);
      if (response.status !== 429) return response.json();
      await new Promise((done) => setTimeout(done, 500));
    }
  };
  const { organization } = await sent("console/session");
  const options = { method: by, ...(given && { headers: { "content-type": "application/json" }, body: JSON.stringify(given) }) };
  return sent(`console/api/${to.replace("{}", `management/organizations/${organization.id}`)}`, options);
}, path, method, body);

/** Escape closes what is on top: the completions, the question, and the dialog only where nothing is written. */
async function drafts() {
  await go(page, `#/rules?${E}`, "Rules");
  found.note = await text(page, "main .note");
  await click(page, "Add a rule");
  await page.type("dialog[open] [name=name]", "Ring");
  await page.type("dialog[open] textarea", "velo");
  await page.waitForSelector("[role=listbox]:not([hidden])");
  await page.keyboard.press("Escape");
  await page.waitForSelector("[role=listbox][hidden]");
  await page.keyboard.press("Escape");
  await says(page, "What you have written will be lost.");
  await look(page, "asks");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !document.body.innerText.includes("What you have written will be lost."));
  await page.keyboard.press("Escape");
  await says(page, "What you have written will be lost.");
  await click(page, "Keep editing");
  found.kept = await page.$eval("dialog[open]", (dialog) => [dialog.querySelector("[name=name]").value, dialog.querySelector("textarea").value]);
  await page.focus("dialog[open] textarea");
  await page.keyboard.type('city.visitor.accounts["30d"] >= 3');
  await page.keyboard.press("Escape");
  await page.select("dialog[open] [name=mode]", "shadow");
  await click(page, "Done");
  await page.waitForFunction(() => document.querySelector("dialog") === null);
}

async function rules() {
  await drafts();
  await click(page, "Save");
  await says(page, "The rules are saved");
  await calm(page);
  found.shadow = (await get(page, "{}/rules?environment=test")).rules.map(({ name, mode }) => [name, mode]);
  await click(page, "Edit Ring");
  await page.waitForSelector("dialog[open] [name=mode]");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector("dialog") === null); // nothing is written
  await click(page, "Edit Ring");
  await page.select("dialog[open] [name=mode]", "active");
  await click(page, "Done");
  await says(page, "Propose …");
  found.offered = await page.$$eval(".bottom-bar button", (all) => all.map((one) => one.textContent));
  await click(page, "Propose …");
  await page.type("dialog[open] [name=note]", "Quiet for a week.");
  await click(page, "Propose");
  await says(page, "Proposed. Admins see it");
  await says(page, "A proposal");
  found.history = await page.$$eval(".timeline li strong + *, .timeline p", (all) => all.map((one) => one.innerText).filter((one) => one.includes("Revision")));
  found.restore = (await disabled(page)).includes("Restore …");
  await go(page, `#/lists?${E}`, "Lists");
  found.makes = (await disabled(page)).includes("Make a list");
}

async function views() {
  await go(page, `#/events?${E}&action=sign_up&window=7d`, "Events");
  found.total = await text(page);
  await click(page, "Save these filters …");
  await page.type("dialog[open] [name=name]", "Sign-ups");
  await look(page, "saving");
  await page.keyboard.press("Enter");
  await says(page, "everybody of the organization finds these filters here");
  await page.waitForSelector('[aria-label="Delete the filters Sign-ups"]');
  await look(page, "saved");
  found.views = (await get(page, "views")).views;
}

const standing = async () => {
  const { nodes } = await get(page, `links?${E}&account=${account}`);
  const of = (kind) => nodes.filter((node) => node.kind === kind).map(({ id }) => id);
  return (await get(page, "standing", "POST", { visitors: of("visitor"), accounts: of("account") })).entries.map(({ list }) => list);
};

async function takeBack() {
  await click(page, "Undo");
  await page.waitForFunction(() => [...document.querySelectorAll("button")].every((one) => one.textContent !== "Undo"));
}

async function ring() {
  await go(page, `#/accounts/${account}?${E}`, "Account");
  await says(page, "3 visitors and 12 accounts");
  found.nodes = await page.$$eval(".graph a", (all) => all.length);
  await click(page, "Select all");
  await says(page, "3 visitors and 12 accounts selected");
  await look(page, "ring");
  await click(page, "Block all …");
  await page.waitForSelector("dialog[open]");
  await look(page, "blocking");
  await click(page, "Block all");
  await says(page, "blocked from the next request on.");
  found.blocked = await standing();
  await takeBack();
  found.unblocked = await standing();
  await click(page, "Select all");
  await click(page, "Label …");
  await page.waitForSelector("dialog[open]");
  await click(page, "Label");
  await says(page, "15 events labeled fraud.");
  found.labeled = (await get(page, `events/count?${E}&label=fraud`)).count;
  await takeBack();
  found.unlabeled = (await get(page, `events/count?${E}&label=fraud`)).count;
  await click(page, "Select all");
  await click(page, "Add to a list …");
  await page.waitForSelector("dialog[open] option");
  await page.select("dialog[open] [name=list]", "trusted_accounts");
  await page.$eval("dialog[open] button[type=submit]", (button) => button.click());
  await says(page, "12 entries added to trusted_accounts.");
  found.listed = await standing();
  await takeBack();
  found.unlisted = await standing();
}

/** In a browser of her own. */
async function decide(other) {
  await enter(other, admin);
  await go(other, `#/rules?${E}`, "Rules");
  found.first = (await other.$$eval("main .card h2", (all) => all.map((one) => one.textContent)))[0];
  // The names of members are read beside the proposals.
  await other.waitForFunction(() => document.querySelector("main .card").innerText.includes("Ada"));
  found.proposal = await text(other, "main .card");
  await look(other, "proposal");
  await click(other, "Load into the editor");
  await says(other, "1 unsaved change");
  await click(other, "Save");
  await says(other, "The rules are saved");
  found.active = (await get(other, "{}/rules?environment=test")).rules.map(({ name, mode }) => [name, mode]);
  found.left = (await get(other, "{}/rule-proposals?environment=test")).proposals;
  found.names = await other.$$eval(".timeline p", (all) => all.map((one) => one.innerText).filter((one) => one.startsWith("Revision")));
  await other.goto(`${service}/console#/view/${found.views[0].id}`);
  await other.waitForFunction(() => location.hash.startsWith("#/events?"));
  await calm(other);
  found.arrived = await other.evaluate(() => location.hash);
}

/** A screen that is open while a role is changed: somebody comes back to it, and another time is refused. */
async function roles(other) {
  const { members } = await get(other, "{}/members");
  const ada = `{}/members/${members.find(({ name }) => name === "Ada").id}`;
  await go(page, `#/lists?${E}`, "Lists");
  await get(other, ada, "PATCH", { role: "developer" });
  await page.evaluate(() => dispatchEvent(new Event("focus")));
  await says(page, "Ada, developer");
  found.grants = (await disabled(page)).includes("Make a list");
  await click(page, "Make a list");
  await page.type("dialog[open] [name=name]", "partners");
  await get(other, ada, "PATCH", { role: "viewer" });
  await click(page, "Make");
  await says(page, "Ada, viewer");
  found.refused = await text(page, "dialog[open] .problem");
  found.takes = (await disabled(page)).includes("Make a list");
}

try {
  await enter(page, analyst);
  await rules();
  await views();
  await ring();
  const other = await (await browser.createBrowserContext()).newPage();
  await decide(other);
  await roles(other);
} catch (error) {
  console.error(JSON.stringify(found), await page.evaluate(() => `${location.href}\n${document.body.innerText.slice(0, 4000)}`));
  throw error;
}
await browser.close();
console.log(JSON.stringify(found));
