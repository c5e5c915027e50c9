/** Makes what the pictures of the documentation show, with the keys of a development service: visits and rules. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";

const read = async (path) => JSON.parse(await readFile(new URL(`../../${path}`, import.meta.url), "utf8"));

const RULES = [
  { name: "Fifth account of a browser", condition: 'action == "sign_up" && velocity.visitor.accounts["30d"] >= 5', action: "block" },
  { name: "Sign-up without a window", condition: 'action == "sign_up" && "headless" in signals', action: "review" },
  { name: "Instrumented app", condition: '"frida" in signals || "rooted" in signals', action: "challenge" },
];

/** Account, action, device; a device without a window is one of a program. */
const VISITS = [
  ["user-8271", "log_in", "home"],
  ["user-3310", "log_in", "office"],
  ["user-8271", "purchase", "office"],
  ["user-1101", "sign_up", "farm"],
  ["user-1102", "sign_up", "farm"],
  ["user-5127", "log_in", "office"],
  ["user-1103", "sign_up", "farm"],
  ["user-8271", "log_in", "laptop"],
  ["user-1104", "sign_up", "farm"],
  ["user-3310", "purchase", "office"],
  ["user-1105", "sign_up", "farm"],
  ["user-1106", "sign_up", "farm"],
  ["user-8271", "log_in", "home"],
  ["user-3310", "log_in", "office"],
];
const DEVICES = {
  home: { address: "81.2.69.160", cores: 8, width: 1920 },
  laptop: { address: "81.2.69.160", cores: 4, width: 1440 },
  office: { address: "89.160.20.112", cores: 12, width: 2560 },
  farm: { address: "175.16.199.32", cores: 2, width: 1280, isHeadless: true },
};

async function send(service, method, path, key, body, headers = {}) {
  const options = { method, headers: { "content-type": "application/json", "x-api-key": key, ...headers }, ...(body && { body: JSON.stringify(body) }) };
  const response = await fetch(`${service}/api/v1/${path}`, options);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

/** Identify as an app on a rooted phone does, by a bridge. */
export async function identifyApp(service, secret) {
  const { cases } = await read("clients/vectors/report.json");
  const report = cases.find((one) => one.name === "android: flags").expect.signals;
  const app = { ...report.app, signer: createHash("sha256").update("the certificate").digest("hex"), bridge: "react-native/0.1.0", left_out: ["screen"] };
  const signals = { ...report, app, nonce: crypto.randomUUID(), collected_at: Date.now(), attestation: { format: "none" } };
  const seen = { "x-svc-visitor-ip": "2.125.160.216", "x-svc-visitor-user-agent": "svc-android/0.1.0 (Android 15; com.example.shop/42)" };
  return send(service, "POST", "identify", secret, { sdk: { platform: "react-native-android", version: "0.1.0" }, signals, account_id: "user-6402", action: "log_in" }, seen);
}

async function visit(service, secret, sample, [account_id, action, device]) {
  const { address, cores, width, isHeadless } = DEVICES[device];
  const signals = structuredClone(sample.signals);
  signals.client_token = `the browser ${device}`;
  for (const image of ["geometry", "text"]) signals.components.canvas.value[image] += device; // enough to be another one
  signals.components.audio.value += width / 1000;
  signals.components.screenResolution.value = [width, (width * 9) / 16];
  signals.components.hardwareConcurrency.value = cores;
  const agent = isHeadless ? sample.user_agent.replace("Chrome/", "HeadlessChrome/") : sample.user_agent;
  const seen = { "x-svc-visitor-ip": address, "x-svc-visitor-user-agent": agent, "x-svc-visitor-origin": "https://shop.example" };
  return send(service, "POST", "identify", secret, { sdk: { platform: "web", version: "0.3.0" }, signals, account_id, action }, seen);
}

/** Fills a service: ids of an event that a rule blocked and of its visitor, of an event of an app, and of an account with several visitors. */
export async function fill(service, secret, management) {
  const { organization_id } = await send(service, "GET", "management/key", management);
  const manage = (method, path, body) => send(service, method, `management/organizations/${organization_id}/${path}`, management, body);
  const { revision, rules } = await manage("GET", "rules?environment=test");
  await manage("PUT", "rules?environment=test", { revision, rules: [...rules.map(({ counts, ...rule }) => rule), ...RULES] });

  const sample = await read("svc/identify/samples/first_visit.json");
  const made = [];
  for (const one of VISITS) made.push(await visit(service, secret, sample, one));
  const app = await identifyApp(service, secret);
  const blocked = made.find(({ decision }) => decision?.action === "block");
  return { blocked: blocked.request_id, visitor: blocked.visitor_id, app: app.request_id, account: VISITS[0][0] };
}
