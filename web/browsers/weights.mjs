/**
 * Asks the console of a running service which weights the labels suggest, and takes them, by keyboard alone; prints what happened as JSON.
 *
 *     node weights.mjs '{"service", "link", "signal"}'
 *
 * The suggestion is tried in the editor, previewed, saved and restored. After each step, what the field of `signal` shows and
 * which weight the service has for it.
 */
import { keyboard } from "./keyboard.mjs";
import { launch } from "./launch.mjs";
import { findings, overflows, watch } from "./watch.mjs";

const { service, link, signal } = JSON.parse(process.argv[2]);
const browser = await launch();
const page = await browser.newPage();
const found = await watch(page, service);
const { press } = keyboard(page, (found.outlines = []));

const says = (text) => page.waitForFunction((wanted) => document.body.innerText.includes(wanted), {}, text);
const field = `[aria-label="Weight of ${signal}"]`;
const asked = [];
page.on("request", (request) => request.method() === "GET" && request.url().endsWith("/risk-weights") && asked.push(request.url()));

async function state() {
  const weight = await page.evaluate(async (url, name) => {
    const { platforms } = await (await fetch(url)).json();
    return platforms.find(({ platform }) => platform === "web").weights[name];
  }, asked[0], signal);
  return { field: await page.$eval(field, ({ value }) => value), weight };
}

try {
  await page.goto(link);
  await page.waitForFunction(() => document.querySelector("h1")?.textContent === "Live");
  await press("Weights", { back: true });
  await page.waitForSelector(field);
  await press("Suggest weights");
  await says("Fitted to");
  found.suggestion = await page.$eval("main", ({ innerText }) => innerText);
  found.rows = await page.$$eval("table", (tables) => {
    const suggested = tables.find((table) => table.textContent.includes("Labeled events"));
    return [...suggested.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.innerText.trim()));
  });
  found.overflows = await overflows(page);
  found.axe = await findings(page);
  await press("Try these");
  await says("The suggested weights are in the editor.");
  found.tried = await state();
  await press("Preview", { back: true });
  await page.waitForSelector(".preview");
  found.preview = await page.$eval(".preview", ({ innerText }) => innerText);
  await press("Save", { back: true });
  await says("The weights are saved");
  await says("Revision 1");
  found.saved = await state();
  await press("Restore …", { back: true });
  await page.waitForSelector("dialog[open]");
  await press("Restore");
  await says("Restored.");
  await says("Not customized");
  found.restored = await state();
} catch (error) {
  console.error(JSON.stringify(found), await page.evaluate(() => `${location.href}\n${document.activeElement.outerHTML.slice(0, 300)}\n${document.body.innerText.slice(0, 3000)}`));
  throw error;
}
await browser.close();
console.log(JSON.stringify(found));
