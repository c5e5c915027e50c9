/** Audit: who changed what. */
/** @jsxImportSource preact */
import { words } from "./format.js";
import { usePages } from "./lists.js";
import { useConsole, useQuery } from "./state.js";
import { type Column, Field, More, Problem, Show, Table, Time } from "./ui.js";
import type { AuditRecord, Page } from "./wire.js";

const text = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

const COLUMNS: Column<AuditRecord>[] = [
  { head: "Time", cell: (row) => <Time at={row.at} /> },
  { head: "Action", cell: (row) => <strong>{row.action}</strong> },
  { head: "Subject", cell: (row) => row.subject && <code>{row.subject}</code> },
  { head: "By", cell: ({ actor }) => [words(actor.kind), actor.name ?? actor.id, actor.role && `(${actor.role})`, actor.place].filter(Boolean).join(" ") },
  { head: "Change", cell: (row) => <ul class="change">{Object.entries(row.change).map(([name, value]) => <li><span class="quiet">{name}</span> {text(value)}</li>)}</ul> },
];

export function Audit() {
  const { api, place: { query: { action, actor } } } = useConsole();
  const change = useQuery();
  const { loaded, more, busy, error } = usePages(
    (cursor, signal) => api.get<Page & { records: AuditRecord[] }>("audit", { limit: 50, action, actor, cursor }, signal),
    (answer) => answer.records,
    [action, actor],
  );
  return (
    <>
      <form class="filters" role="search" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
        <Field label="Action"><input value={action ?? ""} placeholder="issueSdkKey" onChange={(event) => change({ action: event.currentTarget.value.trim() })} /></Field>
        <Field label="By"><input value={actor ?? ""} placeholder="id or name of a key" onChange={(event) => change({ actor: event.currentTarget.value.trim() })} /></Field>
      </form>
      <Show of={loaded}>{({ rows, cursor }) => (
        <>
          <Table name="Changes, newest first" columns={COLUMNS} rows={rows} keyOf={(row) => row.id} empty={<p>{cursor !== undefined ? "None of the newest changes match. Look further back." : action || actor ? "No change matches. Clear the filters." : "Nothing was changed yet."}</p>} />
          <Problem error={error} retry={more} />
          <More show={cursor !== undefined} busy={busy} onMore={more} />
        </>
      )}</Show>
    </>
  );
}
