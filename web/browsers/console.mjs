/**
 * Uses the console of a running service as an operator would, by keyboard alone, and prints what happened as JSON.
 *
 *     node console.mjs walk '{"service", "link", "other", "secret", "management", "revoke": [PROGRAM, ARGUMENT, ...]}'
 *     node console.mjs member '{"service", "invitation", "email"}'
 *     node console.mjs look '{"service", "secret", "management"}' [--shots DIR SCREEN-LOOK ...]
 *
 * `walk` signs in by `link`, identifies with the key `secret`, revokes the session's own key by the command `revoke`
 * (the key's id is appended), signs in again with the key `management` and opens the used link and `other`, which leads to
 * another organization. `member` accepts an invitation and sets up one-time codes. `look` opens every screen in light, dark
 * and at phone width, or takes pictures of some.
 */
import { execFileSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { readFile } from "node:fs/promises";
import { keyboard } from "./keyboard.mjs";
import { launch } from "./launch.mjs";
import { fill, identifyApp } from "./pictured.mjs";
import { findings, overflows, turned, watch } from "./watch.mjs";

const [mode, configuration, , shots, ...shown] = process.argv.slice(2);
const { service, link, other, secret, management, revoke, invitation, email } = JSON.parse(configuration);
const ENVIRONMENT = "environment=development";
const ATTACK = '"><img src=x onerror="window.attacked=1"><script>window.attacked=1</script>';
const LOOKS = {
  light: { width: 1280, height: 1000, scheme: "light" },
  dark: { width: 1280, height: 1000, scheme: "dark", rules: ["color-contrast"] },
  phone: { width: 390, height: 844, scheme: "light" },
};

const browser = await launch();
const page = await browser.newPage();
const found = await watch(page, service);

/** Waits until the heading is this, and what the screen shows is loaded. */
async function screen(title) {
  await page.waitForFunction(
    (wanted) => document.querySelector("h1")?.textContent === wanted && !document.querySelector("[aria-busy=true]") && !document.body.textContent.includes("Loading …"),
    {},
    title,
  );
}

const says = (text) => page.waitForFunction((wanted) => document.body.textContent.includes(wanted), {}, text);
const text = () => page.$eval("main", (element) => element.innerText);
const api = (path) => page.evaluate(async (to) => {
  const response = await fetch(`console/${to === "session" ? to : `api/${to}`}`);
  return { status: response.status, body: await response.json() };
}, path);

/** Leaves the console, so that the next link loads it: on a page of the same site, since another one takes a new frame. */
const leave = () => page.goto(`${service}/livez`);

/** Identify as a customer's server would; whatever a client controls is an attack, if there is to be one. */
async function identify(tag, attack = ATTACK, device = "one", origin = "https://shop.example") {
  const sample = JSON.parse(await readFile(new URL("../../svc/identify/samples/first_visit.json", import.meta.url), "utf8"));
  const headers = {
    "content-type": "application/json",
    "x-api-key": secret,
    "x-svc-visitor-ip": "81.2.69.160",
    "x-svc-visitor-user-agent": `${sample.user_agent} HeadlessChrome/1.0 ${attack}`,
    "x-svc-visitor-origin": origin,
  };
  const signals = { ...sample.signals, attack };
  // Enough to be another device of the same model.
  for (const image of ["geometry", "text"]) signals.components.canvas.value[image] += device;
  signals.components.audio.value += device.length;
  const body = JSON.stringify({ sdk: { platform: "web", version: attack.slice(0, 64) || "0.1.0" }, signals, tag });
  const response = await fetch(`${service}/api/v1/identify`, { method: "POST", headers, body });
  if (!response.ok) throw new Error(`identify: ${response.status} ${await response.text()}`);
  return response.json();
}

async function signIn() {
  await page.goto(`${service}/console`);
  await page.waitForSelector("[name=key]");
  await page.type("[name=key]", management);
  await page.keyboard.press("Enter");
  await screen("Live");
}

async function walk() {
  const { reach, press } = keyboard(page, (found.outlines = []));

  await page.goto(link);
  await screen("Live");
  await page.waitForSelector(".state.open");
  found.address = page.url();
  found.stored = await page.evaluate(() => [document.cookie, localStorage.length, sessionStorage.length]);
  const stranger = await (await browser.createBrowserContext()).newPage();
  await stranger.goto(link);
  found.usedLink = await (await stranger.waitForSelector(".problem")).evaluate((element) => element.textContent);
  await stranger.close();

  const tag = `account-7 ${ATTACK}`;
  await reach("input.tag");
  await page.keyboard.type("half a ta");
  const made = await identify(tag);
  found.origin = await identify(tag, ATTACK, "one", `https://shop.example/${ATTACK}`).catch((error) => error.message);
  await says(tag);
  found.arrived = await page.$eval("tbody tr", (row) => row.textContent);
  found.typed = await page.$eval("input.tag", (field) => field.value);
  for (let letter = 0; letter < found.typed.length; letter += 1) await page.keyboard.press("Backspace");

  await press(`a[href*="${made.request_id}"]`);
  await screen("Event");
  found.focus = await page.evaluate(() => document.activeElement.tagName);
  found.event = await text();
  await press("summary.report");
  found.report = await page.$eval("details[open] pre", (element) => element.textContent.includes("onerror"));

  await press("a.visitor", { back: true });
  await screen("Visitor");
  found.visitor = await text();

  await press("Weights");
  await screen("Weights");
  await reach('input[aria-label="Weight of headless"]');
  await page.keyboard.type("77");
  await press("Preview", { back: true });
  await page.waitForSelector(".preview");
  found.preview = await page.$eval(".preview", (element) => element.textContent);
  await press("Save", { back: true });
  await says("The weights are saved");
  await reach('input[aria-label="Weight of headless"]');
  await page.keyboard.type("-5");
  found.negative = await page.$eval('input[aria-label="Weight of headless"]', (field) => [field.value, field.validity.valid]);
  await press("Discard", { back: true });
  await says("No change yet.");
  found.saved = (await api(`management/organizations/${(await api("session")).body.organization.id}/risk-weights`)).body.platforms[0];

  // An attempt is in the log once it has ended.
  const log = `management/organizations/${(await api("session")).body.organization.id}/webhook-deliveries`;
  await page.waitForFunction(async (path) => (await (await fetch(`console/api/${path}`)).json()).deliveries.length > 0, { polling: 250 }, log);
  found.filtered = [];
  for (const [title, choice] of [["Audit", "Last 7"], ["Webhooks", "Shop"]]) {
    await press(title, { back: title === "Audit" });
    await screen(title);
    await reach(".filters select");
    await page.keyboard.type(choice);
    await page.waitForSelector(".clear");
    const address = page.url();
    await leave();
    await page.goto(address); // as somebody with whom the view was shared
    await screen(title);
    const shown = await page.$eval(".filters select", (select) => select.selectedOptions[0].textContent);
    found.filtered.push([address, shown, await page.$$eval("tbody tr", (all) => all.length)]);
  }

  await press("Webhooks");
  await screen("Webhooks");
  await press('button[aria-label^="Rotate secret of"]');
  await press("Rotate");
  await says("svc_whsec_");
  found.secret = await page.$eval("dialog .secret code", (element) => element.textContent);
  await press("Copy the secret", { back: true });
  await page.waitForFunction(() => document.querySelector("dialog .secret [role=status]").textContent !== "");
  found.copied = await page.$eval("dialog .secret [role=status]", (element) => element.textContent);
  await press("I have stored it");
  await page.waitForFunction(() => document.querySelector("dialog") === null);
  found.focusAfterDialog = await page.evaluate(() => document.activeElement.ariaLabel);
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog[open]");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector("dialog") === null);

  await press('button[aria-label^="Edit"]');
  await reach("[name=filter]");
  await page.keyboard.type("score >=");
  await press("Save");
  await says("filter: line 1");
  found.faulty = await page.$eval("dialog .problem", (element) => element.textContent);
  await reach("[name=filter]", { back: true });
  await page.keyboard.type(" 60");
  await press("Save");
  await says("The endpoint is saved.");
  await page.waitForFunction(() => document.querySelector("dialog") === null);
  await page.waitForFunction(() => [...document.querySelectorAll("dd code")].some((code) => code.textContent === "score >= 60"));
  found.endpoint = await page.$eval("main dl", (element) => element.innerText);
  const ticked = () => page.$$eval("[name=events]:checked", (boxes) => boxes.map((box) => box.value));
  await press("Add an endpoint", { back: true });
  await page.waitForSelector("dialog[open]");
  found.ticked = { json: await ticked() };
  for (const format of ["slack", "json", "teams"]) {
    await page.select("[name=format]", format);
    found.ticked[format] = await ticked();
  }
  await page.click("[name=events][value='review.closed']");
  await page.select("[name=format]", "json");
  found.ticked.own = await ticked();
  await press("Cancel");
  await page.waitForFunction(() => document.querySelector("dialog") === null);

  await reach("[name=wanted]", { back: true });
  await page.keyboard.type(made.request_id);
  await page.keyboard.press("Enter");
  await screen("Event");
  found.sought = page.url();

  await press("Visitors", { back: true });
  await screen("Visitors");
  await press(`a.visitor[title="${made.visitor_id}"]`);
  await screen("Visitor");
  await press("Erase visitor …");
  await page.waitForSelector("dialog[open]");
  await page.keyboard.type("nope");
  await page.keyboard.press("Enter");
  await says("to confirm.");
  found.kept = (await api(`visitors/${made.visitor_id}?${ENVIRONMENT}`)).status;
  await page.keyboard.down("Control");
  await page.keyboard.press("a");
  await page.keyboard.up("Control");
  await page.keyboard.type(made.visitor_id.slice(0, 4));
  await page.keyboard.press("Enter");
  await screen("Visitors");
  found.erased = (await api(`visitors/${made.visitor_id}?${ENVIRONMENT}`)).status;
  found.attacked = await page.evaluate(() => window.attacked ?? null);

  await reach("[name=wanted]", { back: true });
  await page.keyboard.type("account0of20letters0");
  await page.keyboard.press("Enter");
  await screen("Visitor");
  await press("Look for it as a tag");
  await screen("Visitors");
  found.asTag = page.url();
  found.direction = await page.$eval("strong.tag", (element) => getComputedStyle(element).unicodeBidi);

  const { key } = (await api("session")).body;
  execFileSync(revoke[0], [...revoke.slice(1), key.id]);
  await press("Events");
  await screen("Sign in to the console");
  found.reason = await page.$eval(".problem", (element) => element.textContent);
  await page.type("[name=key]", management);
  await page.keyboard.press("Enter");
  await screen("Events");
  found.afterwards = page.url();
  await page.setRequestInterception(true);
  const refuse = (request) => (request.url().endsWith("/console/session") ? request.respond({ status: 404 }) : request.continue());
  page.on("request", refuse);
  await page.reload();
  await screen("Sign in to the console");
  page.off("request", refuse);
  await page.setRequestInterception(false);
  await press("Try again");
  await screen("Events");
  await links(press);
  await press(".account summary", { back: true });
  await press("Sign out");
  await screen("Sign in to the console");
}

/** Opens links in a browser that is signed in: stays, tries a used one, stays, and uses one of another organization. */
async function links(press) {
  const asked = async () => ({
    text: await text(),
    focus: await page.evaluate(() => document.activeElement.textContent),
    address: page.url(),
    organization: (await api("session")).body.organization.name,
  });
  const stay = async () => {
    await page.keyboard.press("Enter");
    await screen("Live");
  };

  await page.goto(other);
  await screen("You are signed in already");
  found.asked = await asked();
  await stay();
  await page.goto(link);
  await screen("You are signed in already");
  await press("Use the link");
  await page.waitForSelector(".problem");
  found.useless = await asked();
  await stay();
  await leave();
  await page.goto(other);
  await screen("You are signed in already");
  found.askedOnArrival = await asked();
  const tab = await browser.newPage();
  await tab.goto(`${service}/console#/billing`);
  await tab.waitForSelector(".big");
  await page.bringToFront();
  await press("Use the link");
  await screen("Live");
  await tab.waitForFunction(() => document.querySelector(".notice.shown") !== null);
  found.otherTab = await tab.$eval("body", (body) => body.innerText);
  await tab.close();
  found.moved = (await api("session")).body.organization.name;
}

/** The code that an authenticator shows for a secret in base32, so many seconds from now (RFC 6238). */
function code(secret) {
  const bits = [...secret].map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0")).join("");
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => Number.parseInt(byte, 2)));
  const step = Buffer.alloc(8);
  step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const hash = createHmac("sha1", key).update(step).digest();
  const number = hash.readUInt32BE(hash.at(-1) & 15) & 0x7fffffff;
  return String(number % 1e6).padStart(6, "0");
}

