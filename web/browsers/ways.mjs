/**
 * Ways through the console of a running service: back into a long list, to another environment, on from a search; and the longest
 * texts, a key that is held down, the colors of a system and paper. Prints what was seen as JSON.
 *
 *     node ways.mjs '{"service", "link", "long": {"request_id", "visitor_id"}, "elsewhere": request id of another environment}'
 */
import { keyboard } from "./keyboard.mjs";
import { launch } from "./launch.mjs";
import { overflows, watch } from "./watch.mjs";

const { service, link, long, elsewhere } = JSON.parse(process.argv[2]);
const E = "environment=development";
const browser = await launch();
const page = await browser.newPage();
const found = await watch(page, service);
const { press } = keyboard(page, (found.outlines = []));

/** Waits until the heading is this, and what the screen shows is loaded. */
const screen = (title) => page.waitForFunction(
  (wanted) => document.querySelector("h1")?.textContent === wanted && !document.querySelector("[aria-busy=true]") && !document.body.textContent.includes("Loading …"),
  {},
  title,
);
async function go(hash, title) {
  await page.evaluate((to) => { location.hash = to; }, hash);
  await screen(title);
}
const rows = (number) => page.waitForFunction((wanted) => document.querySelectorAll("tr.event").length === wanted, {}, number);
const links = () => page.$$eval("main a[href^='#/']", (all) => all.map((one) => one.getAttribute("href")));

/** From a row of the second page to its event, and back. */
async function back() {
  await go(`#/events?${E}`, "Events");
  await rows(50);
  await press("Show older");
  await rows(60);
  const followed = await page.evaluateHandle(() => document.querySelectorAll("tr.event time")[55].closest("a"));
  await followed.evaluate((one) => { one.scrollIntoView({ block: "center" }); one.focus(); });
  const where = () => page.evaluate(() => [scrollY, document.activeElement.getAttribute("href")]);
  found.left = await where();
  await page.keyboard.press("Enter");
  await screen("Event");
  found.top = await page.evaluate(() => scrollY);
  await page.goBack();
  await screen("Events");
  await page.waitForFunction(() => document.activeElement.tagName === "A", { timeout: 4000 }).catch(() => undefined);
  found.returned = await where();
  await go(`#/overview?${E}`, "Overview");
  await go(`#/events?${E}`, "Events");
  await rows(50);
  found.anew = await page.evaluate(() => scrollY);
}

async function fits() {
  Object.assign(found, { overflows: {}, heads: [] });
  for (const width of [1280, 390]) {
    await page.setViewport({ width, height: 900 });
    for (const [hash, title] of [[`#/events/${long.request_id}`, "Event"], [`#/visitors/${long.visitor_id}?${E}`, "Visitor"], [`#/overview?${E}`, "Overview"], [`#/rules?${E}`, "Rules"], [`#/reviews?${E}`, "Reviews"]]) {
      await go(hash, title);
      found.overflows[`${title} ${width}`] = await overflows(page);
      if (title === "Event") found.heads.push(await page.$$eval(".counts thead th", (all) => all.map((one) => one.innerText)));
    }
  }
  await page.setViewport({ width: 1280, height: 900 });
}

/** Whether the bar of a score differs from its background. */
async function colors() {
  const client = await page.createCDPSession();
  await go(`#/events/${long.request_id}`, "Event");
  const shown = () => page.$eval(".segment", (one) => [getComputedStyle(one).backgroundColor, getComputedStyle(one.parentElement).backgroundColor]);
  await client.send("Emulation.setEmulatedMedia", { features: [{ name: "forced-colors", value: "active" }] });
  found.forced = await shown();
  await client.send("Emulation.setEmulatedMedia", { features: [] });
  found.paper = await page.$eval(".segment", (one) => getComputedStyle(one).printColorAdjust ?? getComputedStyle(one).webkitPrintColorAdjust);
}

/** A key that is held down on what asks first. */
async function held() {
  await go(`#/members?${E}`, "Members");
  await page.focus("tbody button.danger");
  for (let repeat = 0; repeat < 7; repeat += 1) {
    await page.keyboard.down("Enter");
    await page.waitForNetworkIdle({ idleTime: 50 });
  }
  await page.keyboard.up("Enter");
  await page.waitForSelector("dialog[open]");
  found.members = await page.$$eval("tbody tr", (all) => all.length);
  found.dialog = await page.$eval("dialog[open]", (dialog) => [dialog.scrollWidth - dialog.clientWidth, document.activeElement.textContent]);
  await page.keyboard.press("Escape");
}

await page.goto(link);
await screen("Live");
await back();
await go(`#/events/${elsewhere}?${E}`, "Event");
found.elsewhere = await links();
await go(`#/search?${E}&q=user-`, "Search");
found.search = await links();
await go(`#/search?${E}&q=nobody`, "Search");
found.nothing = await links();
await fits();
await held();
await colors();
await browser.close();
console.log(JSON.stringify(found));
