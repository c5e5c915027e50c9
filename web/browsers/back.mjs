/**
 * Sends the form of a page, comes back by the browser's button, and sends it again where no identification is to be had.
 * node back.mjs URL. Prints {"kept": whether the browser had kept the page as it was left, "sent": the request ids that were sent}.
 */
import { launch } from "./launch.mjs";

const [url] = process.argv.slice(2);

const browser = await launch({
  args: [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--enable-bfcache",
    "--enable-features=BackForwardCache:enable_same_site/true,BackForwardCacheMemoryControls",
  ],
});
try {
  const page = await browser.newPage();
  const sent = [];
  page.on("request", (request) => {
    if (request.method() === "POST" && request.isNavigationRequest())
      sent.push(new URLSearchParams(request.postData()).get("request_id"));
  });
  await page.goto(url, { waitUntil: "networkidle0" });
  await page.evaluate(() => {
    window.isKept = true;
  });
  for (const field of await page.$$("input:not([type=hidden])")) {
    await field.type((await field.evaluate((input) => input.type)) === "email" ? "ada@shop.example" : "correct horse");
  }
  const send = () => Promise.all([page.waitForNavigation(), page.click("button")]);
  await send();
  await page.goBack();
  const kept = await page.evaluate(() => window.isKept === true);
  await page.evaluate(() => {
    window.fetch = () => Promise.reject(new TypeError("blocked"));
  });
  await send();
  console.log(JSON.stringify({ kept, sent }));
} finally {
  await browser.close();
}
