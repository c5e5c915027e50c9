/** Overview: what happened by hour or day, and what it cost. */
/** @jsxImportSource preact */
import { useMemo } from "preact/hooks";
import { Chart, type Series } from "./chart.js";
import { FirstRun } from "./firstrun.js";
import { WorldMap } from "./map.js";
import { startOf, WINDOW_NAMES } from "./filters.js";
import { count, country, money, share, words } from "./format.js";
import { useConsole, useLink, useLoad, useQuery } from "./state.js";
import { Bars, Card, Choice, Facts, Field, Name, Show, Time } from "./ui.js";
import type { Actions, Billing, Counts, Networks, PeriodCounts, Statistics } from "./wire.js";

const RANGES = ["24h", "7d", "30d"];
const HOUR = 3_600_000;
const STEP_S = { hour: 3600, day: 86_400 };
const MAX_BARS = 10;

export function Overview() {
  const { api, environment, place: { query } } = useConsole();
  const change = useQuery();
  const range = RANGES.includes(query.window ?? "") ? query.window! : "24h";
  const step = query.step === "day" || query.step === "hour" ? query.step : range === "30d" ? "day" : "hour";
  const loaded = useLoad(async (signal) => {
    // The hours of Events, of which the last one goes on.
    const now = Date.now(), start = startOf(range, now), length = HOUR * Math.ceil((now - start) / HOUR);
    const at = (time: number) => new Date(time).toISOString();
    const of = (from: number, to: number) => api.get<Statistics>("statistics", { environment, from: at(from), to: at(to), step }, signal);
    const [statistics, before, networks, actions] = await Promise.all([
      of(start, now),
      // The service keeps 30 days: those before them are gone.
      range === "30d" ? undefined : of(start - length, start),
      api.get<Networks>("networks", { environment, from: at(start), to: at(now) }, signal),
      api.get<Actions>("actions", { environment, from: at(start), to: at(now) }, signal),
    ]);
    return { statistics, before, networks, actions };
  }, [environment, range, step]);
  return (
    <>
      <form class="filters" aria-label="Window" onSubmit={(event) => event.preventDefault()}>
        <Field label="Time"><Choice value={range} options={RANGES.map((one): [string, string] => [one, WINDOW_NAMES[one]!])} onPick={(window) => change({ window, step: undefined })} /></Field>
        <Field label="Per"><Choice value={step} options={["hour", "day"]} onPick={(one) => change({ step: one })} /></Field>
      </form>
      <Show of={loaded}>{(found) => <Shown {...found} />}</Show>
      <Money />
    </>
  );
}

/** A value for each period of the window, also for those without events. */
function useSeries(statistics: Statistics, to: (query: Record<string, string>) => string) {
  return useMemo(() => {
    const step = STEP_S[statistics.step];
    const first = Math.floor(Date.parse(statistics.from) / 1000 / step) * step;
    const end = Date.parse(statistics.to) / 1000;
    const times: number[] = [];
    for (let time = first; time < end; time += step) times.push(time);
    const known = new Map(statistics.periods.map((period) => [Date.parse(period.at) / 1000, period]));
    const of = (name: string, color: string, value: (counts: PeriodCounts) => number, query?: Record<string, string>): Series => ({
      name,
      color,
      ...(query && { href: to(query) }),
      values: times.map((time) => (known.has(time) ? value(known.get(time)!) : 0)),
    });
    const levels = [
      of("low", "--low-bar", ({ levels: { low } }) => low, { level: "low" }),
      of("medium", "--medium-bar", ({ levels: { medium } }) => medium, { level: "medium" }),
      of("high", "--high-bar", ({ levels: { high } }) => high, { level: "high" }),
      of("not scored", "--none-bar", ({ levels: { not_scored } }) => not_scored),
    ];
    const visitors = [
      of("returning", "--tone-3", (counts) => counts.returning),
      of("new", "--tone-0", (counts) => counts.new),
      of("not identifiable", "--none-bar", (counts) => counts.unidentifiable),
    ];
    const colors = { allow: "--low-bar", review: "--tone-0", challenge: "--medium-bar", block: "--high-bar" };
    const decisions = Object.entries(colors).map(([decision, color]) => of(decision, color, (counts) => counts.decisions[decision] ?? 0, { decision }));
    return { step, times, levels, visitors, decisions };
  }, [statistics]);
}

/** By how much a number grew since the period before, as people read it; nothing where there was none. */
export function growth(now: number, before: number | undefined): string {
  if (before === undefined) return "";
  if (before === 0) return now === 0 ? "as before" : "none before";
  const change = Math.round((100 * (now - before)) / before);
  return change === 0 ? "as before" : `${change > 0 ? "+" : "−"}${count(Math.abs(change))} %`;
}

