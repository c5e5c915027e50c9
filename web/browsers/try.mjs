/**
 * Walks the page /try by keyboard alone, as a person would, and prints what happened as JSON.
 *
 *     node try.mjs http://127.0.0.1:8080
 */
import { keyboard } from "./keyboard.mjs";
import { launch } from "./launch.mjs";

const [service] = process.argv.slice(2);
const browser = await launch();
const page = await browser.newPage();
const found = {};

const opened = () => page.goto(`${service}/try`, { waitUntil: "networkidle0" });
const id = () => page.$eval(".id", (element) => element.textContent);
const text = () => page.$eval("main", (element) => element.textContent);
const { press, reach } = keyboard(page, (found.outlines = []));

await opened();
found.first = await id();
found.unproven = await text();
await opened();
found.reloaded = await id();
found.visits = (await page.$$(".strip li")).length;
const incognito = await browser.createBrowserContext();
const other = await incognito.newPage();
await other.goto(`${service}/try`, { waitUntil: "networkidle0" });
found.private = await other.$eval(".id", (element) => element.textContent);
await incognito.close();
await reach("[name=account]");
await page.keyboard.type("user-1");
await reach("[name=action]");
await page.keyboard.type("log_in");
await page.keyboard.press("Enter");
await page.waitForFunction(() => document.querySelector(".counts").textContent.includes("Account user-1"));
found.counted = await page.$$eval(".counts tbody tr", (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
found.snippet = await page.$eval("main pre", (element) => element.textContent);
await reach("[name=account]", { back: true });
await page.keyboard.type("\u0085");
await page.keyboard.press("Enter");
found.refused = await (await page.waitForSelector("[role=alert]")).evaluate((element) => element.textContent);
found.kept = await page.$eval("[name=account]", (element) => element.value);
await press("Clear the storage");
await page.waitForFunction(() => document.body.textContent.includes("Storage is cleared"));
found.stored = await page.evaluate(() => [document.cookie, localStorage.length]);
await opened();
found.cleared = await id();
found.uncertain = await text();
found.hidden = (await page.$$(".strip li")).length;
await press("The report, as it was sent");
found.report = await page.$eval("details pre", (element) => Object.keys(JSON.parse(element.textContent)));
await opened();
await press("Forget me");
await page.waitForFunction(() => document.activeElement?.textContent === "Erase everything");
await page.keyboard.press("Enter");
await page.waitForFunction(() => document.body.textContent.includes("Forgotten"));
found.forgotten = await text();
await opened();
found.after = await id();
await browser.close();
console.log(JSON.stringify(found));
