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
  await afterwards();
  found.seconds = (Date.now() - found.began) / 1000;
} catch (error) {
  console.error(JSON.stringify(found), await page.evaluate(() => `${location.href}\n${document.activeElement.outerHTML.slice(0, 300)}\n${document.body.innerText.slice(0, 3000)}`));
  throw error;
}
await browser.close();
console.log(JSON.stringify(found));
