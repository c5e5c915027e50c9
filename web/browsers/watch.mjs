/** What a careful person would look for on a page: what goes wrong while it is open, and what axe finds on it. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Notes violations of the policy, errors of the console, failed requests and requests to other hosts, from now on. */
export async function watch(page, service) {
  const found = { violations: [], console: [], failed: [], outside: [] };
  await page.exposeFunction("noteViolation", (directive) => found.violations.push(directive));
  await page.evaluateOnNewDocument(() =>
    document.addEventListener("securitypolicyviolation", (event) => window.noteViolation(event.violatedDirective)));
  page.on("console", (message) => ["error", "warn"].includes(message.type()) && found.console.push(message.text()));
  page.on("pageerror", (error) => found.console.push(error.message));
  page.on("response", (response) => response.status() >= 400 && found.failed.push(`${response.status()} ${response.url()}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(`${service}/`) && !request.url().startsWith("data:")) found.outside.push(request.url());
  });
  return found;
}

/** Elements that reach beyond the right edge of the window, where the page scrolls sideways. */
export async function overflows(page) {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const wide = [...document.querySelectorAll("body *")].filter((element) => element.getBoundingClientRect().right > width);
    return wide.map((element) => `${element.tagName.toLowerCase()}.${element.className}`).slice(0, 10);
  });
}

/** Texts that a right-to-left override in another one turns around: each paragraph that has more than the text with it. */
export async function turned(page) {
  return page.evaluate(() => {
    const isApart = (element) => {
      const { unicodeBidi, display } = getComputedStyle(element);
      return unicodeBidi.includes("isolate") || display !== "inline";
    };
    const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    const found = [];
    while (texts.nextNode()) {
      const { data, parentElement } = texts.currentNode;
      if (!data.replace(/\u2068[^\u2069]*\u2069/g, "").includes("\u202e") || parentElement.closest("option, textarea")) continue;
      let around = parentElement;
      while (!isApart(around)) around = around.parentElement;
      if (around.textContent.trim() !== data.trim()) found.push(around.textContent);
    }
    return found;
  });
}

/** What axe finds: by all of its rules, or by `rules` alone. */
export async function findings(page, rules) {
  // Through the debugger, which the page's policy does not concern.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
  // What is half faded in has another contrast.
  await page.evaluate(() => Promise.all(document.getAnimations().map((one) => one.effect?.getComputedTiming().endTime === Infinity || one.finished.catch(() => undefined))));
  const options = { resultTypes: ["violations"], ...(rules && { runOnly: rules }) };
  const results = await page.evaluate((how) => window.axe.run(document, how), options);
  return results.violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.map(({ target }) => target.join(" ")) }));
}
