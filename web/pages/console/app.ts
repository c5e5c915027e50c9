/** What an event of an app says of the app and its device. A client wrote the report: anything may stand in it. */
import type { EventDetail } from "./wire.js";

type Shown = EventDetail["event"];
type Document = NonNullable<Shown["document"]>;

export interface Flag {
  /** Name of the sentence that says what was found. */
  evidence: string;
  /** What it added to the score; nothing where its signal has no weight. */
  weight?: number;
}

export interface Attested {
  state: "verified" | "failed" | "none";
  /** Names of sentences: what is wrong, or why there is none. */
  reasons: string[];
  facts: Partial<Record<"format" | "app_id" | "environment" | "bundle_version" | "distribution" | "key_first_seen_at", string>> & { counter?: number };
}

export interface App {
  model?: string;
  system?: string;
  build?: string;
  name?: string;
  version?: string;
  installer?: string;
  signer?: string;
  bridge?: string;
  flags: Flag[];
  attested: Attested;
  leftOut: string[];
}

/** If a report leaves out this many names, it is rather the SDK's fault than the device's. */
export const MANY_LEFT_OUT = 5;

const SYSTEMS: Record<string, string> = { android: "Android", ios: "iOS" };

const members = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};

/** Texts and numbers, as far as they are read at a glance. */
function said(value: unknown): string | undefined {
  const text = typeof value === "number" ? String(value) : typeof value === "string" ? value.trim() : "";
  return text === "" ? undefined : text.length > 128 ? `${text.slice(0, 127).replace(/[\ud800-\udbff]$/, "")}…` : text;
}

/** The words that are there, with a space between; nothing where there are none. */
const joined = (...parts: (string | undefined)[]): string | undefined => parts.filter(Boolean).join(" ") || undefined;

/** Nothing for an event of a browser, and for one whose report is not kept. `sentences`: of evidence, by its names. */
export function appOf(event: Pick<Shown, "platform" | "document" | "signals">, sentences: Record<string, string>): App | undefined {
  const { platform, document } = event;
  const system = SYSTEMS[platform];
  if (system === undefined || document === null) return undefined;
  const device = members(document.signals.device), app = members(document.signals.app);
  const of = (name: string): string | undefined => said(device[name] ?? document.signals[name]);
  const found = {
    model: joined(of("manufacturer"), of("model") ?? of("device_model")),
    system: joined(system, of("os_version")),
    build: of("os_build"),
    name: said(app.package),
    version: said(app.version),
    installer: said(app.installer),
    signer: said(app.signer),
    bridge: said(app.bridge),
  };
  return {
    ...Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined)),
    flags: flagsOf(event, document, sentences),
    attested: attestedOf(document),
    leftOut: Array.isArray(app.left_out) ? app.left_out.map(said).filter((name) => name !== undefined) : [],
  };
}

/** As the service reads them (docs/mobile.md). One whose signal has no weight fires nothing, and is in the report alone. */
function flagsOf({ signals = [] }: Pick<Shown, "signals">, { signals: report, evidence }: Document, sentences: Record<string, string>): Flag[] {
  const parts = [report, members(report.device), members(report.flags)];
  const isSent = (name: string) => parts.some((part) => [true, 1, "true", "1"].includes(part[name] as never));
  const fired = new Map(Object.entries(evidence).flatMap(([signal, names]) => names.map((name) => [name, signal])));
  return Object.keys(sentences)
    .filter((name) => name.startsWith("sdk_") && (fired.has(name) || isSent(name.slice("sdk_".length))))
    .map((name) => {
      const weight = signals.find(({ signal }) => signal === fired.get(name))?.weight;
      return { evidence: name, ...(weight !== undefined && { weight }) };
    });
}

/** A report has failed, too, if it names no attestation and its challenge is somebody else's. */
function attestedOf({ attestation, evidence }: Document): Attested {
  const { verified, ...facts } = attestation ?? { verified: false };
  const failed = evidence.attestation_failed ?? [];
  const isNone = failed.length === 0 && (attestation === undefined || attestation.format === "none");
  return { state: verified ? "verified" : isNone ? "none" : "failed", reasons: isNone ? (evidence.attestation_missing ?? []) : failed, facts };
}
