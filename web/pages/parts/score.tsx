/** How suspicious the visit is: the score as a sum of its signals, and what each of them saw. */
/** @jsxImportSource preact */
import type { Explained, Fired, Texts } from "./wire.js";

const LEVELS = { low: "Not suspicious", medium: "Suspicious", high: "Very suspicious" };
const FULL = 100;

export function Score({ event, texts }: { event: Explained; texts: Texts }) {
  const fired = event.signals ?? [];
  const score = event.suspect_score;
  if (score === undefined || score === null) {
    return (
      <section class="card">
        <h2>Suspect score</h2>
        <p>Not scored: {reason(event, texts)}</p>
      </section>
    );
  }
  const threshold = event.document?.suspect_threshold ?? 30;
  return (
    <section class="card" aria-labelledby="score">
      <h2 id="score">Suspect score</h2>
      <p class={`score ${event.suspect_level ?? "low"}`}>
        <span class="number">{score}</span> <span class="level">{LEVELS[event.suspect_level ?? "low"]}</span>
      </p>
      <Bar fired={fired} score={score} threshold={threshold} />
      {fired.length === 0
        ? <p>None of the {Object.keys(texts.signals).length || "known"} signals fired.</p>
        : <ul class="signals">{fired.map((one, place) => <Signal key={one.signal} one={one} place={place} event={event} texts={texts} />)}</ul>}
      <p class="quiet">
        The score is the sum of the weights. From {threshold} a visit is suspicious, from {2 * threshold} very; both can
        be configured, and so can each weight.
      </p>
    </section>
  );
}

function reason(event: Explained, texts: Texts): string {
  const name = event.reason ?? event.document?.network.reason ?? "";
  return texts.reasons[name] ?? (name || "no verdict.");
}

/** One segment for each signal, on a scale with the two thresholds. */
function Bar({ fired, score, threshold }: { fired: Fired[]; score: number; threshold: number }) {
  const full = Math.max(FULL, score);
  const at = (points: number) => `${(100 * points) / full}%`;
  return (
    <div class="bar" role="img" aria-label={`${score} points of ${fired.length} signals; suspicious from ${threshold}`}>
      {fired.map((one, place) => (
        <span key={one.signal} class={`segment tone-${place % 5}`} style={{ width: at(one.weight) }} title={`${one.signal}: ${one.weight}`} />
      ))}
      {[threshold, 2 * threshold].map((mark) => mark < full && <span key={mark} class="mark" style={{ left: at(mark) }} />)}
    </div>
  );
}

function Signal({ one, place, event, texts }: { one: Fired; place: number; event: Explained; texts: Texts }) {
  const evidence = event.document?.evidence[one.signal] ?? [];
  return (
    <li>
      <p class="signal">
        <span class={`swatch tone-${place % 5}`} aria-hidden="true" />
        <strong>{one.signal}</strong> <span class="weight">+{one.weight}</span>
        <span class="quiet">{one.group !== one.signal && `${one.group}, `}{one.confidence} confidence</span>
      </p>
      <p>{texts.signals[one.signal]?.description}</p>
      {evidence.length > 0 && <ul class="evidence">{evidence.map((name) => <li key={name}>{withCode(texts.evidence[name] ?? name)}</li>)}</ul>}
    </li>
  );
}

/** A sentence, with what stands in backticks as code. */
export const withCode = (sentence: string) => sentence.split("`").map((part, place) => (place % 2 === 1 ? <code key={place}>{part}</code> : part));
