/** What neither FingerprintJS nor BotD asks, in the places where fpscanner keeps it. */
import { answers } from "./questions.js";

const WAIT_MS = 3000;

/** The value of a promise, or nothing when it fails or takes too long. */
export function settled(promise) {
  const late = new Promise((resolve) => setTimeout(resolve, WAIT_MS));
  return Promise.race([promise, late]).catch(() => undefined);
}

export function iframe() {
  return new Promise((resolve, reject) => {
    const frame = document.createElement("iframe");
    frame.hidden = true;
    frame.addEventListener("load", () => {
      try {
        resolve(answers(frame.contentWindow));
      } catch (problem) {
        reject(problem);
      }
      frame.remove();
    });
    document.body.append(frame);
  });
}

export function worker() {
  return new Promise((resolve, reject) => {
    const thread = new Worker("worker.js");
    thread.addEventListener("error", reject);
    thread.addEventListener("message", ({ data }) => {
      thread.terminate();
      resolve(data);
    });
  });
}

export async function hints() {
  const data = navigator.userAgentData;
  if (!data) return undefined;
  const more = await data.getHighEntropyValues([
    "architecture", "bitness", "fullVersionList", "model", "platformVersion", "wow64",
  ]);
  return { brands: data.brands, mobile: data.mobile, platform: data.platform, ...more };
}

/** Marks of drivers. `webdriverWritable`: whether `navigator.webdriver` keeps what is written to it. */
export function marks() {
  const before = navigator.webdriver;
  let writable = false;
  try {
    navigator.webdriver = !before;
    writable = navigator.webdriver !== before;
    if (writable) navigator.webdriver = before;
  } catch {
    // Strict mode refuses to write to an accessor without a setter.
  }
  const names = [...Object.keys(window), ...Object.keys(document)];
  return {
    webdriver: before,
    webdriverWritable: writable,
    selenium: names.some((name) => /selenium|^\$?cdc_|webdriver_|driver_evaluate/i.test(name)),
    playwright: names.some((name) => name.startsWith("__pw") || name.startsWith("__playwright")),
  };
}

export function plugins() {
  const list = navigator.plugins;
  const found = { pluginCount: list.length, isValidPluginArray: String(list) === "[object PluginArray]" };
  if (list.length > 0) {
    found.pluginConsistency1 = list[0][0]?.enabledPlugin === list[0];
    found.pluginOverflow = list.item(2 ** 32) !== list[0];
  } else {
    found.pluginConsistency1 = true;
    found.pluginOverflow = false;
  }
  return found;
}

/** Whether pixels that were put on a canvas come back as others. */
export function canvasNoise() {
  const side = 12;
  const canvas = Object.assign(document.createElement("canvas"), { width: side, height: side });
  const context = canvas.getContext("2d");
  if (!context) return undefined;
  const drawn = context.createImageData(side, side);
  drawn.data.forEach((_, place) => {
    drawn.data[place] = place % 4 === 3 ? 255 : (place * 53 + 17) % 251;
  });
  context.putImageData(drawn, 0, 0);
  const back = context.getImageData(0, 0, side, side).data;
  return back.some((value, place) => value !== drawn.data[place]);
}

/** What a private window of Firefox shows; other browsers are not asked. */
export async function incognito() {
  if (!("mozInnerScreenX" in window)) return undefined;
  try {
    await navigator.storage.getDirectory();
    return false;
  } catch (problem) {
    return problem.name === "SecurityError" ? true : undefined;
  }
}

/** For those who look for a rule: never part of a report. */
export function surroundings() {
  const media = (query) => matchMedia(query).matches;
  return {
    screen: { ...pick(screen, ["width", "height", "availWidth", "availHeight", "availLeft", "availTop", "colorDepth"]),
      orientation: screen.orientation?.type },
    window: pick(window, ["outerWidth", "outerHeight", "innerWidth", "innerHeight", "screenX", "screenY",
      "devicePixelRatio", "mozInnerScreenX", "mozInnerScreenY"]),
    coarse: media("(pointer: coarse)"),
    anyCoarse: media("(any-pointer: coarse)"),
    fine: media("(pointer: fine)"),
    hover: media("(hover: hover)"),
    dark: media("(prefers-color-scheme: dark)"),
    fullscreen: media("(display-mode: fullscreen)"),
    touchEvents: "ontouchstart" in window,
    focus: document.hasFocus(),
    visible: document.visibilityState,
    webdriverExists: "webdriver" in navigator,
    properties: ["chrome", "safari", "GestureEvent", "ApplePaySession", "webkitNotifications", "qt", "external"].filter(
      (name) => name in window,
    ),
    notification: window.Notification?.permission,
    voices: window.speechSynthesis?.getVoices().length,
    pdf: navigator.pdfViewerEnabled,
    connection: navigator.connection && pick(navigator.connection, ["rtt", "downlink", "effectiveType", "type"]),
  };
}

function pick(object, names) {
  return Object.fromEntries(names.map((name) => [name, object[name]]));
}
