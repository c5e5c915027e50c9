/**
 * Opens pages of a running service and prints what a careful person would look for, as JSON by page:
 * violations of the content security policy, errors of the console, failed requests, findings of axe, what overflows, and controls
 * whose focus nobody sees.
 *
 *     node look.mjs http://127.0.0.1:8080 [--shots DIR] /try /docs ...
 */
import { unseen } from "./keyboard.mjs";
import { launch } from "./launch.mjs";
import { findings, overflows, watch } from "./watch.mjs";

const [service, ...rest] = process.argv.slice(2);
const shots = rest[0] === "--shots" ? rest.splice(0, 2)[1] : undefined;
const LOOKS = {
  light: { width: 1000, height: 1000, scheme: "light" },
  dark: { width: 1000, height: 1000, scheme: "dark", rules: ["color-contrast"] },
  phone: { width: 390, height: 844, scheme: "light" },
};

async function look(browser, path, { width, height, scheme, rules }, shot) {
  const page = await browser.newPage();
  const found = await watch(page, service);
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  if (path === "/try") await page.goto(service + path, { waitUntil: "networkidle0" }); // so that it has something to remember
  await page.goto(service + path, { waitUntil: "networkidle0" });
  if (shot !== undefined) await page.screenshot({ path: shot });
  found.overflows = await overflows(page);
  found.axe = await findings(page, rules);
  found.unseen = await unseen(page);
  await page.close();
  return found;
}

const browser = await launch();
const pages = {};
for (const path of rest) {
  pages[path] = {};
  for (const [name, how] of Object.entries(LOOKS)) {
    const shot = shots && `${shots}/${path.slice(1).replaceAll("/", "-") || "home"}-${name}.png`;
    pages[path][name] = await look(browser, path, how, shot);
  }
}
await browser.close();
console.log(JSON.stringify(pages, null, 2));
