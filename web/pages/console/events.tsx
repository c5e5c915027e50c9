/** Events: the list, with every filter in the address. */
/** @jsxImportSource preact */
import { useRef } from "preact/hooks";
import { useEventColumns } from "./eventlist.js";
import { FilterBar } from "./filterbar.js";
import { FILTERS, filters, period } from "./filters.js";
import { many } from "./format.js";
import { usePages } from "./lists.js";
import { useConsole } from "./state.js";
import { More, Problem, Show, Table } from "./ui.js";
import type { EventRow, Page } from "./wire.js";

const LIMIT = 50;

export function Events() {
  const { api, environment, place: { query } } = useConsole();
  const columns = useEventColumns();
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
  return (
    <>
      <FilterBar names={FILTERS} windowed />
      <Show of={loaded}>{({ rows, cursor }) => (
        <>
          <Table
            name="Events, newest first"
            columns={columns}
            rows={rows}
            keyOf={(row) => row.request_id}
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
