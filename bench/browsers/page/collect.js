/** Reads the browser with FingerprintJS, BotD and the probes, and posts everything to the server of the page. */
import { collect, sources as botSources } from "@fingerprintjs/botd";
import { hashComponents, loadSources, sources } from "@fingerprintjs/fingerprintjs";
import * as probes from "./probes.js";

const { settled } = probes;

/** Images as their hashes; the library's words for "no image" are short and stay. */
function withoutImages(components) {
  const drawn = components.canvas?.value;
  if (!drawn) return components;
  const hashed = (image) => (image?.length > 64 ? hashComponents({ image: { value: image, duration: 0 } }) : image);
  const value = { ...drawn, geometry: hashed(drawn.geometry), text: hashed(drawn.text) };
  return { ...components, canvas: { ...components.canvas, value } };
}

/** Each source by itself, so that one that never answers costs no other. */
async function components() {
  const found = await Promise.all(
    Object.entries(sources).map(async ([name, source]) => {
      const read = loadSources({ [name]: source }, { cache: {}, debug: false }, []);
      return [name, (await settled(read()))?.[name]];
    }),
  );
  return withoutImages(Object.fromEntries(found.filter(([, value]) => value !== undefined)));
}

/** What a probe answers, or nothing when the browser forbids the question. */
function answered(probe) {
  try {
    return probe();
  } catch {
    return undefined;
  }
}

async function run() {
  const [frame, thread, hinted, hidden, read, bot] = await Promise.all([
    settled(probes.iframe()), settled(probes.worker()), settled(probes.hints()), settled(probes.incognito()),
    components(), settled(collect(botSources)),
  ]);
  const report = {
    components: read,
    botd: bot,
    fpscanner: {
      automation: answered(probes.marks) ?? {},
      graphics: { canvas: { hasModifiedCanvas: answered(probes.canvasNoise) } },
      contexts: { iframe: frame ?? {}, webWorker: thread ?? {} },
      browser: { userAgent: navigator.userAgent, highEntropyValues: hinted, plugins: answered(probes.plugins) },
    },
    incognito: hidden,
    surroundings: answered(probes.surroundings),
  };
  const visit = new URLSearchParams(location.search).get("visit");
  await fetch(`report?visit=${visit}`, { method: "POST", body: JSON.stringify(report) });
  document.getElementById("state").textContent = "Done.";
}

run();
