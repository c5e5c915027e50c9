/** The second report: what only people read who look at the event. It changes nothing else, so nothing waits for it. */
import { pause } from "./deadline.js";

const SOURCE_MS = 2000;
const IDLE_MS = 3000;
const MAX_VOICES = 64;
const PERMISSIONS = [
  "camera",
  "clipboard-read",
  "geolocation",
  "microphone",
  "midi",
  "notifications",
  "persistent-storage",
  "push",
];

/** Resolves when the page has nothing to do, at the latest in a few seconds. */
const idle = (): Promise<void> =>
  Promise.race([
    pause(IDLE_MS), // scripts of the page replace what follows by one that never calls
    new Promise<void>((resolve) => {
      if ("requestIdleCallback" in window) requestIdleCallback(() => resolve());
      else setTimeout(resolve, 50);
    }),
  ]);

/** Resolves when the event comes; one that does not come before the `end` is not listened for any longer. */
function heard(target: EventTarget, event: string, end: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const listener = (): void => resolve();
    target.addEventListener(event, listener, { once: true });
    void end.then(() => target.removeEventListener(event, listener));
  });
}

/** The report as far as it is known: without what the browser refuses. */
export interface Supplement {
  signals: Record<string, unknown>;
  /** Resolves when nothing more comes, and when the page is left. */
  complete: Promise<unknown>;
}

/**
 * Begins the report as soon as the page has nothing to do, beside the first one's way to the service: many pages are left at once after
 * its response. Asks for no permission. `late`: what came too late for the first report.
 */
export function begin(late: Promise<object | undefined>): Supplement {
  const signals = { tier: "deferred", version: 1 };
  const read = async (name: string, source: () => Promise<unknown>): Promise<void> => {
    const over = pause(SOURCE_MS).then(() => undefined);
    const value = await Promise.race([Promise.resolve().then(source), over]).catch(() => undefined);
    if (value !== undefined) Object.assign(signals, { [name]: value });
  };
  const sources = Object.entries({ permissions, voices, media, webgpu, webrtc, storage });
  const all = Promise.all([
    late.then((found) => Object.assign(signals, found)),
    idle().then(() => Promise.all(sources.map(([name, source]) => read(name, source)))),
  ]);
  return { signals, complete: Promise.race([all, heard(window, "pagehide", all)]) };
}

async function permissions(): Promise<Record<string, string>> {
  const states = await Promise.all(
    PERMISSIONS.map(async (name) => {
      const state = await navigator.permissions.query({ name: name as PermissionName }).then(
        (status) => status.state,
        () => "unknown",
      );
      return [name, state] as const;
    }),
  );
  return Object.fromEntries(states);
}

async function voices(): Promise<string[] | undefined> {
  if (!("speechSynthesis" in window)) return undefined;
  if (speechSynthesis.getVoices().length === 0) {
    const late = pause(SOURCE_MS / 2);
    await Promise.race([late, heard(speechSynthesis, "voiceschanged", late)]);
  }
  const named = speechSynthesis
    .getVoices()
    .map((voice) => `${voice.name} (${voice.lang}${voice.localService ? "" : ", remote"})`);
  return named.slice(0, MAX_VOICES);
}

async function media(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { kind } of await navigator.mediaDevices.enumerateDevices()) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

interface Gpu {
  requestAdapter(): Promise<{ info?: Record<string, string> } | null>;
}

const UNMASKED_RENDERER = 0x9246;

/** Whether the browser draws by a GPU. Where it does not, there is no adapter, and Chromium warns of that on the page's console. */
function hasGpu(): boolean {
  const drawn = document.createElement("canvas").getContext("webgl", { failIfMajorPerformanceCaveat: true });
  if (!drawn) return false;
  // Firefox names it without the extension, and warns of that.
  const masked = String(drawn.getParameter(drawn.RENDERER));
  const isMasked = masked === "WebKit WebGL" && drawn.getExtension("WEBGL_debug_renderer_info");
  const renderer = isMasked ? String(drawn.getParameter(UNMASKED_RENDERER)) : masked;
  drawn.getExtension("WEBGL_lose_context")?.loseContext();
  return !/swiftshader|llvmpipe|softpipe|basic render/i.test(renderer);
}

async function webgpu(): Promise<Record<string, unknown> | undefined> {
  const gpu = (navigator as Navigator & { gpu?: Gpu }).gpu;
  if (!gpu || !hasGpu()) return undefined;
  const info = (await gpu.requestAdapter())?.info;
  return (
    info && {
      vendor: info["vendor"],
      architecture: info["architecture"],
      device: info["device"],
      description: info["description"],
    }
  );
}

/** How the browser hides the addresses of this machine from WebRTC: kinds of the candidates, never an address. */
async function webrtc(): Promise<Record<string, number>> {
  const kinds: Record<string, number> = {};
  const connection = new RTCPeerConnection();
  try {
    connection.createDataChannel("");
    const complete = new Promise<void>((resolve) => {
      connection.onicecandidate = ({ candidate }) => {
        if (!candidate?.candidate) return resolve();
        const kind = / [0-9a-f-]{36}\.local /.test(candidate.candidate) ? "mdns" : "address";
        kinds[kind] = (kinds[kind] ?? 0) + 1;
      };
    });
    await connection.setLocalDescription(await connection.createOffer());
    await Promise.race([complete, pause(SOURCE_MS / 2)]);
  } finally {
    connection.close();
  }
  return kinds;
}

async function storage(): Promise<Record<string, unknown>> {
  const { quota } = await navigator.storage.estimate();
  return { quota, persisted: await navigator.storage.persisted() };
}
