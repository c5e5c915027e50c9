/**
 * Opens each screen of the console of a running service so many times, and prints as JSON how long each took.
 *
 *     node paint.mjs '{"service", "link", "rounds", "screens": {"name": "#/fragment"}}'
 *
 * `load`: from the navigation to the first paint, of the page that is reloaded. `opened`: from the change of the fragment to the
 * frame in which the screen is whole and nothing is loading any more, as people go from screen to screen. `server`: of that, until the last
 * response of the service was there. `requests`: how many.
 */
import { launch } from "./launch.mjs";

const { service, link, rounds, screens } = JSON.parse(process.argv[2]);
const browser = await launch();
const page = await browser.newPage();
await page.setViewport({ width: 1280, height: 1000 });
const settled = () => !document.querySelector("[aria-busy=true]") && !document.body.textContent.includes("Loading …") && document.querySelector("main h1") !== null;
await page.goto(link);
await page.waitForFunction(settled);

const opened = (fragment) => page.evaluate(async (to) => {
  performance.clearResourceTimings();
  const began = performance.now();
  location.hash = to;
  await new Promise((done) => {
    const isWhole = () => !document.querySelector("[aria-busy=true]") && !document.body.textContent.includes("Loading …");
    const look = () => (isWhole() ? requestAnimationFrame(() => (isWhole() ? done() : look())) : requestAnimationFrame(look));
    addEventListener("hashchange", () => requestAnimationFrame(look), { once: true });
  });
  const took = performance.now() - began;
  const asked = performance.getEntriesByType("resource").filter(({ name }) => name.includes("/console/api/") && !name.includes("/stream"));
  return { took, server: Math.max(0, ...asked.map(({ responseEnd }) => responseEnd - began)), requests: asked.length };
}, fragment);

const found = {};
for (const [name, fragment] of Object.entries(screens)) {
  const rows = [], paints = [];
  await opened(fragment);
  for (let round = 0; round < rounds; round += 1) {
    await opened("#/keys");
    rows.push(await opened(fragment));
  }
  for (let round = 0; round < rounds; round += 1) {
    await page.goto(`${service}/livez`);
    await page.goto(`${service}/console${fragment}`);
    await page.waitForFunction(settled);
    paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null));
  }
  found[name] = { opened: rows.map(({ took }) => took), server: rows.map(({ server }) => server), requests: rows[0].requests, load: paints };
}
console.log(JSON.stringify(found));
await browser.close();
