/**
 * Opens pages of a running service and prints what a careful person would look for, as JSON by page:
 * violations of the content security policy, errors of the console, failed requests, findings of axe, and what overflows.
 *
 *     node look.mjs http://127.0.0.1:8080 [--shots DIR] /try /docs ...
 */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { launch } from "./launch.mjs";

const [service, ...rest] = process.argv.slice(2);
const shots = rest[0] === "--shots" ? rest.splice(0, 2)[1] : undefined;
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const LOOKS = {
  light: { width: 1000, height: 1000, scheme: "light" },
  dark: { width: 1000, height: 1000, scheme: "dark" },
  phone: { width: 390, height: 844, scheme: "light" },
};

async function look(browser, path, { width, height, scheme }, shot) {
  const page = await browser.newPage();
  const found = { violations: [], console: [], failed: [] };
  await page.exposeFunction("noteViolation", (directive) => found.violations.push(directive));
  await page.evaluateOnNewDocument(() =>
    document.addEventListener("securitypolicyviolation", (event) => window.noteViolation(event.violatedDirective)));
  page.on("console", (message) => message.type() === "error" && found.console.push(message.text()));
  page.on("pageerror", (error) => found.console.push(error.message));
  page.on("response", (response) => response.status() >= 400 && found.failed.push(`${response.status()} ${response.url()}`));
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  if (path === "/try") await page.goto(service + path, { waitUntil: "networkidle0" }); // so that it has something to remember
  await page.goto(service + path, { waitUntil: "networkidle0" });
  if (shot !== undefined) await page.screenshot({ path: shot });
  found.overflows = await page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const wide = [...document.querySelectorAll("body *")].filter((element) => element.getBoundingClientRect().right > width);
    return wide.map((element) => `${element.tagName.toLowerCase()}.${element.className}`).slice(0, 10);
  });
  // Through the debugger, which the page's policy does not concern.
  await page.evaluate(axe);
  const results = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  found.axe = results.violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.map(({ target }) => target.join(" ")) }));
  await page.close();
  return found;
}

const browser = await launch();
const pages = {};
for (const path of rest) {
  pages[path] = {};
  for (const [name, how] of Object.entries(LOOKS)) {
    const shot = shots && `${shots}/${path.slice(1) || "home"}-${name}.png`;
    pages[path][name] = await look(browser, path, how, shot);
  }
}
await browser.close();
console.log(JSON.stringify(pages, null, 2));
