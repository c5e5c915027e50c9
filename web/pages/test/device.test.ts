// @vitest-environment happy-dom
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { h, render } from "preact";
import { describe, expect, it } from "vitest";
import { appOf } from "../console/app.js";
import { Device } from "../console/device.js";
import { type Console, Shared } from "../console/state.js";
import type { EventDetail } from "../console/wire.js";

type Event = EventDetail["event"];
type Document = NonNullable<Event["document"]>;

const root = join(import.meta.dirname, "..", "..", "..");
const [, sentences] = readFileSync(join(root, "svc/identify/data/signals.toml"), "utf8").split("\n[evidence]\n");
const evidence = Object.fromEntries([...sentences!.matchAll(/^(\w+) = "(.*)"$/gm)].map(([, name, text]) => [name!, text!]));
const { cases } = JSON.parse(readFileSync(join(root, "clients/vectors/report.json"), "utf8")) as {
  cases: { name: string; given: { platform: string }; expect: { signals: Record<string, unknown>; read: { flags: string[] } } }[];
};

/** The event of a report that an SDK sends. */
const event = (signals: unknown, platform = "android", document: Partial<Document> = {}, fired: Event["signals"] = []): Event =>
  ({ platform, signals: fired, document: { signals, evidence: {}, ...document } }) as unknown as Event;
const sent = (name: string) => cases.find((one) => one.name === name)!.expect.signals;

function shown(of: Event): HTMLElement {
  const place = document.createElement("div");
  render(h(Shared.Provider, { value: { texts: { evidence } } as unknown as Console }, h(Device, { event: of })), place);
  return place;
}

describe("the app of an event", () => {
  it("is read from what the SDK of Android sends", () => {
    expect(appOf(event(sent("android: a Pixel")), evidence)).toEqual({
      model: "Google Pixel 8",
      system: "Android 15",
      build: "AP4A.250105.002",
      name: "com.example.shop",
      version: "42",
      installer: "com.android.vending",
      signer: "5a".repeat(32),
      flags: [],
      attested: { state: "none", reasons: [], facts: {} },
      leftOut: [],
    });
  });

  it("has the flags that the service reads, of every report that an SDK sends", () => {
    for (const { name, given, expect: { signals, read } } of cases) {
      const flags = appOf(event(signals, given.platform), evidence)!.flags.map((flag) => flag.evidence);
      expect([...flags].sort(), name).toEqual(read.flags.map((flag) => `sdk_${flag}`).sort());
    }
  });

  it("names the bridge beside the system", () => {
    expect(shown(event(sent("android: by a bridge"))).textContent).toContain("Android 15, by react-native/");
  });

  it("is no part of a browser's event, nor of one without its report", () => {
    expect(shown(event(sent("android: a Pixel"), "web")).textContent).toBe("");
    expect(shown({ ...event({}), document: null }).textContent).toBe("");
  });

  it("may be anything that somebody made up", () => {
    const app = { package: ["x"], version: { a: 1 }, installer: 7, left_out: "all", bridge: "<b>".repeat(100) };
    const found = appOf(event({ device: [], flags: "rooted", model: null, os_version: true, app }), evidence)!;
    expect(found).toEqual({ system: "Android", installer: "7", bridge: `${"<b>".repeat(100).slice(0, 127)}…`, flags: [], attested: found.attested, leftOut: [] });
    expect(appOf(event({ app: [app], rooted: "1", device: { frida: 1, hooked: 2 } }), evidence)!.flags.map((flag) => flag.evidence)).toEqual(["sdk_frida", "sdk_rooted"]);
  });
});

describe("integrity", () => {
  it("shows each flag as a hint, with what it counts", () => {
    const signals = { flags: { rooted: true, developer_options: true, vpn_active: true, unknown: true } };
    const fired = [{ signal: "rooted", group: "integrity", weight: 25, confidence: "medium" as const }, { signal: "vpn_auxiliary_mobile", group: "network", weight: 5, confidence: "medium" as const }];
    const place = shown(event(signals, "android", { evidence: { rooted: ["sdk_rooted"], vpn_auxiliary_mobile: ["sdk_vpn_active"] } }, fired));
    expect([...place.querySelectorAll("li")].map((line) => line.textContent)).toEqual([
      "hint The SDK found that developer options or debugging over USB are switched on. Adds nothing to the score.",
      "hint The SDK found that the device is rooted. +25",
      "hint The SDK found that the device uses a VPN. +5",
    ]);
  });

  it.each([
    [{}, "none", []],
    [{ attestation: { format: "none", verified: false }, evidence: { attestation_missing: ["attestation_none"] } }, "none", ["The app says that its device attests nothing."]],
    [{ attestation: { format: "android-key", verified: true } }, "verified", []],
    [{ attestation: { format: "android-key", verified: false }, evidence: { attestation_failed: ["software_only", "of_a_later_version"] } }, "failed", ["The attestation or its key comes from software, not from secure hardware.", "of_a_later_version"]],
    [{ attestation: { format: "none", verified: false }, evidence: { attestation_failed: ["challenge_unknown"] } }, "failed", ["The attestation names a challenge that this organization never received, or long ago."]],
  ] as [Partial<Document>, string, string[]][])("says what the attestation came to: %j", (document, state, reasons) => {
    const place = shown(event({}, "android", document));
    expect(place.querySelector(".badge")!.textContent).toBe(state);
    expect([...place.querySelectorAll("li")].map((line) => line.textContent)).toEqual(reasons);
  });

  it("shows what Apple's attestation says", () => {
    const attestation = { format: "apple-app-attest", verified: true, app_id: "A1B2C3D4E5.com.example.shop", environment: "production", counter: 7, distribution: "app_store" };
    const { textContent } = shown(event({ model: "iPhone15,3", os_version: "17.4.1" }, "ios", { attestation }));
    for (const part of ["iPhone15,3", "iOS 17.4.1", "A1B2C3D4E5.com.example.shop", "app store", "7"]) expect(textContent).toContain(part);
  });

  it("calls many sources that were left out a fault of the SDK", () => {
    const leftOut = (names: string[]) => shown(event({ app: { left_out: names } })).textContent;
    expect(leftOut(["screen", "cores"])).toContain("Not read: screen, cores.");
    expect(leftOut(["screen", "cores"])).not.toContain("fault of the SDK");
    expect(leftOut(sent("android: every source fails").app ? (sent("android: every source fails").app as { left_out: string[] }).left_out : [])).toContain("fault of the SDK");
  });
});
