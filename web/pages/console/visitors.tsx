/** Visitors: the newest ones, or those seen with a tag or from an address. */
/** @jsxImportSource preact */
import { FilterBar } from "./filterbar.js";
import { usePages } from "./lists.js";
import { useConsole } from "./state.js";
import { type Column, More, Problem, Show, Table, Time, VisitorLink } from "./ui.js";
import type { Page, VisitorRow } from "./wire.js";

const COLUMNS: Column<VisitorRow>[] = [
  { head: "Visitor", cell: (row) => <VisitorLink id={row.visitor_id} /> },
  { head: "First seen", cell: (row) => <Time at={row.first_seen} /> },
  { head: "Last seen", cell: (row) => <Time at={row.last_seen} /> },
  { head: "Events", cell: (row) => row.events, number: true },
];
const matching = (head: string): Column<VisitorRow> => ({ head, cell: (row) => row.matching_events ?? "", number: true });

export function Visitors() {
  const { api, environment, place: { query: { tag, ip_address } } } = useConsole();
  const { loaded, more, busy, error } = usePages(
    (cursor, signal) => api.get<Page & { visitors: VisitorRow[] }>("visitors", { environment, tag, ip_address, limit: 50, cursor }, signal),
    (answer) => answer.visitors,
    [environment, tag, ip_address],
  );
  return (
    <>
      <FilterBar names={["tag", "ip_address"]} single />
      {tag && <p>Visitors that were seen with the tag <strong class="tag">{tag}</strong>.</p>}
      <Show of={loaded}>{({ rows, cursor }) => (
        <>
          <Table name="Visitors" columns={tag || ip_address ? [...COLUMNS, matching(tag ? "With this tag" : "At this address")] : COLUMNS} rows={rows} keyOf={(row) => row.visitor_id} empty={<p>{cursor !== undefined ? `None of the newest visitors was seen in ${environment}. Look further back.` : `No visitor was seen${tag || ip_address ? " with this" : ""} in ${environment}. Choose another environment above${tag || ip_address ? ", or clear the filter" : ""}.`}</p>} />
          <Problem error={error} retry={more} />
          <More show={cursor !== undefined} busy={busy} onMore={more}>Show more</More>
        </>
      )}</Show>
    </>
  );
}
