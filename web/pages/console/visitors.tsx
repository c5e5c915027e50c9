/** Visitors and accounts: by when they were seen, or by what they have most of; and visitors seen with a tag or at an address. */
/** @jsxImportSource preact */
import { client, Place } from "./eventcolumns.js";
import { FilterBar } from "./filterbar.js";
import { count, many, upTo64 } from "./format.js";
import { SavedViews } from "./saved.js";
import { useAnswer, useConsole, usePages, useQuery } from "./state.js";
import { AccountLink, Button, Choice, type Column, Decided, Field, More, Problem, Rebuilt, Show, Table, Time, Verdict, VisitorLink } from "./ui.js";
import type { LookedAt, Page, SubjectRow, VisitorRow } from "./wire.js";

export { Account } from "./useraccount.js";
export { Visitor } from "./visitor.js";

type Listed = "visitors" | "accounts";
const LIMIT = 50;
/** A list that is sorted by a count has no further pages. */
const SORTED = 200;
const OTHERS = { visitors: "accounts", accounts: "visitors" } as const;
const LEVEL: Record<Listed, string> = { visitors: "Level in 24 h", accounts: "Level in 24 h" };

const counted = (head: string, name: keyof SubjectRow["velocity"]): Column<SubjectRow> => ({
  head,
  sort: name,
  number: true,
  cell: (row) => upTo64(row.velocity[name]?.["30d"] ?? 0),
});

/** The orders of a list, by their names in the address. */
const orders = (listed: Listed): [string, string][] => [
  ["", "last seen"],
  ["score", "last score"],
  [OTHERS[listed], OTHERS[listed]],
  ["events", "events"],
  ["addresses", "addresses"],
  ["countries", "countries"],
];

/** What people see of an id: without case, width, blanks and invisible characters. */
export const folded = (id: string): string =>
  id.normalize("NFKC").toLowerCase().replace(/[\s\p{Cf}\u034f\u115f\u1160\u17b4\u17b5\ufe00-\ufe0f]/gu, "");

/** Those of these accounts that look like another one, each with that other one. */
export function alike(ids: string[]): Map<string, string> {
  const first = new Map<string, string>();
  const found = new Map<string, string>();
  for (const id of ids) {
    const other = first.get(folded(id));
    if (other === undefined) first.set(folded(id), id);
    else if (other !== id) {
      found.set(id, other);
      if (!found.has(other)) found.set(other, id);
    }
  }
  return found;
}

function columnsOf(listed: Listed, looksLike: Map<string, string>): Column<SubjectRow>[] {
  return [
    listed === "visitors"
      ? { head: "Visitor", cell: (row) => <VisitorLink id={row.visitor_id!} short /> }
      : { head: "Account", cell: (row) => <><AccountLink id={row.account_id!} />{looksLike.has(row.account_id!) && <> <span class="badge medium" title={`Counts apart from ${JSON.stringify(looksLike.get(row.account_id!))}: they differ in case, blanks or invisible characters.`}>looks like another</span></>}</> },
    { head: "Last seen", sort: "last_seen", cell: (row) => <Time at={row.last_seen_at} /> },
    { head: "Last score", sort: "score", cell: (row) => <Verdict row={row.last_event} /> },
    { head: LEVEL[listed], cell: (row) => row.level && <span class={`badge ${row.level}`}>{row.level}</span> },
    { head: "Decision", cell: (row) => <Decided decision={row.last_event.decision} /> },
    counted(listed === "visitors" ? "Accounts" : "Visitors", OTHERS[listed]),
    counted("Events", "events"),
    counted("Addresses", "addresses"),
    counted("Countries", "countries"),
    { head: "Last from", cell: (row) => <Place row={row.last_event} /> },
    listed === "visitors"
      ? { head: "Client", cell: (row) => <span title={client(row.last_event)}>{client(row.last_event)}</span> }
      : { head: "First seen", cell: (row) => <Time at={row.first_seen_at} /> },
  ];
}

type Found = Page & { visitors?: SubjectRow[]; accounts?: SubjectRow[]; looked_at?: LookedAt; counted_since?: string };

