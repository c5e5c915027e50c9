/**
 * Sends the form of a page, comes back by the browser's button, and sends it again where no identification is to be had.
 * node back.mjs URL. Prints {"kept": whether the browser had kept the page as it was left, "sent": the request ids that were sent,
 * "tags": those of the form, each time}.
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
  await page.evaluateOnNewDocument(() => {
    addEventListener("pageshow", ({ persisted }) => {
      if (persisted) sessionStorage.isKept = "yes";
    });
  });
  const tags = [];
  const send = async () => {
    tags.push(await page.$eval("form", (form) => form.dataset.tag));
    await page.$eval("[type=email]", (field) => {
      field.value = "ada@shop.example";
    });
    await Promise.all([page.waitForNavigation(), page.click("button")]);
  };
  await page.goto(url, { waitUntil: "networkidle0" });
  await send();
  await page.goBack();
  await page.waitForNetworkIdle(); // a page may load itself again
  const kept = await page.evaluate(() => sessionStorage.isKept === "yes");
  await page.evaluate(() => {
    window.fetch = () => Promise.reject(new TypeError("blocked"));
  });
  await send();
  console.log(JSON.stringify({ kept, sent, tags }));
} finally {
  await browser.close();
}
