/**
 * Uses the API reference of a running service as a person does, with development keys, and prints JSON: what was answered
 * when management operations were tried, the code samples of every operation, and what axe finds on opened operations.
 *
 *     SVC_MANAGEMENT_KEY=... SVC_PUBLIC_KEY=... node reference.mjs http://127.0.0.1:8080
 */
import { launch } from "./launch.mjs";
import { findings, overflows, watch } from "./watch.mjs";

const [service] = process.argv.slice(2);
const { SVC_MANAGEMENT_KEY, SVC_PUBLIC_KEY } = process.env;
const browser = await launch();

/** `signedOut` is what is done before a key is entered. */
async function opened(signedOut = async () => {}) {
  const page = await browser.newPage();
  const found = await watch(page, service);
  await page.setViewport({ width: 1200, height: 900 });
  await page.goto(`${service}/docs/api`, { waitUntil: "networkidle0" });
  await page.waitForSelector(".opblock"); // on a busy machine the network rests before the page is drawn
  await settled(page);
  await signedOut(page);
  await page.focus("#management");
  await page.keyboard.type(SVC_MANAGEMENT_KEY);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.getElementById("signed").textContent.includes("Signed in"));
  await page.waitForSelector(".opblock");
  return { page, found };
}

const show = (page, tag, operation, isOpen = true) =>
  page.evaluate((where, open) => window.reference.layoutActions.show(where, open), ["operations", tag, operation], isOpen);
const block = (operation) => `.opblock[id$="-${operation}"]`;

/** Until nothing has changed for a moment: the renderer resolves an operation after it has opened it. */
const settled = (page) =>
  page.evaluate(() => new Promise((done) => {
    let waiting = setTimeout(done, 400);
    new MutationObserver(() => {
      clearTimeout(waiting);
      waiting = setTimeout(done, 400);
    }).observe(document.body, { attributes: true, childList: true, subtree: true });
  }));

/** Until it is drawn and no color changes any more: buttons take a moment for theirs. */
const drawn = (page) =>
  page.evaluate(async () => {
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    await Promise.allSettled(document.getAnimations().map(({ finished }) => finished));
  });

async function tried(page, tag, operation) {
  await show(page, tag, operation);
  await page.waitForFunction(
    (within) => {
      const inputs = [...document.querySelectorAll(`${within} tr[data-param-in=path] input`)];
      return document.querySelector(`${within} .execute`) && inputs.every(({ value }) => value);
    },
    { polling: 50 },
    block(operation),
  );
  const answered = `${block(operation)} .live-responses-table .response-col_status`;
  await settled(page);
  await page.$eval(`${block(operation)} .execute`, (button) => button.click());
  await page.waitForSelector(answered, { timeout: 15_000 });
  return page.$eval(`${block(operation)} .live-responses-table tbody .response-col_status`, (cell) => cell.textContent);
}

const looks = {};
const { page, found } = await opened(async (before) => {
  looks["signed out"] = await looked(before);
});
Object.assign(found, { looks, tried: {} });
const TRIED = [["Management: keys", "listSdkKeys"], ["Management: keys", "issueProxyKey"]];
for (const [tag, operation] of TRIED) {
  found.tried[operation] = await tried(page, tag, operation);
}
await settled(page);
looks.tried = await looked(page);
await page.focus("#find");
await page.keyboard.type("rotate secret");
found.found = await page.$$eval("#index li:not([hidden]) a", (links) => links.map((link) => link.hash.split("/").pop()));
await page.keyboard.press("Tab");
await page.keyboard.press("Enter");
await page.waitForFunction(() => document.activeElement.closest(".opblock"));
found.focused = await page.evaluate(() => document.activeElement.closest(".opblock").id);

found.samples = await page.evaluate(() => {
  const spec = window.reference.specSelectors.specJson().toJS();
  const samples = {};
  for (const [path, methods] of Object.entries(spec.paths)) {
    for (const [method, { operationId }] of Object.entries(methods)) samples[operationId] = window.samplesOf(path, method);
  }
  return samples;
});
found.shown = {};
for (const language of ["curl", "JavaScript", "Python"]) {
  const samples = `${block("listSdkKeys")} .samples`;
  for (const button of await page.$$(`${samples} [aria-pressed]`)) {
    if ((await button.evaluate((one) => one.textContent)) === language) await button.press("Enter");
  }
  found.shown[language] = await (await page.waitForSelector(`${samples} pre[data-language="${language}"]`)).evaluate((pre) => pre.textContent);
}

await page.evaluate((key) => window.reference.preauthorizeApiKey("publicKey", key), SVC_PUBLIC_KEY);
// A shown sample is the one that `samplesOf` gives, as above: to open an operation takes seconds.
found.withKey = await page.evaluate(() => window.samplesOf("/identify", "post").curl);
found.webhooks = await page.$$eval(".webhooks .opblock-summary-path", (paths) => paths.map((path) => path.textContent.replaceAll("\u200b", "")));

async function looked(page, rules) {
  const unseen = await page.$$eval(".opblock", (blocks) => blocks.filter((one) => one.getClientRects().length === 0).map(({ id }) => id));
  const clipped = await page.evaluate(() => {
    const blocks = document.querySelectorAll(".opblock");
    return blocks[blocks.length - 1].getBoundingClientRect().bottom > document.documentElement.getBoundingClientRect().bottom;
  });
  // What is in a sample scrolls with it.
  const beyond = await page.$$eval("main *", (all) =>
    all.filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest("pre *")).map(({ className }) => className),
  );
  const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).map(Number));
  return { axe: await findings(page, rules), overflows: await overflows(page), unseen, clipped, beyond, background };
}

for (const [tag, operation] of [...TRIED, ["Management: webhooks", "rotateWebhookSecret"]]) await show(page, tag, operation, false);
await show(page, "Management: keys", "issueSdkKey");
await show(page, "webhooks", "visitor.suspect");
await page.waitForSelector(`${block("issueSdkKey")} .samples`);
await page.$eval("#find", (find) => {
  find.value = "";
  find.dispatchEvent(new Event("input", { bubbles: true }));
});
const OF_THE_WIDTH = ["target-size", "scrollable-region-focusable", "meta-viewport"];
const LOOKS = { light: {}, dark: { scheme: "dark", rules: ["color-contrast"] }, phone: { width: 390, rules: OF_THE_WIDTH } };
for (const [name, { scheme = "light", width = 1200, rules }] of Object.entries(LOOKS)) {
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await settled(page);
  await drawn(page);
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/reference-${name}.png`, fullPage: true });
  looks[name] = await looked(page, rules);
}
await browser.close();
console.log(JSON.stringify(found));
