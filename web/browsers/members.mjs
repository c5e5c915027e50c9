/**
 * Two admins in the console of a running service: an invitation with a password that is easily guessed, both at the same settings, origins
 * and endpoint, how a member signs in by keyboard, and a member of two organizations. Prints what happened as JSON.
 *
 *     node members.mjs '{"service", "team", "ada": invitation, "bob": invitation, "elsewhere": invitation of Ada}'
 */
import { launch } from "./launch.mjs";
import { findings } from "./watch.mjs";

const { service, team, ada, bob, elsewhere } = JSON.parse(process.argv[2]);
const PASSWORD = "a horse that is correct";
const browser = await launch();
const found = { looks: {} };

const text = (on, of = "main") => on.$eval(of, (element) => element.innerText);
const says = (on, wanted) => on.waitForFunction((said) => document.body.innerText.includes(said), {}, wanted);
const click = (on, name) => on.waitForFunction((wanted) => {
  const button = [...document.querySelectorAll("dialog[open] button, button, a")].find((one) => (one.getAttribute("aria-label") === wanted || one.textContent === wanted) && !one.disabled && one.ariaDisabled !== "true");
  button?.click();
  return button !== undefined;
}, {}, name);
async function go(on, screen, title) {
  await on.evaluate((to) => { location.hash = to; }, `#/${screen}?environment=development`);
  await on.waitForFunction((wanted) => document.querySelector("h1")?.textContent === wanted, {}, title);
  await on.waitForFunction(() => !document.querySelector("[aria-busy=true]") && !document.body.textContent.includes("Loading …"));
}
async function fill(on, field, value) {
  await on.$eval(field, (element) => { element.value = ""; });
  await on.type(field, value);
}
async function choose(on, password) {
  await fill(on, "[name=password]", password);
  await fill(on, "[name=again]", password);
  await on.keyboard.press("Enter");
}
async function enter(invitation, ...refused) {
  await new Promise((done) => setTimeout(done, 1100)); // one address may try five times a second
  const page = await (await browser.createBrowserContext()).newPage();
  await page.goto(invitation);
  await page.waitForSelector("[name=again]");
  for (const password of refused) {
    await choose(page, password);
    await page.waitForSelector(".problem");
    found.refused = await text(page, ".problem");
  }
  await choose(page, PASSWORD);
  await page.waitForFunction(() => document.querySelector("h1")?.textContent === "Live");
  return page;
}
/** A management route, by the session of a page; beyond a limit it is asked again. */
const manage = (on, path, method = "GET", body = undefined) => on.evaluate(async (to, by, given) => {
  const sent = async (url, options) => {
    for (;;) {
      const response = await fetch(url, options);
      if (response.status !== 429) return response.json();
      await new Promise((done) => setTimeout(done, 500));
    }
  };
  const { organization } = await sent("console/session");
  const options = { method: by, ...(given && { headers: { "content-type": "application/json" }, body: JSON.stringify(given) }) };
  return sent(`console/api/management/organizations/${organization.id}/${to}`, options);
}, path, method, body);

const one = await enter(ada, "ada@shop.example");
const other = await enter(bob);

/** What one writes while the other has the screen open stays. */
async function atOnce() {
  const { key } = await manage(one, "sdk-keys", "POST", { name: "shop", environment: "development", allowed_origins: ["https://a.example", "https://b.example"] });
  await go(other, "keys", "Keys");
  await manage(one, `sdk-keys/${key.id}/allowed-origins`, "PUT", { allowed_origins: ["https://b.example", "https://new.example"] });
  await click(other, "Origins of shop");
  await fill(other, "dialog[open] [name=origins]", "https://a.example\nhttps://mine.example");
  await click(other, "Save");
  await says(other, "The origins are saved");
  found.origins = (await manage(one, "sdk-keys")).keys.find(({ id }) => id === key.id).allowed_origins;

  await go(one, "settings", "Settings");
  await go(other, "settings", "Settings");
  for (const [page, name, value] of [[one, "multi_account", "4"], [other, "account_sharing", "9"]]) {
    await fill(page, `[name=${name}]`, value);
    await click(page, "Save");
    await says(page, "The settings are saved");
  }
  found.thresholds = (await manage(one, "settings")).account_thresholds;

  const hook = { url: "https://81.2.69.160/hidden", environment: "test", events: ["identification.completed"], description: "orders" };
  const { endpoint } = await manage(one, "webhooks", "POST", hook);
  await go(other, "webhooks", "Webhooks");
  await manage(one, `webhooks/${endpoint.id}`, "PATCH", { events: ["visitor.suspect"], filter: "score > 20" });
  await click(other, `Edit ${hook.url}`);
  await fill(other, "dialog[open] [name=description]", "Slack");
  await click(other, "Save");
  await says(other, "The endpoint is saved");
  const [{ description, events, filter }] = (await manage(one, "webhooks")).endpoints;
  found.endpoint = { description, events, filter };
}

/** Where the keyboard is. */
const place = (on) => on.evaluate(() => document.activeElement.name || document.activeElement.tagName);

async function security() {
  const to = async (name) => {
    await click(one, name);
    await one.waitForFunction(() => document.activeElement !== document.body);
    return place(one);
  };
  found.focus = {};
  await one.click("details.account summary");
  found.focus.password = await to("Change password");
  await one.keyboard.type("not the password");
  await one.type("details [name=new_password]", PASSWORD);
  await one.keyboard.press("Enter");
  await says(one, "Password is not valid.");
  found.focus.cancel = await to("Cancel");
  found.focus.codes = await to("Set up one-time codes");
  found.stale = (await one.$$("details .problem")).length;
  await one.keyboard.type(PASSWORD);
  await one.keyboard.press("Enter");
  await one.waitForSelector("details [name=code]");
  found.focus.code = await place(one);
  found.looks.codes = await findings(one);
  await click(one, "Cancel");
}

async function organizations() {
  const page = await enter(elsewhere);
  await click(page, "Sign out");
  await says(page, "You have signed out.");
  found.looks.signIn = await findings(page);
  await page.type("[name=email]", "ada@shop.example");
  await page.type("main form [name=password]", PASSWORD);
  await page.type("[name=organization_id]", team.toLowerCase());
  await page.keyboard.press("Enter");
  await page.waitForSelector("header.top");
  found.entered = await text(page, "header .name");
  const { records } = await page.evaluate(async () => (await fetch("console/api/audit?action=signIn")).json());
  found.sent = Object.keys(records[0].change);
}

await atOnce();
await go(other, "audit", "Audit");
found.by = await other.$$eval("main td[data-head=By]", (cells) => cells.map((cell) => cell.innerText));
found.ids = (await manage(one, "members")).members.map(({ id, name }) => [name, id]);
await security();
await organizations();
await browser.close();
console.log(JSON.stringify(found));
