/** Columns that the lists of events share. */
/** @jsxImportSource preact */
import { country, shortVersion } from "./format.js";
import { useLink } from "./state.js";
import { AccountLink, type Column, Decided, Known, LabelBadge, Name, Signals, Time, Verdict, VisitorLink } from "./ui.js";
import type { Client, EventRow } from "./wire.js";

/** Browser and system in few words: of the version what people call it. */
export const client = (row: Client): string =>
  [[row.agent, shortVersion(row.agent_version)].filter(Boolean).join(" "), row.os].filter(Boolean).join(", ") || row.sdk_platform;

export function place(row: Pick<Client, "country_code" | "ip_address" | "anonymity_network">): string {
  return [row.country_code && country(row.country_code), row.ip_address, row.anonymity_network].filter(Boolean).join(" · ");
}

/** `place` in a row of a table: the address is never cut. Where a row is one line, the country is its code. */
export const Place = ({ row }: { row: Pick<Client, "country_code" | "ip_address" | "anonymity_network"> }) => (
  <span class="place" title={place(row)}>
    {row.country_code && <><span class="country"><span>{country(row.country_code)}</span><abbr title={country(row.country_code)}>{row.country_code}</abbr></span>{" · "}</>}
    {[row.ip_address, row.anonymity_network].filter(Boolean).join(" · ")}
  </span>
);

/** `rows` decide whether there are columns for decisions, labels and tags, which few events have. */
export function useEventColumns(rows: Pick<EventRow, "decision" | "tag" | "label">[]): Column<EventRow>[] {
  const link = useLink();
  const all: (Column<EventRow> | false)[] = [
    { head: "Time", cell: (row) => <a href={link("events", row.request_id)}><Time at={row.occurred_at} /></a> },
    { head: "Score", cell: (row) => <Verdict row={row} /> },
    rows.some((row) => row.decision) && { head: "Decision", cell: (row) => <Decided decision={row.decision} /> },
    rows.some((row) => row.label) && { head: "Label", cell: (row) => <LabelBadge label={row.label} reason={row.label_reason} /> },
    { head: "Visitor", cell: (row) => <><VisitorLink id={row.visitor_id} short /> <span class="quiet"><Known row={row} /></span></> },
    { head: "Account", cell: (row) => row.account_id && <AccountLink id={row.account_id} /> },
    { head: "Action", cell: (row) => row.action && <Name of={row.action} /> },
    { head: "Signals", cell: (row) => <Signals fired={row.signals} /> },
    { head: "From", cell: (row) => <Place row={row} /> },
    { head: "Client", cell: (row) => <span title={client(row)}>{client(row)}</span> },
    rows.some((row) => row.tag) && { head: "Tag", cell: (row) => row.tag && <span class="tag" title={row.tag}>{row.tag}</span> },
  ];
  return all.filter((column) => column !== false).map(({ head, cell }, index) => ({
    head,
    cell: (row) => (row.error ? index === 0 && `${row.error} ${row.request_id}` : cell(row)),
  }));
}
