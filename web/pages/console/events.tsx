/** Events: the list, with every filter in the address; what is shown as a file; and lists for those that are chosen. */
/** @jsxImportSource preact */
import { useRef, useState } from "preact/hooks";
import { AddToList } from "./addtolist.js";
import { useEventColumns } from "./eventcolumns.js";
import { FilterBar } from "./filterbar.js";
import { FILTERS, filters, matchesOf, period } from "./filters.js";
import { count, many, total } from "./format.js";
import { LabelMany } from "./judging/label.js";
import { SavedViews } from "./saved.js";
import { audienceOf, useAnswer, useConsole, useLoad, usePages, useQuery } from "./state.js";
import { Button, Choice, Field, More, Problem, Show, Table, useSelection } from "./ui.js";
import type { EventRow, Page, Ruleset, Total } from "./wire.js";

export { Event } from "./event.js";

const LIMIT = 50;

export function Events() {
  const { api, environment, place: { query } } = useConsole();
  const deps = [environment, JSON.stringify(query)];
  // A cursor continues the window with which its page was asked for.
  const window = useRef<ReturnType<typeof period>>();
  const { loaded, more, busy, error } = usePages(
    (cursor, signal) => {
      if (cursor === undefined) window.current = period(query, Date.now());
      return api.get<Page & { rows: EventRow[] }>("events", { environment, limit: LIMIT, ...filters(query), ...window.current, cursor }, signal);
    },
    (answer) => answer.rows,
    deps,
  );
  const counted = useLoad((signal) => api.get<Total>("events/count", { environment, ...filters(query), ...period(query, Date.now()) }, signal), deps);
  const all = counted.error === undefined && !counted.busy ? counted.value : undefined;
  const rows = loaded.value?.rows ?? [];
  const columns = useEventColumns(rows);
  const selection = useSelection(rows.map((row) => row.request_id));
  return (
    <>
      <FilterBar names={FILTERS} windowed><OfRules /><SavedViews /></FilterBar>
      <Export total={all} />
      {selection.chosen.size > 0 && <Chosen rows={rows.filter((row) => selection.chosen.has(row.request_id))} onDone={() => selection.choose(new Set())} onLabeled={() => { selection.choose(new Set()); loaded.reload(); }} />}
      <Show of={loaded}>{({ rows, cursor }) => (
        <>
          <Table
            name="Events, newest first"
            columns={columns}
            rows={rows}
            keyOf={(row) => row.request_id}
            rowClass={() => "event"}
            selection={selection}
            empty={<p>{cursor === undefined ? `No event in ${environment} matches. Widen the time, clear a filter, or choose another environment above.` : "None of the newest events match. Look further back."}</p>}
          />
          <p class="quiet" role="status">{rows.length > 0 && (cursor === undefined ? `${many(rows.length, "event")}, no older ones in this window.` : `The newest ${count(rows.length)}${all ? ` of ${total(all, "event")}` : "; there are older ones"}.`)}</p>
          <More show={cursor !== undefined} busy={busy} error={error} onMore={more} />
        </>
      )}</Show>
    </>
  );
}

/** A rule whose events are asked for, of those in force. */
function OfRules() {
  const { api, environment, place: { query } } = useConsole();
  const change = useQuery();
  const audience = audienceOf(environment);
  const { value } = useLoad(() => api.manage<Ruleset>("GET", "rules", undefined, { environment: audience }), [audience]);
  const rules = value?.rules ?? [];
  if (rules.length === 0) return null;
  const options = [["", "any"], ...rules.map(({ id, name }) => [id, name])] as [string, string][];
  if (query.rule && !rules.some(({ id }) => id === query.rule)) options.push([query.rule, "another one"]);
  const pick = (id: string) => change({ shadow: undefined, ...matchesOf(id || undefined, rules.find((rule) => rule.id === id)?.mode) });
  return <Field label="Rule"><Choice value={query.rule ?? ""} options={options} onPick={pick} /></Field>;
}

/** How many events the view has, and all of them as a file, not only those that are on the screen. */
function Export({ total: all }: { total: Total | undefined }) {
  const { api, environment, place: { query } } = useConsole();
  const save = useAnswer([environment, query], async (format: string) => {
    const asked = { environment, ...filters(query), ...period(query, Date.now()), format };
    // The browser takes a file by its address, and shows nothing of a refusal: so that is asked for first.
    const control = new AbortController();
    await api.request("GET", "events/export", { query: asked, signal: control.signal });
    control.abort();
    const anchor = document.createElement("a");
    anchor.href = `console/api/events/export?${new URLSearchParams(asked)}`;
    anchor.download = "";
    anchor.click();
  });
  return (
    <>
      <p class="buttons lone">
        <strong role="status">{all && total(all, "event")}</strong>
        <span class="quiet">Export:</span>
        <Button kind="small" busy={save.busy} name="Export as CSV" onClick={() => save.run("csv")}>CSV</Button>
        <Button kind="small" busy={save.busy} name="Export as JSON lines" onClick={() => save.run("jsonl")}>JSON lines</Button>
      </p>
      <Problem error={save.error} />
    </>
  );
}

function Chosen({ rows, onDone, onLabeled }: { rows: EventRow[]; onDone: () => void; onLabeled: () => void }) {
  const [opened, open] = useState<"list" | "label">();
  return (
    <div class="bottom-bar">
      <p class="buttons">
        <span role="status">{many(rows.length, "event")} selected</span>
        <Button judge kind="primary" onClick={() => open("label")}>Label …</Button>
        <Button judge kind="primary" onClick={() => open("list")}>Add to a list …</Button>
        <Button onClick={onDone}>Clear selection</Button>
      </p>
      {opened === "list" && <AddToList rows={rows} onClose={() => open(undefined)} onDone={onDone} />}
      {opened === "label" && <LabelMany rows={rows} onClose={() => open(undefined)} onDone={onLabeled} />}
    </div>
  );
}
