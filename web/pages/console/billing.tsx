/** Billing: balance, spend, past days. */
/** @jsxImportSource preact */
import { count, money, words } from "./format.js";
import { useConsole, useLoad } from "./state.js";
import { Card, type Column, Facts, Show, Table, Time } from "./ui.js";
import type { Billing as Account } from "./wire.js";

type Day = Account["days"][number];
const days = (sums: number[]): Column<Day>[] => [
  { head: "Day (UTC)", cell: (row) => row.date },
  { head: "Identifications", cell: (row) => count(row.identifications), number: true },
  { head: "Not identifiable", cell: (row) => count(row.unidentifiable), number: true },
  { head: "Free", cell: (row) => count(row.free), number: true },
  { head: "Amount", cell: (row) => money(row.amount_micros, sums), number: true },
  { head: "Balance after", cell: (row) => money(row.balance_micros, sums), number: true },
];
const ENTRIES: Column<Account["entries"][number]>[] = [
  { head: "Time", cell: (row) => <Time at={row.at} /> },
  { head: "Amount", cell: (row) => money(row.amount_micros), number: true },
  { head: "Note", cell: (row) => row.note },
];
const CHANGES: Column<Account["changes"][number]>[] = [
  { head: "Time", cell: (row) => <Time at={row.at} /> },
  { head: "Change", cell: (row) => `from ${words(row.previous)} to ${words(row.current)}${row.blocked_reason ? ` (${words(row.blocked_reason)})` : ""}` },
  { head: "By", cell: (row) => row.by },
  { head: "Note", cell: (row) => row.note },
];
const MEANINGS: Record<string, string> = {
  free: "Traffic is paid from credit.",
  active: "A payment method is on file.",
  past_due: "A payment failed. Traffic is still accepted.",
  blocked: "Identifications in production are refused. Contact the operator of this service.",
};

export function Billing() {
  const { api } = useConsole();
  const loaded = useLoad((signal) => api.get<Account>("billing", {}, signal), []);
  return (
    <Show of={loaded}>{(account) => (
      <>
        <div class="pair">
          <Card title="Balance">
            <p class="big">{money(account.balance_micros)}</p>
            <Facts rows={[
              ["Status", <>{words(account.status)}{account.blocked_reason && `: ${words(account.blocked_reason)}`}</>],
              ["Credit limit", account.credit_limit_micros === null ? "none: postpaid" : money(account.credit_limit_micros)],
              ["Lasts for", account.credit_days === undefined ? undefined : `${account.credit_days.toFixed(1)} days, as charged in the last seven`],
            ]} />
            <p class="quiet">{account.status === "active" && account.credit_limit_micros === null ? "Usage is counted; nothing is refused for lack of credit." : MEANINGS[account.status]}</p>
            {account.refused === "no_credit" && <p class="problem">No credit is left: identifications in production are refused. The operator of this service adds it.</p>}
          </Card>
          <Card title="Today (UTC), in production">
            <p class="big">{money(account.today.amount_micros)}</p>
            <Facts rows={[
              ["Identifications", count(account.today.identifications)],
              ["Not identifiable", count(account.today.unidentifiable)],
              ["Free", count(account.today.free)],
            ]} />
          </Card>
        </div>
        <Card title="Past days"><Table name="Past days" columns={days(account.days.flatMap((row) => [row.amount_micros, row.balance_micros]))} rows={account.days} keyOf={(row) => row.date} empty={<p>No past days yet. A day with production traffic is settled after midnight UTC.</p>} /></Card>
        <Card title="Credits"><Table name="Credits" columns={ENTRIES} rows={account.entries} keyOf={(row) => row.at} empty={<p>{account.credit_limit_micros === null ? "None is needed: the organization is postpaid." : "No credit yet. The operator of this service adds it."}</p>} /></Card>
        <Card title="Changes of status"><Table name="Changes of status" columns={CHANGES} rows={account.changes} keyOf={(row) => row.at} empty={<p>The status has never changed.</p>} /></Card>
      </>
    )}</Show>
  );
}
