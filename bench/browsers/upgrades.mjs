/**
 * One Chromium of the upgrades.
 *
 *     node upgrades.mjs unpack PACKAGE FOLDER        unpacks a package of @sparticuz/chromium
 *     node upgrades.mjs open CHROMIUM DEVICE URL     opens the page on a simulated device (JSON), until SIGTERM
 *
 * Speaks the DevTools protocol through a pipe, without a library: every version of Chromium understands the few commands.
 */
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliDecompressSync } from "node:zlib";

/** All archives side by side with the program, which looks for its graphics library there. */
function unpack(folder, out) {
  const bin = join(folder, "bin");
  for (const name of readdirSync(bin).filter((file) => /^(?:chromium|swiftshader\.tar)\.br$/.test(file))) {
    const unpacked = join(out, name.slice(0, -".br".length));
    writeFileSync(unpacked, brotliDecompressSync(readFileSync(join(bin, name))));
    if (!unpacked.endsWith(".tar")) continue;
    execFileSync("tar", ["--extract", "--no-same-owner", "--file", unpacked, "--directory", out]);
    rmSync(unpacked);
  }
  chmodSync(join(out, "chromium"), 0o755);
}

/** A browser's end of the protocol: `send` resolves to the result, `attached` is called for each new page and worker. */
class Connection {
  #number = 0;
  #pending = new Map();
  #rest = "";

  constructor(input, output, attached) {
    this.output = output;
    this.attached = attached;
    input.setEncoding("utf8").on("data", (text) => {
      const messages = (this.#rest + text).split("\0");
      this.#rest = messages.pop();
      for (const message of messages) this.#receive(JSON.parse(message));
    });
  }

  send(method, params = {}, sessionId = undefined) {
    this.#number += 1;
    this.output.write(`${JSON.stringify({ id: this.#number, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.#pending.set(this.#number, { resolve, reject, method }));
  }

  #receive({ id, result, error, method, params }) {
    if (method === "Target.attachedToTarget") void this.attached(params);
    const waiting = this.#pending.get(id);
    if (!waiting) return;
    this.#pending.delete(id);
    if (error) waiting.reject(new Error(`${waiting.method}: ${error.message}`));
    else waiting.resolve(result);
  }
}

/** The user agent and the client hints of this Chromium on a phone. */
function phone(version, languages) {
  const [major] = version.split(".");
  const brands = [["Chromium", version], ["Not)A;Brand", "24.0.0.0"]];
  return {
    userAgent: `Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${major}.0.0.0 Mobile Safari/537.36`,
    acceptLanguage: languages.join(","),
    platform: "Linux armv81",
    userAgentMetadata: {
      brands: brands.map(([brand, full]) => ({ brand, version: full.split(".")[0] })),
      fullVersionList: brands.map(([brand, full]) => ({ brand, version: full })),
      platform: "Android",
      platformVersion: "14.0.0",
      architecture: "",
      bitness: "",
      model: "Pixel 7",
      mobile: true,
    },
  };
}

/** What the device is to every context. Time zone and language need no command: the browser has them from its environment. */
function inEveryContext({ cores, touch, languages }, version) {
  const commands = [["Emulation.setHardwareConcurrencyOverride", { hardwareConcurrency: cores }]];
  if (touch > 0) commands.push(["Emulation.setUserAgentOverride", phone(version, languages)]);
  return commands;
}

function inPages({ width, height, scale, touch }) {
  const screen = { screenWidth: width, screenHeight: height, positionX: 0, positionY: 0 };
  const commands = [["Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: scale, mobile: touch > 0, ...screen }]];
  if (touch > 0) commands.push(["Emulation.setTouchEmulationEnabled", { enabled: true, maxTouchPoints: touch }]);
  return commands;
}

const ATTACH = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true };

async function open(chromium, device, url) {
  const flags = [
    "--headless", "--no-sandbox", "--disable-dev-shm-usage", "--remote-debugging-pipe", "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader", "--no-first-run", `--user-data-dir=${process.env.HOME}/profile`,
    `--lang=${device.languages[0]}`, `--accept-lang=${device.languages.join(",")}`,
    `--window-size=${device.width},${device.height}`,
  ];
  const child = spawn(chromium, flags, { stdio: ["ignore", "inherit", "inherit", "pipe", "pipe"] });
  const gone = new Promise((resolve) => child.on("exit", resolve));
  process.on("SIGTERM", () => child.kill());

  const connection = new Connection(child.stdio[4], child.stdio[3], async ({ sessionId, targetInfo }) => {
    const isPage = targetInfo.type === "page";
    const commands = [...inEveryContext(device, version), ...(isPage ? inPages(device) : []), ["Target.setAutoAttach", ATTACH]];
    for (const [method, params] of commands) {
      await connection.send(method, params, sessionId).catch((error) => console.error(`${targetInfo.type}: ${error.message}`));
    }
    await connection.send("Runtime.runIfWaitingForDebugger", {}, sessionId);
    if (isPage) await connection.send("Page.navigate", { url }, sessionId);
  });
  const version = (await connection.send("Browser.getVersion")).product.split("/")[1];
  await connection.send("Target.setAutoAttach", ATTACH);
  await connection.send("Target.createTarget", { url: "about:blank" });
  await gone;
}

const [task, ...given] = process.argv.slice(2);
if (task === "unpack") unpack(...given);
else await open(given[0], JSON.parse(given[1]), given[2]);
