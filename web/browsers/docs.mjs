/** Reads the documentation site of a service as a person does: searches by keyboard, follows a link, looks at a diagram. Prints JSON. */
import { launch } from "./launch.mjs";
import { watch } from "./watch.mjs";

const [service, diagram] = process.argv.slice(2);
const browser = await launch();
const page = await browser.newPage();
await page.setViewport({ width: 1200, height: 900 });
const found = await watch(page, service);

async function search(words) {
  await page.goto(`${service}/docs/`, { waitUntil: "networkidle0" });
  await page.focus("input[name=q]");
  await page.keyboard.type(words);
  await Promise.all([page.waitForNavigation({ waitUntil: "networkidle0" }), page.keyboard.press("Enter")]);
  await page.waitForFunction(() => /found|did not match/.test(document.querySelector("#search-results .search-summary")?.textContent ?? ""));
  return page.$$eval("#search-results ul.search li > a", (links) => links.map((link) => link.getAttribute("href")));
}

/** The fill of the diagram's text, once it is drawn in the given theme. */
async function drawn(scheme) {
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(service + diagram, { waitUntil: "networkidle0" });
  await page.waitForSelector(".diagram svg");
  return page.$eval(".diagram svg .nodeLabel", (label) => getComputedStyle(label).color);
}

found.results = await search("webhook secret");
found.status = await search("401");
found.nothing = await search("zqxjk");
found.light = await drawn("light");
found.dark = await drawn("dark");
found.name = await page.$eval(".diagram svg", (svg) => svg.getAttribute("aria-label"));
await page.goto(`${service}/docs/quickstart.html`, { waitUntil: "networkidle0" });
await Promise.all([page.waitForNavigation(), page.$eval('article a[href*="examples"]', (link) => link.click())]);
found.followed = page.url();
await browser.close();
console.log(JSON.stringify(found));
