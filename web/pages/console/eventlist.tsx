/** Columns that the lists of events share. */
/** @jsxImportSource preact */
import { country, shortVersion } from "./format.js";
import { useLink } from "./state.js";
import { type Column, Known, Signals, Time, Verdict, VisitorLink } from "./ui.js";
import type { Client, EventRow } from "./wire.js";

/** Browser and system in few words: of the version what people call it. */
export const client = (row: Client): string =>
  [[row.agent, shortVersion(row.agent_version)].filter(Boolean).join(" "), row.os].filter(Boolean).join(", ") || row.sdk_platform;

export function place(row: Pick<Client, "country_code" | "ip_address" | "anonymity_network">): string {
  return [row.country_code && country(row.country_code), row.ip_address, row.anonymity_network].filter(Boolean).join(" · ");
}

export function useEventColumns({ visitor = true } = {}): Column<EventRow>[] {
  const link = useLink();
  const all: (Column<EventRow> | false)[] = [
    { head: "Time", cell: (row) => <a href={link("events", row.request_id)}><Time at={row.occurred_at} /></a> },
    { head: "Score", cell: (row) => <Verdict row={row} /> },
    visitor && { head: "Visitor", cell: (row) => <VisitorLink id={row.visitor_id} short /> },
    { head: "Known", cell: (row) => <Known row={row} /> },
    { head: "Signals", cell: (row) => <Signals fired={row.signals} /> },
    { head: "From", cell: (row) => place(row) },
    { head: "Client", cell: (row) => client(row) },
    { head: "Tag", cell: (row) => row.tag && <span class="tag" title={row.tag}>{row.tag}</span> },
  ];
  return all.filter((column): column is Column<EventRow> => column !== false);
}
