/**
 * The morning of an analyst in the console of a running service, by keyboard alone; prints what happened as JSON.
 *
 *     node morning.mjs '{"service", "invitation", "email", "fraud": ["user-0", …], "noted": ["user-0", …], "network"}'
 *
 * A member who was invited signs in, works off the queue of reviews as she sees them (`fraud`: the accounts that are, `noted`: those
 * about which she writes something first), labels an event, blocks a network, writes a note and exports what is shown.
 */
import { keyboard } from "./keyboard.mjs";
import { launch } from "./launch.mjs";
import { findings, watch } from "./watch.mjs";

const { service, invitation, email, fraud, noted, network } = JSON.parse(process.argv[2]);
const PASSWORD = "a horse that is correct";
const browser = await launch();
const page = await browser.newPage();
const found = await watch(page, service);
const { reach, press } = keyboard(page, (found.outlines = []));
Object.assign(found, { judged: [], keys: 0 });

async function screen(title) {
  await page.waitForFunction(
    (wanted) => document.querySelector("h1")?.textContent === wanted && !document.querySelector("[aria-busy=true]") && !document.body.textContent.includes("Loading …"),
    {},
    title,
  );
}

const says = (text) => page.waitForFunction((wanted) => document.body.innerText.includes(wanted), {}, text);
const type = (what) => page.keyboard.type(what);
const key = async (name) => {
  found.keys += 1;
  await page.keyboard.press(name);
};

async function write(field, text) {
  await reach(`[name=${field}]`);
  await type(text);
}

async function signIn() {
  await page.goto(invitation);
  await screen("You are invited");
  await page.waitForSelector("[name=password]");
  await write("password", PASSWORD);
  await write("again", PASSWORD);
  await page.keyboard.press("Enter");
  await screen("Live");
  await press(".account > summary");
  await press("Sign out");
  await screen("Sign in to the console");
  found.began = Date.now();
  await write("email", email);
  await write("password", PASSWORD);
  await page.keyboard.press("Enter");
  await screen("Live");
}

/** The review that is shown, as soon as there are `left` in the queue and its account is not `last`. */
async function shown(left, last) {
  const handle = await page.waitForFunction(
    (wanted, former) => {
      const account = document.querySelector("main a.account")?.title;
      return document.querySelector(".bottom-bar [role=status]")?.textContent === wanted && account !== former && account;
    },
    {},
    `1 of ${left}`,
    last,
  );
  return handle.jsonValue();
}

async function queue() {
  await press("Reviews", { back: true });
  await screen("Reviews");
  const all = await page.waitForSelector(".bottom-bar [role=status]");
  let left = Number((await all.evaluate((status) => status.textContent)).split(" of ")[1]);
  found.open = left;
  await page.evaluate(() => document.activeElement?.blur());
  const began = Date.now();
  for (let account; left > 0; left -= 1) {
    account = await shown(left, account);
    if (noted.includes(account)) {
      await key("n");
      await type(`fox: ${account} called`); // letters that are keys of the queue
      await key("Escape");
    }
    const label = fraud.includes(account) ? "fraud" : "legitimate";
    await key(label[0]);
    found.judged.push([account, label]);
  }
  await says("That was the last one.");
  await says("No open review in development");
  found.queueSeconds = (Date.now() - began) / 1000;
}

const queued = () => page.$eval("main .numbers strong", (number) => number.textContent);
const saved = () => page.waitForFunction(() => !document.body.innerText.includes("Saving …"));

/** Takes the last three back, and judges them again, without waiting for anything: no key is lost, at any speed. */
async function faster() {
  await page.keyboard.type("uuu");
  await says("1 of 3");
  await saved();
  found.undone = await reviews("open");
  await page.keyboard.type("fff");
  await says("No open review in development");
  await saved();
  found.typed = await reviews("closed");
  await page.keyboard.type("uuuj1l2ff");
  await says("No open review in development");
  await saved();
  found.reasons = (await reviews("closed")).slice(0, 30);
}

