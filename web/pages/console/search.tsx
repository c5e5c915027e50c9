/** Search: what somebody may mean by a text. */
/** @jsxImportSource preact */
import { useEffect } from "preact/hooks";
import { useEventColumns } from "./eventcolumns.js";
import { useConsole, useLink, useLoad } from "./state.js";
import { AccountLink, Card, Of, Show, Table, VisitorLink } from "./ui.js";
import type { Found } from "./wire.js";

export type Hit = [screen: string, id: string, query?: Record<string, string>];

/** The places that a search leads to. */
export function hits(text: string, found: Found): Hit[] {
  return [
    ...(found.event ? [["events", found.event.request_id] as Hit] : []),
    ...found.visitors.map((id): Hit => ["visitors", id]),
    ...found.accounts.map((id): Hit => ["accounts", id]),
    ...(found.network ? [["visitors", "", from(found.network)] as Hit] : []),
    ...(found.tag ? [["visitors", "", { tag: text }] as Hit] : []),
  ];
}

/** Of one address there is an index; a network is looked for among the newest events. */
const from = (network: string): Record<string, string> => (network.includes("/") ? { network } : { ip_address: network });

export function Search() {
  const { api, environment, place: { query } } = useConsole();
  const link = useLink();
  const text = query.q ?? "";
  const loaded = useLoad((signal) => api.get<Found>("search", { environment, q: text }, signal), [environment, text]);
  const found = loaded.value;
  useEffect(() => {
    const all = found && !loaded.busy ? hits(text, found) : [];
    // What leads to one place goes there, and Back does not come here again.
    if (all.length === 1) location.replace(link(...all[0]!));
  }, [found, loaded.busy]);
  return <Show of={loaded}>{(what) => <Shown text={text} found={what} />}</Show>;
}

function Shown({ text, found }: { text: string; found: Found }) {
  const { environment } = useConsole();
  const link = useLink();
  const columns = useEventColumns(found.event ? [found.event] : []);
  // The search looks at the newest events, and gives the first ten.
  const all = (screen: string) => <a href={link(screen, "", { q: text })}>All {screen} that begin so</a>;
  if (hits(text, found).length === 0) {
    return (
      <div class="empty">
        <p>Nothing was found for <strong class="tag">{text}</strong> in {environment}.</p>
        <p>Ids are found by how they begin, those of visitors by three characters at least; tags, addresses and networks (95.194.0.0/16) as a whole. Or choose another environment above.</p>
        <p>{all("accounts")}</p>
      </div>
    );
  }
  return (
    <>
      <p>Found for <strong class="tag">{text}</strong>:</p>
      {found.event && <Of environment={found.event.environment}><Table name="Event" columns={columns} rows={[found.event]} keyOf={(row) => row.request_id} /></Of>}
      {found.visitors.length > 0 && <Card title="Visitors" actions={all("visitors")}><ul class="found">{found.visitors.map((id) => <li key={id}><VisitorLink id={id} /></li>)}</ul></Card>}
      {found.accounts.length > 0 && <Card title="Accounts" actions={all("accounts")}><ul class="found">{found.accounts.map((id) => <li key={id}><AccountLink id={id} /></li>)}</ul></Card>}
      {(found.network || found.tag) && (
        <Card title="More">
          <ul class="found">
            {found.network && <li><a href={link("visitors", "", from(found.network))}>Visitors from {found.network}</a></li>}
            {found.network && <li><a href={link("accounts", "", { network: found.network })}>Accounts from {found.network}</a></li>}
            {found.tag && <li><a href={link("visitors", "", { tag: text })}>Visitors with the tag</a></li>}
          </ul>
        </Card>
      )}
    </>
  );
}