/** What axe finds of the page, and whether it fits, in a wide and a narrow window, light and dark. */
async function looked(name) {
  found.screens ??= {};
  found.screens[name] = {};
  for (const [how, { width, height, scheme, rules }] of Object.entries(LOOKS)) {
    await page.setViewport({ width, height });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    found.screens[name][how] = { overflows: await overflows(page), axe: await findings(page, rules) };
  }
}

/** Accepts `invitation`, sets up codes, signs out, and signs in again as a member: by keyboard alone. */
async function member() {
  const { reach, press } = keyboard(page, (found.outlines = []));
  let password = "a horse that is correct";
  const write = async (field, text) => {
    await reach(`[name=${field}]`);
    await page.keyboard.type(text);
  };
  await page.goto(invitation);
  await screen("You are invited");
  found.address = page.url();
  await page.waitForSelector("[name=password]");
  found.invitation = await page.$eval("main", (element) => element.textContent);
  found.username = await page.$eval("[autocomplete=username]", (field) => [field.value, field.readOnly]);
  await looked("invitation");
  await write("password", password);
  await write("again", `${password}!`);
  await page.keyboard.press("Enter");
  found.different = await page.$eval("[name=again]", (field) => field.validationMessage);
  await page.keyboard.press("Backspace");
  await page.keyboard.press("Enter");
  await screen("Live");
  found.session = (await api("session")).body;
  await press(".account summary");
  await press("Set up one-time codes");
  await page.waitForSelector(".account [name=password]");
  await looked("proof");
  await write("password", password);
  await page.keyboard.press("Enter");
  await page.waitForSelector("[name=code]");
  await looked("codes");
  found.qr = await page.$eval(".account .qr", (drawing) => [drawing.getAttribute("role"), drawing.getBoundingClientRect().width, drawing.querySelectorAll("path[d^=M]").length]);
  const secret = (await page.$eval(".account .copyable code", (element) => element.textContent)).replaceAll(" ", "");
  await write("code", "000000");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".account .problem");
  found.wrongCode = await page.$eval(".account .problem", (element) => element.textContent);
  await reach("[name=code]", { back: true });
  for (let digit = 0; digit < 6; digit += 1) await page.keyboard.press("Backspace");
  await page.keyboard.type(code(secret));
  await page.keyboard.press("Enter");
  await page.waitForSelector(".account pre");
  await looked("recovery codes");
  const shown = async () => (await page.$eval(".account pre", (element) => element.textContent)).split("\n");
  found.replaced = await shown();
  await press("I have stored them");
  await press("New recovery codes");
  await page.waitForSelector(".account [name=password]");
  await write("password", password);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".account pre");
  const recovery = (found.recovery = await shown());
  await press("I have stored them");
  await page.waitForFunction(() => document.querySelector(".account").textContent.includes("You sign in with one-time codes. 10 recovery codes left."));
  await press("Change password");
  await page.waitForSelector("[name=new_password]");
  await looked("password");
  await write("password", password);
  await write("new_password", "qwerty123456");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".account .problem");
  found.common = await page.$eval(".account .problem", (element) => element.textContent);
  await reach("[name=new_password]", { back: true });
  for (let letter = 0; letter < 12; letter += 1) await page.keyboard.press("Backspace");
  password = "the second horse is correct";
  await page.keyboard.type(password);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => !document.querySelector("[name=new_password]"));
  await press("Sign out");
  await screen("Sign in to the console");
  await looked("sign in");
  await write("email", email);
  await write("password", password);
  await page.keyboard.press("Enter");
  await page.waitForSelector("form .problem");
  found.withoutCode = await page.$eval("form .problem", (element) => element.textContent);
  await page.waitForFunction(() => !document.querySelector("form button").disabled);
  await write("totp", recovery[0]);
  await page.keyboard.press("Enter");
  await screen("Live");
  found.again = (await api("session")).body;
  await page.goto(`${service}/console#openid=no_role`);
  await screen("Live");
  found.afterwards = page.url();
}