/** Opens all again from the list of those that are closed, and judges all thirty as fast as keys are typed. */
async function again() {
  const ids = (await reviews("closed")).map(({ id }) => id);
  for (const id of ids.slice(1)) await manage(`reviews/${id}/reopen`, "POST");
  await page.select(".filters select", "closed");
  await says("1 review");
  await press("Open again");
  await says("The review is open again.");
  found.closedLook = await findings(page);
  await page.select(".filters select", "");
  await page.waitForFunction((most) => document.querySelector(".bottom-bar [role=status]")?.textContent === `1 of ${most}`, {}, ids.length);
  found.queueLook = await findings(page);
  await page.evaluate(() => document.activeElement?.blur());
  const open = await reviews("open");
  await page.keyboard.type(open.map((_, at) => (at % 2 ? "l" : "f")).join(""));
  await says("No open review in development");
  await saved();
  found.thirty = { open: open.reverse().map(({ id }) => id), closed: await reviews("closed") };
  found.leftQueued = await queued();
  await page.keyboard.type("u");
  await says("1 of 1");
  await page.keyboard.type("b");
  await says("The visitor is blocked from the next request on");
  await saved();
  found.blockedWhile = await entries();
  await page.keyboard.type("u");
  await says("Undone: Blocked.");
  await saved();
  found.blockedAfter = await entries();
  await page.keyboard.type("a");
  await says("Assigned to you.");
  await saved();
  found.taken = await reviews("open");
  await page.keyboard.type("ul");
  await says("No open review in development");
  await saved();
  found.given = (await reviews("closed"))[0];
}

/** What a management route of the organization answers; a request that came too fast is sent again. */
const manage = (path, method = "GET") => page.evaluate(async (to, by) => {
  const sent = async (url, options) => {
    for (;;) {
      const response = await fetch(url, options);
      if (response.status !== 429) return response.json();
      await new Promise((done) => setTimeout(done, 500));
    }
  };
  const { organization } = await sent("console/session");
  return sent(`console/api/management/organizations/${organization.id}/${to}`, { method: by });
}, path, method);

/** The reviews of a state, newest first. */
const reviews = async (state) => (await manage(`reviews?state=${state}&limit=200`)).reviews;

async function entries() {
  const { lists } = await manage("lists");
  return (await manage(`lists/${lists.find(({ name }) => name === "blocked_visitors").id}/entries`)).entries.map(({ value }) => value);
}

async function afterwards() {
  await press("Events", { back: true });
  await screen("Events");
  await reach("input.account_id");
  await type("user-late");
  await page.keyboard.press("Enter");
  await says("1 event, no older ones");
  const saved = page.waitForResponse((response) => response.url().includes("/events/export") && response.ok());
  await press('[aria-label="Export as CSV"]');
  found.exported = (await saved).headers()["content-type"];
  await press("a[href*='#/events/']", { back: true });
  await screen("Event");
  await press("Fraud");
  await says("Label: fraud");
  await press("a.visitor");
  await screen("Visitor");
  await reach("[maxlength='2000']");
  await type("Called: it is a farm.");
  await press("Write");
  await page.waitForSelector(".notes li");
  found.note = await page.$eval(".notes", (list) => list.innerText);
  await press("Lists", { back: true });
  await screen("Lists");
  await press("blocked_addresses");
  await screen("List");
  await press("Add entries");
  await page.waitForSelector("dialog[open]");
  await write("values", network);
  await write("note", "the farm");
  await press("Add");
  await says("1 entry added");
  await page.waitForFunction(() => document.querySelector("dialog") === null);
  found.axe = await findings(page);
}

try {
  await signIn();
  await queue();
  const began = Date.now();
  await saved();
  found.first = await reviews("closed");
  await faster();
  await again();
  found.repeated = (Date.now() - began) / 1000;
  await afterwards();
  found.seconds = (Date.now() - found.began) / 1000 - found.repeated;
} catch (error) {
  console.error(JSON.stringify(found), await page.evaluate(() => `${location.href}\n${document.activeElement.outerHTML.slice(0, 300)}\n${document.body.innerText.slice(0, 3000)}`));
  throw error;
}
await browser.close();
console.log(JSON.stringify(found));
