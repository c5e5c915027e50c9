/** Settings of the organization. */
/** @jsxImportSource preact */
import { capital, words } from "./format.js";
import { useConsole, useLoad } from "./state.js";
import { useState } from "preact/hooks";
import { AdminNote, Button, Card, Facts, Field, Problem, Show } from "./ui.js";
import type { Settings as Values, SignInOptions } from "./wire.js";

const THRESHOLDS: Record<string, string> = {
  multi_account: "multi_account: accounts of a visitor in 30 days",
  account_testing_visitor: "account_testing: accounts of a visitor within an hour",
  account_testing_address: "account_testing: accounts of an address within an hour",
  account_sharing: "account_sharing: visitors of an account in 30 days",
};

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
          ["Sign-in by OpenID Connect", options.value && (options.value.openid?.issuer ?? "off")],
        ]} />
        <p class="quiet">Rate limits, retention and OpenID Connect are settings of the service: its operator sets them.</p>
      </Card>
    </>
  );
}

function Form({ values, onSaved }: { values: Values; onSaved: (next: Values) => void }) {
  const { api, notify } = useConsole();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const save = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setError(undefined);
    try {
      onSaved(await api.manage<Values>("PATCH", "settings", {
        decision_in_response: form.get("decision_in_response") === "on",
        account_thresholds: Object.fromEntries(Object.keys(values.account_thresholds).map((name) => [name, Number(form.get(name))])),
      }));
      notify("The settings are saved, and in force from the next identification on.");
    } catch (caught) {
      setError(caught);
    }
    setBusy(false);
  };
  return (
    <form onSubmit={save}>
      <Card title="Decisions">
        <label class="field"><span><input type="checkbox" name="decision_in_response" defaultChecked={values.decision_in_response} /> Pages and apps read the decision</span>
          <small>Off: responses and signed verdicts for public keys have no decision, so that an attacker does not see it. Your server reads it.</small>
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