const MAX_NETWORKS = 10;

function Shown({ statistics, before, networks, actions }: { statistics: Statistics; before: Statistics | undefined; networks: Networks; actions: Actions }) {
  const { environment, place: { query } } = useConsole();
  const link = useLink();
  const window = query.window ?? "24h";
  const to = (of: Record<string, string>) => link("events", "", { ...of, window });
  const { step, times, levels, visitors, decisions } = useSeries(statistics, to);
  const { totals } = statistics;
  const all = totals.identifications;
  if (all === 0) return <><div class="empty"><p>No identification in {environment} in this window. Choose another window or environment.</p></div><FirstRun /></>;
  const suspicious = totals.levels.medium + totals.levels.high;
  const earlier = before?.totals;
  const since = (now: number, of: (counts: Counts) => number) => before && <span class="quiet">{growth(now, earlier && of(earlier))}</span>;
  const decided = Object.values(totals.decisions).reduce((sum, one) => sum + one, 0);
  return (
    <>
      <ul class="numbers">
        <li><a href={to({})}><strong>{count(all)}</strong> identifications</a> {since(all, (counts) => counts.identifications)}</li>
        <li><strong>{count(suspicious)}</strong> suspicious, {share(suspicious, all)} {since(suspicious, (counts) => counts.levels.medium + counts.levels.high)}</li>
        <li><strong>{count(totals.new)}</strong> new visitors {since(totals.new, (counts) => counts.new)}</li>
        <li><a href={to({ decision: "block" })}><strong>{count(totals.decisions.block ?? 0)}</strong> blocked</a> {since(totals.decisions.block ?? 0, (counts) => counts.decisions.block ?? 0)}</li>
        <li><strong>{money(totals.amount_micros)}</strong> cost</li>
      </ul>
      {before && <p class="quiet">Compared with the period of the same length before.</p>}
      <Card title="Identifications by level"><Chart name="Identifications by level" times={times} step={step} series={levels} /></Card>
      {decided > 0 && <Card title="Decisions of the rules"><Chart name="Decisions of the rules" times={times} step={step} series={decisions} /></Card>}
      <Card title="New and returning visitors"><Chart name="New and returning visitors" times={times} step={step} series={visitors} /></Card>
      {totals.countries.length > 0 && <Card title="Map"><WorldMap counts={totals.countries} /></Card>}
      <div class="pair">
        <Card title="Actions">
          <Bars name="Actions" of={all} empty="No action. Send `action` with an identification." rows={actions.actions.slice(0, MAX_BARS).map(({ action, count: number }) => ({ key: action, label: <a href={to({ action })}><Name of={action} /></a>, count: number }))} />
          {!actions.is_complete && <p class="quiet">Since <Time at={actions.since} />.</p>}
        </Card>
        <Card title="Top signals">
          <Bars name="Signals" of={all} rows={totals.signals.slice(0, MAX_BARS).map((one) => ({ key: one.signal, label: <a href={to({ signal: one.signal })}><Name of={one.signal} /></a>, count: one.count }))} />
        </Card>
        <Card title="Countries">
          <Bars name="Countries" of={all} empty="No country is known. The operator of this service installs network data for that." rows={[...totals.countries].sort((one, other) => other.count - one.count).slice(0, MAX_BARS).map((one) => ({ key: one.country_code, label: <a href={to({ country: one.country_code })}>{country(one.country_code)}</a>, count: one.count }))} />
        </Card>
        <Card title="Networks">
          <Bars name="Networks" of={networks.events} empty="No network is known. The operator of this service installs network data for that." rows={networks.networks.slice(0, MAX_NETWORKS).map((one) => ({ key: one.asn, label: <a href={to({ asn: one.asn })}>{one.asn_name} <span class="quiet">AS{one.asn}</span></a>, count: one.events }))} />
          {!networks.is_complete && <p class="quiet">Of the newest {count(networks.events)} identifications.</p>}
        </Card>
        <Card title="Scores"><Bars name="Scores" of={all} rows={histogram(totals.scores)} /></Card>
        <Card title="Kinds of visitor">
          <Bars name="Kinds" of={all} rows={Object.entries(totals.kinds).filter(([, number]) => number > 0).map(([kind, number]) => ({ key: kind, label: <a href={to({ kind })}>{words(kind)}</a>, count: number }))} />
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
        ["Spent today (UTC), in production", money(account.today.amount_micros)],
      ]} />}</Show>
    </Card>
  );
}
