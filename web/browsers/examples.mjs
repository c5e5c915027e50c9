/**
 * Uses the page of an example as a person would: fills in the form, presses its button, and waits for a request id.
 * node examples.mjs URL [hangs]. `hangs`: the page's service never responds, so that the page is never loaded in full.
 * Prints {"shown": text of the page, "problems": what its console and its scripts complained of}, and
 * {"stored": [before, after]} where a second button forgets the browser: how many cookies, entries and databases there were.
 */
import { launch } from "./launch.mjs";

const [url, hangs] = process.argv.slice(2);
const SHOWN = "code, [role=status], [role=alert]";

const browser = await launch();
try {
  const page = await browser.newPage();
  const problems = [];
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  const opened = page.goto(url, { waitUntil: "networkidle0", timeout: 0 });
  if (hangs) opened.catch(() => undefined); // it ends with the browser
  else await opened;
  await page.waitForSelector(`form, ${SHOWN}`);
  for (const field of await page.$$("input:not([type=hidden])")) {
    await field.type((await field.evaluate((input) => input.type)) === "email" ? "ada@shop.example" : "correct horse");
  }
  const button = await page.$("button");
  if (button) await button.click();
  await page.waitForSelector(SHOWN, { timeout: 60_000 });
  const shown = await page.$$eval(SHOWN, (found) => found.map((one) => one.textContent));
  const [, forget] = await page.$$("button");
  const kept = () =>
    page.evaluate(async () => {
      const cookies = document.cookie ? document.cookie.split("; ").length : 0;
      return cookies + localStorage.length + (await indexedDB.databases()).length;
    });
  const stored = forget && [await kept()];
  if (forget) {
    await forget.click();
    await page.waitForFunction((selector) => document.querySelector(selector) === null, {}, SHOWN);
    stored.push(await kept());
  }
  console.log(JSON.stringify({ shown, problems, stored }));
} finally {
  await browser.close();
}
