/** Unpacks the browser into TMPDIR, and opens it once. */
import { launch } from "./launch.mjs";

const browser = await launch();
console.log(await browser.version());
await browser.close();
