/** What neither library asks, in the page itself. Each probe answers or throws; a missing answer is left out. */

interface Brand {
  brand: string;
  version: string;
}

interface UserAgentData {
  brands: Brand[];
  mobile: boolean;
  platform: string;
  getHighEntropyValues(names: string[]): Promise<Record<string, unknown>>;
}

const HIGH_ENTROPY = ["architecture", "bitness", "formFactors", "fullVersionList", "model", "platformVersion", "wow64"];

/** User-Agent Client Hints with versions and the brand that the browser invents; only Chromium has them. */
export async function clientHints(): Promise<Record<string, unknown> | undefined> {
  const data = (navigator as Navigator & { userAgentData?: UserAgentData }).userAgentData;
  if (!data) return undefined;
  const low = { brands: data.brands, mobile: data.mobile, platform: data.platform };
  const high = await data.getHighEntropyValues(HIGH_ENTROPY).catch(() => ({}));
  return { ...low, ...high };
}

const SELENIUM =
  /^(?:\$?cdc_|\$chrome_asyncScriptInfo|__\$webdriverAsync|_{1,2}(?:webdriver|selenium|driver|fxdriver)_|_Selenium_IDE|callSelenium|_selenium$|calledSelenium)/;
const PLAYWRIGHT = /^__(?:pw[A-Z_]|playwright)/;

/** What drivers leave in a page, and whether somebody replaced `navigator.webdriver` by a value that can be written. */
export function drivers(): Record<string, boolean | undefined> {
  const names = [...Object.keys(window), ...Object.keys(document)];
  return {
    webdriver: navigator.webdriver,
    webdriverWritable: isWebdriverWritable(),
    selenium: names.some((name) => SELENIUM.test(name)),
    playwright: names.some((name) => PLAYWRIGHT.test(name)),
  };
}

function isWebdriverWritable(): boolean {
  const holder = navigator as unknown as Record<string, unknown>;
  const before = holder["webdriver"];
  try {
    holder["webdriver"] = !before;
    const written = holder["webdriver"] !== before;
    if (written) holder["webdriver"] = before;
    return written;
  } catch {
    return false; // an honest one has no setter, and modules are strict
  }
}

/**
 * Whether an inspector listens to this console, that of developer tools or a driver's: in Chromium it reads the name of an
 * error again and again. To be asked of a frame's console, since libraries of the page may read along in its own.
 */
export function isInspected(console: Console): boolean {
  let reads = 0;
  const get = (): string => {
    reads += 1;
    return "svc";
  };
  console.debug(Object.defineProperty(new Error("Is an inspector attached?"), "name", { get }));
  return reads > 1;
}

/** Whether the list of plugins is the browser's own: an object of its kind, whose entries belong together. */
export function plugins(): Record<string, boolean | number> {
  const list = navigator.plugins;
  const first = list[0];
  // An empty list is consistent: phones have none, nor has who downloads documents instead of viewing them.
  return {
    count: list.length,
    genuine: Object.prototype.toString.call(list) === "[object PluginArray]",
    linked: first === undefined || first[0]?.enabledPlugin === first,
    overflows: first !== undefined && list.item(2 ** 32) !== first,
  };
}

const SIDE = 16;

/** Whether pixels that were put on a canvas are read back as others. */
export function canvasNoise(): boolean | undefined {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = SIDE;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (!context) return undefined;
  const drawn = context.createImageData(SIDE, SIDE);
  for (let place = 0; place < drawn.data.length; place += 1)
    drawn.data[place] = place % 4 === 3 ? 255 : (place * 31 + 11) % 241;
  context.putImageData(drawn, 0, 0);
  const back = context.getImageData(0, 0, SIDE, SIDE).data;
  return back.some((value, place) => value !== drawn.data[place]);
}

/** What there is to point with; a desktop without is a display without. */
export function pointers(): Record<string, string | boolean> {
  const is = (query: string): boolean => matchMedia(`(${query})`).matches;
  const kind = ["fine", "coarse"].find((name) => is(`any-pointer: ${name}`));
  return { anyPointer: kind ?? "none", anyHover: is("any-hover: hover") };
}

/** Milliseconds below which nothing was written to a disk. Measured: 0.1 to 0.2 in private windows, 0.9 and more in others. */
const MEMORY_MS = 0.3;

/**
 * Whether the window is private, as far as the browser lets it show: Firefox refuses private files, Chromium keeps them in
 * memory. A rule of thumb: guests' windows and memory disks look the same. Firefox refuses them without cookies, too.
 */
export async function privateWindow(flushMs: () => Promise<number | null>): Promise<boolean | undefined> {
  if ("mozInnerScreenX" in window) {
    if (!mayStore()) return undefined;
    try {
      await navigator.storage.getDirectory();
      return false;
    } catch (problem) {
      return (problem as DOMException).name === "SecurityError" ? true : undefined;
    }
  }
  if (!("userAgentData" in navigator)) return undefined;
  const took = await flushMs();
  return took === null ? undefined : took < MEMORY_MS;
}

/** Whether the browser lets the page keep anything, in windows of whatever kind. */
function mayStore(): boolean {
  try {
    return navigator.cookieEnabled && !!localStorage;
  } catch {
    return false;
  }
}
