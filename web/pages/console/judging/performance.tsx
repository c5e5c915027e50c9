/** Performance: how well signals, rules and levels tell fraud, by the labels of events. */
/** @jsxImportSource preact */
import { useMemo } from "preact/hooks";
import { matchesOf } from "../filters.js";
import { count } from "../format.js";
import { useConsole, useLink, useLoad, useQuery } from "../state.js";
import { Card, Choice, type Column, Field, Show, Table } from "../ui.js";
import { Scores } from "./scores.js";
import type { Performance as Found, PerformanceLine, Ruleset } from "../wire.js";

const RANGES: Record<string, string> = { "30": "Last 30 days", "90": "Last 90 days", "180": "Last 180 days", "365": "Last 365 days" };
const DAY_MS = 86_400_000;

/** "90 % (77 to 96)"; nothing where nothing is labeled. */
export function precisionOf({ precision, precision_low, precision_high }: Pick<PerformanceLine, "precision" | "precision_low" | "precision_high">): string {
  if (precision === null) return "";
  const percent = (value: number | null) => Math.round(100 * (value ?? 0));
  return `${percent(precision)} % (${percent(precision_low)} to ${percent(precision_high)})`;
}

/** Rules that are no longer in force: removed, or replaced by others, which may have their names. */
export const former = (lines: Pick<PerformanceLine, "rule_id">[], { rules }: Pick<Ruleset, "rules">): Set<string> => {
  const inForce = new Set(rules.map(({ id }) => id));
  return new Set(lines.flatMap(({ rule_id }) => (rule_id !== undefined && !inForce.has(rule_id) ? [rule_id] : [])));
};

export function Performance() {
  const { api, environment, place: { query } } = useConsole();
  const change = useQuery();
  const link = useLink();
  const days = query.days !== undefined && query.days in RANGES ? query.days : "30";
  const audience = environment === "production" ? "live" : "test";
  const loaded = useLoad(async () => {
    const asked = { environment: audience, from: new Date(Date.now() - Number(days) * DAY_MS).toISOString() };
    const [found, ruleset] = await Promise.all([api.manage<Found>("GET", "performance", undefined, asked), api.manage<Ruleset>("GET", "rules", undefined, { environment: audience })]);
    return { found, gone: former(found.rules, ruleset), modes: new Map(ruleset.rules.map(({ id, mode }) => [id, mode])) };
  }, [audience, days]);
  return (
    <>
      <form class="filters" aria-label="Window" onSubmit={(event) => event.preventDefault()}>
        <Field label="Time"><Choice value={days} options={Object.entries(RANGES)} onPick={(one) => change({ days: one === "30" ? undefined : one })} /></Field>
      </form>
      <Show of={loaded}>{({ found, gone, modes }) => (
        <>
          <ul class="numbers">
            <li><strong>{count(found.total.events)}</strong> events in {audience === "live" ? "production" : "staging and development"}</li>
            <li><strong>{count(found.total.labelled)}</strong> labeled</li>
            <li><strong>{count(found.total.fraud)}</strong> fraud</li>
            <li><strong>{count(found.total.legitimate)}</strong> legitimate</li>
          </ul>
          {found.total.labelled === 0 && <div class="empty"><p>No event of this window has a label. Label events on their pages, close <a href={link("reviews")}>reviews</a>, or import labels with <code>svc label import</code>.</p></div>}
          <p class="quiet">Precision: how many of the labeled events are fraud, with its 95 % interval. Recall: how much of all labeled fraud is among them. Unlabeled events count as neither.</p>
          <Lines title="Rules" lines={found.rules} gone={gone} linked={({ rule_id }) => matchesOf(rule_id, modes.get(rule_id ?? ""))} />
          <Levels lines={found.levels} />
          <Scores lines={found.scores} />
          <Lines title="Signals" lines={found.signals} linked={({ name }) => ({ signal: name })} />
          <Lines title="Groups of signals" lines={found.groups} linked={({ name }) => ({ group: name })} />
        </>
      )}</Show>
    </>
  );
}

function Lines({ title, lines, linked, gone }: { title: string; lines: PerformanceLine[]; linked: (line: PerformanceLine) => Record<string, string | undefined>; gone?: Set<string> }) {
  const link = useLink();
  const columns = useMemo((): Column<PerformanceLine>[] => [
    { head: "Name", cell: (line) => <><a href={link("events", "", { ...linked(line), window: "30d" })}>{line.name}</a>{gone?.has(line.rule_id ?? "") && <> <span class="quiet">no longer in force</span></>}</> },
    { head: "Events", cell: (line) => count(line.events), number: true },
    { head: "Labeled", cell: (line) => count(line.labelled), number: true },
    { head: "Fraud", cell: (line) => count(line.fraud), number: true },
    { head: "Legitimate", cell: (line) => count(line.legitimate), number: true },
    { head: "Precision", cell: (line) => precisionOf(line), number: true },
    { head: "Recall", cell: (line) => (line.recall === null ? "" : `${Math.round(100 * line.recall)} %`), number: true },
  ], [linked, gone]);
  return <Card title={title}><Table name={title} columns={columns} rows={lines} keyOf={(line) => line.rule_id ?? line.name} empty={<p>None in this window.</p>} /></Card>;
}

/** Each level with a bar of what its labeled events are. */
function Levels({ lines }: { lines: PerformanceLine[] }) {
  return (
    <>
      <Lines title="Levels" lines={lines} linked={({ name }) => ({ level: name })} />
      <Card title="Labels by level">
        <ul class="bars labels" aria-label="Labels by level">
          {lines.map((line) => (
            <li key={line.name}>
              <span class="label">{line.name}</span>
              <span class="track split" aria-hidden="true">
                {line.fraud > 0 && <span class="fill fraud" style={{ width: `${(100 * line.fraud) / line.labelled}%` }} />}
                {line.legitimate > 0 && <span class="fill legitimate" style={{ width: `${(100 * line.legitimate) / line.labelled}%` }} />}
              </span>
              <span class="number">{count(line.fraud)} fraud, {count(line.legitimate)} legitimate</span>
            </li>
          ))}
        </ul>
      </Card>
    </>
  );
}
