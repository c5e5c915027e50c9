/** A headless Chromium that needs no installation, with arguments of our own: the package's turn web security off. */
import puppeteer from "puppeteer-core";

// Before the import: the package then unpacks the system libraries that a bare machine lacks.
process.env.AWS_LAMBDA_JS_RUNTIME = "nodejs22.x";
const { default: chromium } = await import("@sparticuz/chromium");

export async function launch(options = {}) {
  return puppeteer.launch({
    executablePath: await chromium.executablePath(),
    headless: "shell",
    args: ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-dev-shm-usage"],
    ...options,
  });
}
