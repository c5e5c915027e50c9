/** Audit: who changed what. */
/** @jsxImportSource preact */
import { useRef } from "preact/hooks";
import { Entry, Filters, WindowFilter } from "./filterbar.js";
import { ALL_WINDOWS, openPeriod } from "./filters.js";
import { words } from "./format.js";
import { useConsole, usePages, useQuery } from "./state.js";
import { type Column, Field, More, Show, Table, Time } from "./ui.js";
import type { AuditRecord, Page } from "./wire.js";

const text = (value: unknown): string =>
  typeof value === "string" ? value : Array.isArray(value) && value.length > 0 ? value.map(text).join(", ") : JSON.stringify(value);

const COLUMNS: Column<AuditRecord>[] = [
  { head: "Time", cell: (row) => <Time at={row.at} /> },
  { head: "Action", cell: (row) => <strong>{row.action}</strong> },
  { head: "Subject", cell: (row) => row.subject && <code>{row.subject}</code> },
  { head: "By", cell: ({ actor }) => [words(actor.kind), actor.name, actor.id, actor.role && `(${actor.role})`, actor.place].filter(Boolean).map((part) => <><bdi>{part}</bdi> </>) },
  { head: "Change", cell: (row) => <ul class="change">{Object.entries(row.change).map(([name, value]) => <li><span class="quiet">{name}</span> <bdi>{text(value)}</bdi></li>)}</ul> },
];

export function Audit() {
  const { api, place: { query } } = useConsole();
  const { action, actor } = query;
  const change = useQuery();
  const isFiltered = [action, actor, query.window].some((value) => value !== undefined);
  // A cursor continues the window with which its page was asked for.
  const window = useRef<ReturnType<typeof openPeriod>>();
  const { loaded, more, busy, error } = usePages(
    (cursor, signal) => {
      if (cursor === undefined) window.current = openPeriod(query, Date.now());
      return api.get<Page & { records: AuditRecord[] }>("audit", { limit: 50, action, actor, ...window.current, cursor }, signal);
    },
    (answer) => answer.records,
    [JSON.stringify(query)],
  );
  return (
    <>
      <Filters clear={isFiltered}>
        <WindowFilter names={ALL_WINDOWS} preset="all" />
        <Field label="Action"><Entry value={action ?? ""} placeholder="issueSdkKey" maxLength={200} onEnter={(text) => change({ action: text.trim() })} /></Field>
        <Field label="By"><Entry value={actor ?? ""} placeholder="id or name" maxLength={200} onEnter={(text) => change({ actor: text.trim() })} /></Field>
      </Filters>
      <Show of={loaded}>{({ rows, cursor }) => (
        <>
          <Table name="Changes, newest first" columns={COLUMNS} rows={rows} keyOf={(row) => row.id} empty={<p>{cursor !== undefined ? "None of the newest changes match. Look further back." : isFiltered ? "No change matches. Widen the time, or clear the filters." : "No changes yet."}</p>} />
          <More show={cursor !== undefined} busy={busy} error={error} onMore={more} />
        </>
      )}</Show>
    </>
  );
}
