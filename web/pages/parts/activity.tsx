/** For whom the visitor acts: a form that names an account, and what the service counts of the visitor, it and the address. */
/** @jsxImportSource preact */
import { useRef, useState } from "preact/hooks";
import { withCode } from "./score.js";
import type { Explained, Windows } from "./wire.js";

/** What a visitor may say of an identification; what is empty is not sent. */
export interface About {
  accountId?: string | undefined;
  action?: string | undefined;
}

const ACTIONS = ["sign_up", "log_in", "checkout"];

/** `onAct` identifies again, and throws with a message for people. */
export function Activity({ event, onAct }: { event: Explained; onAct: (about: About) => Promise<Explained> }) {
  const form = useRef<HTMLFormElement>(null);
  const [isBusy, setBusy] = useState(false);
  const [said, setSaid] = useState("");
  const [problem, setProblem] = useState("");
  const act = async (submitted: Event) => {
    submitted.preventDefault();
    if (isBusy || form.current === null) return;
    const given = (name: string) => (form.current?.elements.namedItem(name) as HTMLInputElement).value || undefined;
    setBusy(true);
    setProblem("");
    setSaid("Identifying …");
    try {
      setSaid(summary(await onAct({ accountId: given("account"), action: given("action") })));
    } catch (error) {
      setSaid("");
      setProblem((error as Error).message);
    }
    setBusy(false);
  };
  return (
    <section class="card" aria-labelledby="activity">
      <h2 id="activity">Accounts</h2>
      <p>
        Your page names the account that is logged in, by an id of your own. Name one here, then others: the service
        counts them, and signals fire.
      </p>
      <form class="act" ref={form} onSubmit={act}>
        <label>Account <input name="account" autocomplete="off" autocapitalize="none" spellcheck={false} placeholder="user-1" /></label>
        <label>
          Action <input name="action" list="actions" autocomplete="off" autocapitalize="none" spellcheck={false} placeholder="log_in" />
        </label>
        <datalist id="actions">{ACTIONS.map((one) => <option key={one} value={one} />)}</datalist>
        <button aria-disabled={isBusy}>Identify for this account</button>
      </form>
      <p role="status" class="said">{said}</p>
      {problem !== "" && <p role="alert" class="said problem">{withCode(problem)}</p>}
      <Velocity event={event} />
    </section>
  );
}

/** The newest identification in one sentence. */
export function summary({ account_id, decision, velocity }: Explained): string {
  const accounts = velocity?.visitor.accounts["1h"] ?? 0;
  const visitors = velocity?.account?.visitors["30d"] ?? 0;
  const acted = accounts === 0 ? "no account" : number(accounts, "account");
  const used = account_id === undefined ? "" : ` ${account_id} was used by ${number(visitors, "browser")} within 30 days.`;
  const decided = decision === undefined ? "" : ` Your rule “${decision.rule}” decided: ${decision.action}.`;
  return `Identified. This browser acted for ${acted} within an hour.${used}${decided}`;
}

const number = (count: number, noun: string) => `${most(count)} ${noun}${count === 1 ? "" : "s"}`;

/** Counts end at 64. */
const most = (count: number) => (count >= 64 ? "64 or more" : String(count));

/** What is counted, in three windows; nothing for an event that was stored without it. */
export function Velocity({ event: { account_id, velocity }, names = ["This browser", "Your address", "Browsers"] }: { event: Explained; names?: [visitor: string, address: string, visitors: string] }) {
  if (velocity === undefined) return null;
  const { visitor, account, address } = velocity;
  const groups: [name: string, rows: [name: string, counts: Windows][]][] = [
    [names[0], [["Visits", visitor.events], ["Accounts", visitor.accounts], ["Addresses", visitor.addresses], ["Countries", visitor.countries]]],
    [names[1], [["Visits", address.events], [names[2], address.visitors], ["Accounts", address.accounts]]],
  ];
  if (account !== undefined) {
    const rows: [string, Windows][] = [["Visits", account.events], [names[2], account.visitors], ["Addresses", account.addresses], ["Countries", account.countries]];
    groups.splice(1, 0, [`Account ${account_id ?? ""}`, rows]);
  }
  return (
    <table class="counts">
      <caption>How many, this visit included</caption>
      <thead><tr><td /><th scope="col">Last hour</th><th scope="col">Day</th><th scope="col">30 days</th></tr></thead>
      {groups.map(([name, rows]) => (
        <tbody key={name}>
          <tr><th scope="rowgroup" colSpan={4}>{name}</th></tr>
          {rows.map(([what, counts]) => (
            <tr key={what}>
              <th scope="row">{what}</th>
              <td>{most(counts["1h"])}</td><td>{most(counts["24h"])}</td><td>{most(counts["30d"])}</td>
            </tr>
          ))}
        </tbody>
      ))}
    </table>
  );
}