function Subjects({ listed }: { listed: Listed }) {
  const { api, environment, place: { query } } = useConsole();
  const change = useQuery();
  const least = listed === "visitors" ? "min_accounts" : "min_visitors";
  const names = ["q", least, "level", "country", "network"];
  const sort = orders(listed).some(([name]) => name === query.sort) ? query.sort! : "";
  const asked = Object.fromEntries(names.flatMap((name) => (query[name] === undefined ? [] : [[name, query[name]]])));
  const { loaded, more, busy, error } = usePages(
    (cursor, signal) => api.get<Found>(`seen-${listed}`, { environment, limit: sort ? SORTED : LIMIT, ...asked, sort, cursor }, signal),
    (page) => (page[listed] ?? []).map((row) => ({ row, page })),
    [listed, environment, sort, JSON.stringify(asked)],
  );
  const one = listed === "visitors" ? "visitor" : "account";
  // Every one that fits is looked at, which takes a second or two: only who asks for the count waits.
  const counting = useAnswer([environment, asked], () => api.get<Found>(`seen-${listed}`, { environment, limit: 1, ...asked, sort: "score" }));
  return (
    <>
      <FilterBar names={names}>
        <Field label="Order"><Choice value={sort} options={orders(listed)} onPick={(by) => change({ sort: by })} /></Field>
        <SavedViews />
      </FilterBar>
      <Show of={loaded}>{({ rows, cursor }) => {
        const { looked_at: lookedAt = counting.value?.looked_at, counted_since: since } = rows[0]?.page ?? {};
        return (
          <>
            <Table
              name={listed === "visitors" ? "Visitors" : "Accounts"}
              columns={columnsOf(listed, alike(rows.flatMap(({ row }) => row.account_id ?? [])))}
              rows={rows.map(({ row }) => row)}
              keyOf={(row) => row.visitor_id ?? row.account_id!}
              rowClass={() => "event"}
              sorting={{ by: sort || "last_seen", sort: (by) => change({ sort: by === "last_seen" ? undefined : by }) }}
              empty={<p>{cursor !== undefined ? `None of the newest ${one}s match. Look further back.` : `No ${one} in ${environment} matches. ${listed === "accounts" ? "Send account_id with an identification to see accounts here. " : ""}Clear a filter, or choose another environment above.`}</p>}
            />
            <p class="quiet">Counts cover 30 days; 64+ means 64 or more.{lookedAt && ` The first ${rows.length} of ${count(lookedAt.subjects)} that match`}{lookedAt && !lookedAt.is_complete && lookedAt.since && <>, of the newest 10,000 events, since <Time at={lookedAt.since} /></>}{lookedAt && "."}{!lookedAt && cursor === undefined && rows.length > 0 && ` ${many(rows.length, one)} in all.`} {!lookedAt && cursor !== undefined && <Button kind="small" busy={counting.busy} onClick={counting.run}>Count all matches</Button>}<Rebuilt since={since} /></p>
            <Problem error={counting.error} />
            <More show={cursor !== undefined} busy={busy} error={error} onMore={more}>Show more</More>
          </>
        );
      }}</Show>
    </>
  );
}

export function Visitors() {
  const { place: { query: { tag, ip_address } } } = useConsole();
  return tag || ip_address ? <SeenWith /> : <Subjects listed="visitors" />;
}

export const Accounts = () => <Subjects listed="accounts" />;

const COLUMNS: Column<VisitorRow>[] = [
  { head: "Visitor", cell: (row) => <VisitorLink id={row.visitor_id} /> },
  { head: "First seen", cell: (row) => <Time at={row.first_seen} /> },
  { head: "Last seen", cell: (row) => <Time at={row.last_seen} /> },
  { head: "Events", cell: (row) => row.events, number: true },
];
const matching = (head: string): Column<VisitorRow> => ({ head, cell: (row) => row.matching_events ?? "", number: true });

/** Who was seen with one tag or at one address. */
function SeenWith() {
  const { api, environment, place: { query: { tag, ip_address } } } = useConsole();
  const { loaded, more, busy, error } = usePages(
    (cursor, signal) => api.get<Page & { visitors: VisitorRow[] }>("visitors", { environment, tag, ip_address, limit: LIMIT, cursor }, signal),
    (page) => page.visitors,
    [environment, tag, ip_address],
  );
  return (
    <>
      <FilterBar names={["tag", "ip_address"]} single />
      <p>Visitors of the newest 500 events {tag ? <>with the tag <strong class="tag">{tag}</strong></> : "at this address"}, by their ids.</p>
      <Show of={loaded}>{({ rows, cursor }) => (
        <>
          <Table name="Visitors" columns={[...COLUMNS, matching(tag ? "With this tag" : "At this address")]} rows={rows} keyOf={(row) => row.visitor_id} empty={<p>No visitor was seen with this in {environment}. Choose another environment above, or clear the filter.</p>} />
          <More show={cursor !== undefined} busy={busy} error={error} onMore={more}>Show more</More>
        </>
      )}</Show>
    </>
  );
}
