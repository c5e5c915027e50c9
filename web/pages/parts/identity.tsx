/** Who the visitor is: the id, how it was found, and the visits before. */
/** @jsxImportSource preact */
import type { Explained, Texts, VisitRow } from "./wire.js";

/** A color of an id's own, so that two ids are told apart at a glance. */
export function hueOf(id: string): number {
  let sum = 0;
  for (const letter of id) sum = (sum * 31 + letter.charCodeAt(0)) % 360;
  return sum;
}

export const colored = (id: string) => ({ "--hue": String(hueOf(id)) });
const time = (text: string) => new Date(text).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const moment = (text: string) => new Date(text).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

/** A phrase as a sentence of its own. */
const sentence = (phrase: string) => `${phrase.charAt(0).toUpperCase()}${phrase.slice(1)}.`;

/** A strip of visits, oldest first: the id comes back. */
export function Visits({ visits, current }: { visits: VisitRow[]; current: string }) {
  const showNewest = (element: HTMLOListElement | null) => {
    if (element !== null) element.scrollLeft = element.scrollWidth;
  };
  const oldestFirst = [...visits].reverse();
  return (
    <section class="strip" aria-label="Visits of this id">
      <ol ref={showNewest} tabIndex={0}>
        {oldestFirst.map((visit) => (
          <li key={visit.request_id} style={colored(visit.visitor_id)} aria-current={visit.request_id === current ? "true" : undefined}>
            <span class="dot" aria-hidden="true" />
            <time dateTime={visit.occurred_at}>{visit.request_id === current ? "now" : time(visit.occurred_at)}</time>
            <span class="quiet">{visit.visitor_is_new ? "new" : `${visit.visitor_confidence ?? "?"} %`}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** How long the visitor is known, as far as the newest visits tell: older ones may be left out, or over their time. */
export function acquaintance(event: Explained, visits: VisitRow[]): string {
  const oldest = visits[visits.length - 1];
  if (event.visitor_is_new || oldest === undefined) return "New: this visitor was not seen before.";
  if (visits.length === 1) return "Seen before. Earlier visits are listed once this token has come back.";
  const earlier = oldest.visitor_is_new ? "" : " or earlier";
  return `Known since ${moment(oldest.occurred_at)}${earlier}; ${visits.length} visits are listed.`;
}

export function Identity({ event, visits, texts }: { event: Explained; visits: VisitRow[]; texts: Texts }) {
  const outcome = event.document?.linkage.outcome;
  const changes = event.document?.changes ?? [];
  return (
    <section class="card identity" style={colored(event.visitor_id)} aria-labelledby="identity">
      <h2 id="identity">You are</h2>
      <p class="id">{event.visitor_id}</p>
      <p>{acquaintance(event, visits)}</p>
      <Certainty event={event} texts={texts} />
      <Proof event={event} texts={texts} />
      {outcome !== undefined && <p class="quiet">{sentence(texts.linkage[outcome] ?? outcome)}</p>}
      {changes.length > 0 && (
        <p class="quiet">Changed since the last visit: {changes.map((name) => texts.changes[name] ?? name).join(", ")}.</p>
      )}
    </section>
  );
}

/** Whether the browser proved that it is the one with this token, and else why not. */
export function Proof({ event, texts }: { event: Explained; texts: Texts }) {
  const proof = event.document?.linkage.proof ?? "none";
  if (event.proven) return <p><strong>Proven:</strong> {texts.proof["proven"]}.</p>;
  return event.document ? <p class="quiet">Not proven: {texts.proof[proof] ?? proof}.</p> : null;
}

/** Whether a known visitor was recognized by what could have been copied. */
export const isUncertain = ({ visitor_confidence: sure, visitor_is_new: isNew }: VisitRow): boolean => !isNew && sure !== undefined && sure < 90;

export function Certainty({ event, texts }: { event: Explained; texts: Texts }) {
  const sure = event.visitor_confidence;
  if (event.identifiable === false) return <p>{texts.certainty["unidentifiable"]}</p>;
  if (sure === undefined || event.visitor_is_new) return null;
  return (
    <>
      <p class="certainty">
        <meter min={0} max={100} value={sure} aria-label="Confidence in percent" />
        <span>{sure} % sure that this is one device</span>
      </p>
      {isUncertain(event) && <p>{texts.certainty[event.proven ? "proven" : event.document?.linkage.outcome === "token" ? "token" : "likeness"]}</p>}
    </>
  );
}