/** Screens by the name of their picture. */
async function screens(pictured) {
  const app = pictured ? undefined : await identifyApp(service, secret);
  const { rows } = (await api(`events?${ENVIRONMENT}&limit=50`)).body;
  const event = rows.find((row) => row.signals?.length > 1) ?? rows[0];
  const simple = ["live", "events", "visitors", "accounts", "reviews", "overview", "rules", "lists", "performance", "webhooks", "keys", "weights", "members", "settings", "audit", "billing"];
  return {
    ...Object.fromEntries(simple.map((name) => [name, name])),
    event: `events/${event.request_id}`,
    visitor: `visitors/${event.visitor_id}`,
    period: "audit?window=between&from=2026-01-01T00:00:00Z&to=2099-01-01T00:00:00Z",
    attempts: `webhooks?endpoint=${(await api(`management/organizations/${(await api("session")).body.organization.id}/webhooks`)).body.endpoints[0]?.id}`,
    search: `search?q=${event.visitor_id.slice(0, 3)}`,
    nothing: "events?country=ZZ",
    unknown: "nowhere",
    link: "",
    app: `events/${app?.request_id}`,
    ...pictured,
  };
}

/** Places of what the pictures show. */
async function pictures() {
  const { blocked, app, visitor, account } = await fill(service, secret, management);
  return { event: `events/${blocked}`, app: `events/${app}`, visitor: `visitors/${visitor}`, account: `accounts/${account}` };
}

