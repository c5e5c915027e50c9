/** Events: the list, with every filter in the address; what is shown as a file; and lists for those that are chosen. */
/** @jsxImportSource preact */
import { useRef, useState } from "preact/hooks";
import { AddToList } from "./addtolist.js";
import { useEventColumns } from "./eventlist.js";
import { FilterBar } from "./filterbar.js";
import { FILTERS, filters, period } from "./filters.js";
import { many } from "./format.js";
import { LabelMany } from "./judging/label.js";
import { usePages } from "./lists.js";
import { SavedViews } from "./saved.js";
import { useAction, useConsole } from "./state.js";
import { Button, More, Problem, Show, Table, useSelection } from "./ui.js";
import type { EventRow, Page } from "./wire.js";

const LIMIT = 50;

export function Events() {
  const { api, environment, place: { query } } = useConsole();
  const deps = [environment, JSON.stringify(query)];
  // A cursor goes on in the window that its page was asked for with.
  const window = useRef<ReturnType<typeof period>>();
  const { loaded, more, busy, error } = usePages(
    (cursor, signal) => {
      if (cursor === undefined) window.current = period(query, Date.now());
      return api.get<Page & { rows: EventRow[] }>("events", { environment, limit: LIMIT, ...filters(query), ...window.current, cursor }, signal);
    },
    (answer) => answer.rows,
    deps,
  );
  const rows = loaded.value?.rows ?? [];
  const columns = useEventColumns(rows);
  const selection = useSelection(rows.map((row) => row.request_id));
  return (
    <>
      <FilterBar names={FILTERS} windowed><SavedViews /></FilterBar>
      <Export />
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
          <Problem error={error} retry={more} />
          <p class="quiet" role="status">{rows.length > 0 && `${many(rows.length, "event")}${cursor === undefined ? ", no older ones in this window." : "; there are older ones."}`}</p>
          <More show={cursor !== undefined} busy={busy} onMore={more} />
        </>
      )}</Show>
    </>
  );
}

/** The events of the view as a file: all of them, not only those that are on the screen. */
function Export() {
  const { api, environment, place: { query } } = useConsole();
  const save = useAction(async (format: string) => {
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
        <span class="quiet">Export all events of this view:</span>
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
        <span role="status">{many(rows.length, "event")} chosen</span>
        <Button judge kind="primary" onClick={() => open("label")}>Label …</Button>
        <Button judge kind="primary" onClick={() => open("list")}>Add to a list …</Button>
        <Button onClick={onDone}>Choose none</Button>
      </p>
      {opened === "list" && <AddToList rows={rows} onClose={() => open(undefined)} onDone={onDone} />}
      {opened === "label" && <LabelMany rows={rows} onClose={() => open(undefined)} onDone={onLabeled} />}
    </div>
  );
}
