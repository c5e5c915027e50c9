/** Attempts to deliver webhooks, as a table. */
/** @jsxImportSource preact */
import { words } from "./format.js";
import { useAction, useConsole } from "./state.js";
import { Button, type Column, Problem, Table, Time } from "./ui.js";
import type { Attempt } from "./wire.js";

const TONES: Record<string, string> = { delivered: "low", retrying: "medium", failed: "high" };

export function Attempts({ rows, empty }: { rows: Attempt[]; empty: string }) {
  const { api, notify } = useConsole();
  const redeliver = useAction(async (row: Attempt) => {
    await api.manage("POST", `webhooks/${row.endpoint_id}/redeliver`, { event_id: row.event_id });
    notify("Queued. The attempt appears in the list once it is made.");
  });
  const columns: Column<Attempt>[] = [
    { head: "Time", cell: (row) => <Time at={row.occurred_at} /> },
    { head: "Outcome", cell: (row) => <span class={`badge ${TONES[row.status]}`}>{row.status}</span> },
    { head: "Response", cell: (row) => row.response_code ?? (row.error ? words(row.error) : "") },
    { head: "Took", cell: (row) => `${row.duration_ms} ms`, number: true },
    { head: "Attempt", cell: (row) => row.attempt, number: true },
    { head: "Event", cell: (row) => row.event },
    { head: "Endpoint", cell: (row) => <span class="url">{row.endpoint_url}</span> },
    { head: "Action", cell: (row) => <Button developer kind="small" busy={redeliver.busy} name={`Redeliver ${row.event} of ${row.occurred_at}`} onClick={() => redeliver.run(row)}>Redeliver</Button> },
  ];
  return <><Problem error={redeliver.error} /><Table name="Delivery attempts, newest first" columns={columns} rows={rows} keyOf={(row) => row.id} empty={<p>{empty}</p>} /></>;
}