async function look() {
  await signIn();
  found.screens = {};
  if (!shots) for (let visit = 0; visit < 2; visit += 1) for (const tag of ["anna@example.com", "order-1042"]) await identify(tag);
  const all = Object.entries(await screens(shots && (await pictures()))).filter(([name]) => !shots || shown.some((one) => one.startsWith(`${name}-`)));
  for (const [name, place] of all) {
    found.screens[name] = {};
    await leave();
    const fragment = place ? `/${place}${place.includes("?") ? "&" : "?"}${ENVIRONMENT}` : "svc_cl_none";
    await page.goto(`${service}/console#${fragment}`);
    await page.waitForSelector("h1");
    await page.waitForFunction(() => !document.body.textContent.includes("Loading …"));
    if (name === "overview") await page.waitForSelector(".chart svg");
    if (name === "live") await page.waitForSelector(".state.open");
    for (const [how, { width, height, scheme, rules }] of Object.entries(LOOKS)) {
      await page.setViewport({ width, height });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      if (shots) {
        if (name === "app") await page.evaluate(() => [...document.querySelectorAll("h2")].find((heading) => heading.textContent === "App").parentElement.parentElement.scrollIntoView());
        if (shown.includes(`${name}-${how}`)) await page.screenshot({ path: `${shots}/console-${name}-${how}.png` });
        continue;
      }
      const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      found.attacked ??= await page.evaluate(() => window.attacked);
      found.screens[name][how] = { overflows: await overflows(page), axe: await findings(page, rules), background };
    }
    if (shots) continue;
    found.screens[name].turned = await turned(page);
    await page.emulateMediaType("print");
    await page.setViewport({ width: 794, height: 1123 }); // A4
    found.screens[name].print = { overflows: await overflows(page), buttons: await page.$$eval("button", (all) => all.filter((one) => one.checkVisibility()).length) };
    await page.emulateMediaType("screen");
  }
}

try {
  await { walk, look, member }[mode]();
} catch (error) {
  const seen = await page
    .evaluate(() => `${location.href}\n${document.activeElement.outerHTML.slice(0, 300)}\n${document.body.innerText.slice(0, 3000)}`)
    .catch((why) => `the page cannot be read: ${why.message}`);
  console.error(`${JSON.stringify({ ...found, event: "", visitor: "" })}\n${seen}`);
  throw error;
}
await browser.close();
console.log(JSON.stringify(found));
