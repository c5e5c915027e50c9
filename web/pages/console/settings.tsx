/** Settings of the organization. */
/** @jsxImportSource preact */
import { capital, count, words } from "./format.js";
import { changed, useAction, useConsole, useLoad } from "./state.js";
import { AdminNote, Button, Card, type Column, Facts, Field, Problem, Show, Table } from "./ui.js";
import type { Settings as Values, SignInOptions } from "./wire.js";

const THRESHOLDS: Record<string, string> = {
  multi_account: "multi_account: accounts of a visitor in 30 days",
  account_testing_visitor: "account_testing: accounts of a visitor within an hour",
  account_testing_address: "account_testing: accounts of an address within an hour",
  account_sharing: "account_sharing: visitors of an account in 30 days",
};

const FIXED: Column<[name: string, value: string | undefined, where: string]>[] = [
  { head: "Setting", cell: ([name]) => name },
  { head: "Value", cell: ([, value]) => value },
  { head: "Changed by", cell: ([, , where]) => <code>{where}</code> },
];

export function Settings() {
  const { api, session } = useConsole();
  const loaded = useLoad(() => api.manage<Values>("GET", "settings"), []);
  const options = useLoad((signal) => api.get<SignInOptions>("sign-in", {}, signal), []);
  return (
    <>
      <AdminNote what="Changing settings" />
      <Show of={loaded}>{(values) => <Form values={values} onSaved={loaded.set} />}</Show>
      <Card title="This organization">
        <Facts rows={[
          ["Name", session.organization.name],
          ["Id", <code>{session.organization.id}</code>],
          ["Region", session.region],
        ]} />
      </Card>
      <Card title="Set by the operator of the service">
        <Table name="Set by the operator of the service" keyOf={([name]) => name} columns={FIXED} rows={[
          ["Rate limit", loaded.value && (loaded.value.rate_limit_per_s === 0 ? "none" : `${count(loaded.value.rate_limit_per_s)} identifications a second`), `svc org rate-limit ${session.organization.id} N`],
          ["Events are kept for", loaded.value && `${loaded.value.event_retention_days} days`, "event_retention_days"],
          ["Sign-in by OpenID Connect", options.value && (options.value.openid?.issuer ?? "off"), "console_oidc_issuer"],
        ]} />
        <p class="quiet">By the command, or the setting in <code>svc.toml</code>.</p>
      </Card>
    </>
  );
}

function Form({ values, onSaved }: { values: Values; onSaved: (next: Values) => void }) {
  const { api, notify } = useConsole();
  const { busy, error, run } = useAction(async (form: FormData) => {
    onSaved(await api.manage<Values>("PATCH", "settings", {
      ...changed({ decision_in_response: form.get("decision_in_response") === "on" }, values),
      account_thresholds: changed(Object.fromEntries(Object.keys(values.account_thresholds).map((name) => [name, Number(form.get(name))])), values.account_thresholds),
    }));
    notify("The settings are saved, and in force from the next identification on.");
  });
  return (
    <form onSubmit={(event) => { event.preventDefault(); void run(new FormData(event.currentTarget)); }}>
      <Card title="Decisions">
        <label class="field"><span><input type="checkbox" name="decision_in_response" defaultChecked={values.decision_in_response} /> Pages and apps read the decision</span>
          <small>Off: responses and verdicts for public keys have no decision, which attackers would see. Your server reads it.</small>
        </label>
      </Card>
      <Card title="Signals of accounts fire from">
        {Object.entries(values.account_thresholds).map(([name, value]) => (
          <Field key={name} label={THRESHOLDS[name] ?? capital(words(name))}><input type="number" name={name} min={1} max={64} required defaultValue={String(value)} /></Field>
        ))}
      </Card>
      <Problem error={error} />
      <p class="buttons lone"><Button admin kind="primary" busy={busy}>Save</Button></p>
    </form>
  );
}
