/** Account: who acted for it, from where, what was done with it, and its erasure. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import { AddressLink } from "./event.js";
import { count, country, many, upTo64 } from "./format.js";
import { Notes } from "./judging/notes.js";
import { Links } from "./links.js";
import { Standing } from "./standing.js";
import { useConsole, useLink, useLoad } from "./state.js";
import { AdminNote, Button, Card, type Column, Confirm, Id, Rebuilt, Show, Table, Time, VisitorLink } from "./ui.js";
import { Timeline } from "./visitor.js";
import type { AccountDetail } from "./wire.js";

interface Seen {
  first_seen_at: string;
  last_seen_at: string;
}

const SEEN: Column<Seen>[] = [
  { head: "First seen", cell: (row) => <Time at={row.first_seen_at} /> },
  { head: "Last seen", cell: (row) => <Time at={row.last_seen_at} /> },
];
const VISITORS: Column<AccountDetail["visitors"][number]>[] = [
  { head: "Visitor", cell: (row) => <VisitorLink id={row.visitor_id} /> },
  ...SEEN,
  { head: "Confidence", cell: (row) => `${row.confidence} %`, number: true },
];
const ADDRESSES: Column<AccountDetail["addresses"][number]>[] = [
  { head: "Address", cell: (row) => <AddressLink address={row.ip_address} /> },
  { head: "Country", cell: (row) => row.country_code && country(row.country_code) },
  ...SEEN,
];

export function Account() {
  const { place: { id } } = useConsole();
  const link = useLink();
  if (id !== "." && id !== "..") return <One id={id} />;
  return <p class="note">No browser can ask for an account with the id <code>{id}</code>, which it takes for a folder. Look at <a href={link("events", "", { account_id: id, window: "30d" })}>its events</a>; the operator reads it with <code>svc account export</code> and erases it with <code>svc account erase</code>.</p>;
}

function One({ id }: { id: string }) {
  const { api, environment } = useConsole();
  const loaded = useLoad((signal) => api.get<AccountDetail>(`accounts/${encodeURIComponent(id)}`, { environment }, signal), [id, environment]);
  return <Show of={loaded}>{(account) => <Shown account={account} />}</Show>;
}

function Shown({ account }: { account: AccountDetail }) {
  const link = useLink();
  const { velocity: { visitors } } = account;
  return (
    <>
      <p class="summary">
        <Id what="the account id">{account.account_id}</Id>
        <span>{account.event_count >= 2000 ? "2,000 events or more" : many(account.event_count, "event")} kept, {upTo64(visitors?.["30d"] ?? 0)} {visitors?.["30d"] === 1 ? "visitor" : "visitors"} in 30 days</span>
        {(account.labels.fraud > 0 || account.labels.legitimate > 0) && <span>labeled: {count(account.labels.fraud)} fraud, {count(account.labels.legitimate)} legitimate</span>}
        <Rebuilt since={account.counted_since} />
        <span>first <Time at={account.first_seen_at} />, last <Time at={account.last_seen_at} /></span>
      </p>
      <Standing kind="account" value={account.account_id} />
      <Links account={account.account_id} />
      <Card title="Events">
        <Timeline events={account.events} of="account" />
        {account.event_count > account.events.length && <p><a href={link("events", "", { account_id: account.account_id, window: "30d" })}>All events in the last 30 days</a></p>}
      </Card>
      {(account.event_count >= 2000 || [account.visitors, account.addresses].some(({ length }) => length === 100)) && <p class="quiet">Visitors and addresses are those of its newest 2,000 events, at most 100 each.</p>}
      <Card title="Visitors"><Table name="Visitors" columns={VISITORS} rows={account.visitors} keyOf={(row) => row.visitor_id} empty={<p>No recognizable visitor.</p>} /></Card>
      <Card title="Addresses"><Table name="Addresses" columns={ADDRESSES} rows={account.addresses} keyOf={(row) => row.ip_address} /></Card>
      <Notes of="accounts" id={account.account_id} />
      <Erase id={account.account_id} />
    </>
  );
}

function Erase({ id }: { id: string }) {
  const { api, notify } = useConsole();
  const link = useLink();
  const [isAsking, setAsking] = useState(false);
  const [typed, setTyped] = useState("");
  return (
    <Card title="Erase this account">
      <p>Removes the account id from events, counts, lists and pending webhooks in every environment. Events and visitors stay. It cannot be undone.</p>
      <AdminNote what="Erasing" />
      <Button admin kind="danger" onClick={() => setAsking(true)}>Erase account …</Button>
      {isAsking && (
        <Confirm title="Erase this account for good?" submit="Erase" onClose={() => setAsking(false)} onConfirm={async () => {
          if (typed !== id) throw new Error("Type the whole id of the account to confirm.");
          await api.manage("DELETE", `accounts/${encodeURIComponent(id)}`);
          notify("The account is erased.");
          location.hash = link("accounts");
        }}>
          <p>Many events take minutes; it goes on if you leave.</p>
          <label class="field"><span>Type <code>{id}</code> to confirm</span>
            <input value={typed} autocomplete="off" spellcheck={false} onInput={(event) => setTyped(event.currentTarget.value)} />
          </label>
        </Confirm>
      )}
    </Card>
  );
}
