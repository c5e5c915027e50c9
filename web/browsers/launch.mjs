/** A headless Chromium that needs no installation, with arguments of our own: the package's turn web security off. */
import { renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import puppeteer from "puppeteer-core";

// Before the import: the package then unpacks the system libraries that a bare machine lacks.
process.env.AWS_LAMBDA_JS_RUNTIME = "nodejs22.x";
const { default: chromium } = await import("@sparticuz/chromium");

// The package's own fonts.conf names /tmp, wherever it unpacks its fonts. Without any font the browser ends at the first text.
const fonts = join(tmpdir(), "fontconfig.xml");
writeFileSync(`${fonts}.${process.pid}`, `<fontconfig><dir>${join(tmpdir(), "fonts")}</dir><cachedir>${join(tmpdir(), "fontcache")}</cachedir></fontconfig>\n`);
renameSync(`${fonts}.${process.pid}`, fonts); // whole at any moment, for others that are started meanwhile
process.env.FONTCONFIG_FILE = fonts;

/** `webgl`: as in a visitor's browser. It then draws everything by OpenGL, which is emulated and takes long. */
export async function launch({ webgl = false, ...options } = {}) {
  const start = async () => puppeteer.launch({
    executablePath: await chromium.executablePath(),
    headless: "shell",
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--renderer-process-limit=1", ...(webgl ? ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"] : ["--disable-gpu"])],
    ...options,
  });
  try {
    return await start();
  } catch (error) {
    // Seen once in some hundred starts on a busy machine: it dies at once, by a signal, and says nothing.
    console.warn(`The browser did not start, trying once more: ${error.message.split("\n")[0]}`);
    return start();
  }
}
