import { launch } from "./launch.mjs";
const [service, link, dir, width, scheme, ...screens] = process.argv.slice(2);
const browser = await launch();
const page = await browser.newPage();
await page.setViewport({ width: Number(width), height: 900 });
await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
await page.goto(link, { waitUntil: "load" });
await new Promise((r) => setTimeout(r, 1500));
for (const screen of screens) {
  if (screen.startsWith("click:")) { await page.evaluate((s) => document.querySelector(s)?.click(), screen.slice(6)); }
  else await page.evaluate((s) => { location.hash = s; }, screen);
  await new Promise((r) => setTimeout(r, 1800));
  await page.screenshot({ path: `${dir}/${screen.replace(/[^a-z0-9]+/gi, "_").slice(0, 40)}-${width}-${scheme}.png`, fullPage: false });
}
console.log(await page.evaluate(() => [...document.querySelectorAll("nav a")].map((a) => a.getAttribute("href")).join(" ")));
await browser.close();
