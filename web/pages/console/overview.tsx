/** Overview: what happened by hour or day, and what it cost. */
/** @jsxImportSource preact */
import { useMemo } from "preact/hooks";
import { Chart, type Series } from "./chart.js";
import { WINDOW_NAMES, WINDOWS } from "./filters.js";
import { count, country, money, share, words } from "./format.js";
import { useConsole, useLink, useLoad, useQuery } from "./state.js";
import { Bars, Card, Choice, Facts, Field, Name, Show } from "./ui.js";
import type { Billing, Counts, Statistics } from "./wire.js";

const RANGES = ["24h", "7d", "30d"];
const STEP_S = { hour: 3600, day: 86_400 };
const MOST_BARS = 10;

export function Overview() {
  const { api, environment, place: { query } } = useConsole();
  const change = useQuery();
  const range = RANGES.includes(query.window ?? "") ? query.window! : "24h";
  const step = query.step === "day" || query.step === "hour" ? query.step : range === "30d" ? "day" : "hour";
  const loaded = useLoad((signal) => {
    const now = Date.now();
    const from = new Date(now - WINDOWS[range]! + (range === "30d" ? 60_000 : 0)).toISOString();
    return api.get<Statistics>("statistics", { environment, from, to: new Date(now).toISOString(), step }, signal);
  }, [environment, range, step]);
  return (
    <>
      <form class="filters" aria-label="Window" onSubmit={(event) => event.preventDefault()}>
        <Field label="Time"><Choice value={range} options={RANGES.map((one): [string, string] => [one, WINDOW_NAMES[one]!])} onPick={(window) => change({ window, step: undefined })} /></Field>
        <Field label="Per"><Choice value={step} options={["hour", "day"]} onPick={(one) => change({ step: one })} /></Field>
      </form>
      <Show of={loaded}>{(statistics) => <Shown statistics={statistics} />}</Show>
      <Money />
    </>
  );
}

/** A value for each period of the window, also for those without events. */
function useSeries(statistics: Statistics) {
  return useMemo(() => {
    const step = STEP_S[statistics.step];
    const first = Math.floor(Date.parse(statistics.from) / 1000 / step) * step;
    const end = Date.parse(statistics.to) / 1000;
    const times: number[] = [];
    for (let time = first; time < end; time += step) times.push(time);
    const known = new Map(statistics.periods.map((period) => [Date.parse(period.at) / 1000, period]));
    const of = (name: string, color: string, value: (counts: Counts) => number): Series => ({
      name,
      color,
      values: times.map((time) => (known.has(time) ? value(known.get(time)!) : 0)),
    });
    const levels = [
      of("low", "--low-bar", ({ levels: { low } }) => low),
      of("medium", "--medium-bar", ({ levels: { medium } }) => medium),
      of("high", "--high-bar", ({ levels: { high } }) => high),
      of("not scored", "--none-bar", ({ levels: { not_scored } }) => not_scored),
    ];
    const visitors = [
      of("returning", "--tone-3", (counts) => counts.returning),
      of("new", "--tone-2", (counts) => counts.new),
      of("not identifiable", "--none-bar", (counts) => counts.unidentifiable),
    ];
    return { step, times, levels, visitors };
  }, [statistics]);
}

function Shown({ statistics }: { statistics: Statistics }) {
  const { environment, place: { query } } = useConsole();
  const link = useLink();
  const { step, times, levels, visitors } = useSeries(statistics);
  const { totals } = statistics;
  const all = totals.identifications;
  const window = query.window ?? "24h";
  if (all === 0) {
    return <div class="empty"><p>No identification in {environment} in this window.</p><p>Choose another window or environment, or <a href={link("keys")}>put the snippet of a key on a page</a>.</p></div>;
  }
  const suspicious = totals.levels.medium + totals.levels.high;
  return (
    <>
      <ul class="numbers">
        <li><strong>{count(all)}</strong> identifications</li>
        <li><strong>{share(suspicious, all)}</strong> suspicious</li>
        <li><strong>{share(totals.new, all)}</strong> new visitors</li>
        <li><strong>{money(totals.amount_micros)}</strong> spent</li>
      </ul>
      <Card title="Identifications by level"><Chart name="Identifications by level" times={times} step={step} series={levels} /></Card>
      <Card title="New and returning visitors"><Chart name="New and returning visitors" times={times} step={step} series={visitors} /></Card>
      <div class="pair">
        <Card title="Top signals">
          <Bars name="Signals" of={all} rows={totals.signals.slice(0, MOST_BARS).map((one) => ({ key: one.signal, label: <a href={link("events", "", { signal: one.signal, window })}><Name of={one.signal} /></a>, count: one.count }))} />
        </Card>
        <Card title="Countries">
          <Bars name="Countries" of={all} empty="No country is known. The operator of this service installs network data for that." rows={[...totals.countries].sort((one, other) => other.count - one.count).slice(0, MOST_BARS).map((one) => ({ key: one.country_code, label: <a href={link("events", "", { country: one.country_code, window })}>{country(one.country_code)}</a>, count: one.count }))} />
        </Card>
        <Card title="Scores"><Bars name="Scores" of={all} rows={histogram(totals.scores)} /></Card>
        <Card title="Kinds of visitor">
          <Bars name="Kinds" of={all} rows={Object.entries(totals.kinds).filter(([, number]) => number > 0).map(([kind, number]) => ({ key: kind, label: <a href={link("events", "", { kind, window })}>{words(kind)}</a>, count: number }))} />
        </Card>
      </div>
    </>
  );
}

/** Where the parts of the histogram begin, of which the service leaves the empty ones out. */
const SCORES = [0, 1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 150, 200, 300, 500];

function histogram(scores: [number, number][]) {
  const known = new Map(scores);
  const highest = Math.max(...known.keys());
  return SCORES.filter((from) => from <= highest).map((from) => {
    const next = SCORES.find((one) => one > from);
    const label = next === undefined ? `${from} and more` : next === from + 1 ? String(from) : `${from} to ${next - 1}`;
    return { key: String(from), label, count: known.get(from) ?? 0 };
  });
}

function Money() {
  const { api } = useConsole();
  const link = useLink();
  const loaded = useLoad((signal) => api.get<Billing>("billing", {}, signal), []);
  return (
    <Card title="Credit and spend" actions={<a href={link("billing")}>Billing</a>}>
      <Show of={loaded}>{(account) => <Facts rows={[
        ["Balance", money(account.balance_micros)],
        ["Status", words(account.status)],
        ["Spent today, in production", money(account.today.amount_micros)],
      ]} />}</Show>
    </Card>
  );
}
