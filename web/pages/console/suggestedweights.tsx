/** Weights that the labels of events suggest, beside those in force. They are tried in the editor, and saved there. */
/** @jsxImportSource preact */
import { count, many } from "./format.js";
import { useAnswer, useConsole, useLink } from "./state.js";
import { Button, Card, type Column, Problem, Table } from "./ui.js";
import type { Quality, Suggestion } from "./wire.js";

/** Why nothing is suggested: "30 more events labeled as fraud"; nothing where there are enough labels. */
export function missing({ fraud, legitimate, needed }: Pick<Suggestion, "fraud" | "legitimate" | "needed">): string[] {
  return Object.entries({ fraud, legitimate })
    .filter(([, labeled]) => labeled < needed)
    .map(([label, labeled]) => `${count(needed - labeled)} more labeled ${label}`);
}

/** The suggested weights that differ from those in force, by signal. */
export const suggested = ({ weights }: Suggestion): Record<string, number> =>
  Object.fromEntries(weights.filter(({ before, after }) => before !== after).map(({ signal, after }) => [signal, after]));

const percent = (part: number | null, none: string) => (part === null ? none : `${Math.round(100 * part)} %`);

type Compared = [name: string, quality: Quality];

const QUALITIES: Column<Compared>[] = [
  { head: "Weights", cell: ([name]) => name },
  { head: "Precision", cell: ([, { precision }]) => percent(precision, "none reaches it"), number: true },
  { head: "Recall", cell: ([, { recall }]) => percent(recall, ""), number: true },
];

const WEIGHTS: Column<Suggestion["weights"][number]>[] = [
  { head: "Signal", cell: ({ signal }) => <strong>{signal}</strong> },
  { head: "In force", cell: ({ before }) => before, number: true },
  { head: "Suggested", cell: ({ before, after }) => (after === before ? "the same" : <strong>{after}</strong>), number: true },
  { head: "Labeled events", cell: ({ events }) => count(events), number: true },
  { head: "Fraud", cell: ({ events, fraud }) => `${count(fraud)} (${percent(fraud / events, "")})`, number: true },
];

/** `onTry` takes weights into the editor. */
export function Suggested({ platform, onTry }: { platform: string; onTry: (weights: Record<string, number>) => void }) {
  const { api, environment } = useConsole();
  const audience = environment === "production" ? "live" : "test";
  const ask = useAnswer(audience, () => api.manage<Suggestion>("GET", `risk-weights/${platform}/suggestion`, undefined, { environment: audience }));
  const found = ask.value;
  return (
    <Card title="What your labels suggest" actions={<Button kind="small" busy={ask.busy} onClick={ask.run}>{found ? "Look again" : "Suggest weights"}</Button>}>
      {ask.busy && <p class="quiet" role="status">Fitting weights to the labels …</p>}
      {!ask.busy && ask.error !== undefined ? <Problem error={ask.error} />
        : found ? <Shown found={found} audience={audience} onTry={onTry} />
        : !ask.busy && <p class="quiet">From the events of {audienceOf(audience)} that are labeled. Nothing is changed.</p>}
    </Card>
  );
}

const audienceOf = (audience: string): string => (audience === "live" ? "production" : "staging and development");

export function Shown({ found, audience, onTry }: { found: Suggestion; audience: string; onTry: (weights: Record<string, number>) => void }) {
  const link = useLink();
  const changes = suggested(found), number = Object.keys(changes).length;
  const fitted = `${many(found.fraud, "fraud event")} and ${many(found.legitimate, "legitimate event")} of ${audienceOf(audience)} on ${found.platform}`;
  if (missing(found).length > 0) {
    return (
      <p>
        <strong>Too few labels:</strong> {fitted}. A suggestion needs {found.needed} of each: {missing(found).join(" and ")}.
        Label events on their pages, close <a href={link("reviews")}>reviews</a>, or import labels with <code>svc label import</code>.
      </p>
    );
  }
  return (
    <>
      <p>Fitted to {fitted}. A score of {found.suspect_threshold} or more counts as fraud, as it does now; precision and recall are of events that were left out of the fit.</p>
      {found.before && found.after && <Table name="Precision and recall" columns={QUALITIES} rows={[["In force", found.before], ["Suggested", found.after]]} keyOf={([name]) => name} />}
      <Table name="Suggested weights" columns={WEIGHTS} rows={found.weights} keyOf={({ signal }) => signal}
        empty={<p>No signal fired in enough labeled events: all keep their weight.</p>} />
      {!found.is_complete && <p class="note">Older labels were left out. <code>svc weights suggest</code> takes all of them.</p>}
      <p class="quiet">Signals that fired in fewer than 10 labeled events keep their weight.</p>
      <p class="buttons">
        <Button disabled={number === 0} onClick={() => onTry(changes)}>Try these</Button>
        <span class="quiet">{number === 0 ? "The weights in force are as good as any." : `Takes ${many(number, "weight")} into the editor below. Nothing is saved.`}</span>
      </p>
    </>
  );
}
