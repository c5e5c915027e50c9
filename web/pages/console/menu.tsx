/** The menu of the account: whose the session is, one-time codes, and signing out. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import { useAction, useConsole } from "./state.js";
import { Copy, Problem } from "./ui.js";
import { who } from "./who.js";

interface Offer {
  secret: string;
  url: string;
}

export function AccountMenu({ onLeave }: { onLeave: () => Promise<void> }) {
  const { session } = useConsole();
  const leave = useAction(onLeave);
  return (
    <details class="account">
      <summary>{who(session)}</summary>
      <div class="card">
        {session.member ? <><p>{session.member.email}</p><Codes has={session.member.has_totp} /></> : <p class="quiet">This is the session of a management key.</p>}
        <Problem error={leave.error} />
        <p class="buttons"><button type="button" disabled={leave.busy} onClick={() => void leave.run()}>Sign out</button></p>
      </div>
    </details>
  );
}

/** Sets up one-time codes: a secret for the authenticator, then a code of it. */
function Codes({ has }: { has: boolean }) {
  const { api, notify } = useConsole();
  const [offer, setOffer] = useState<Offer>();
  const [isSet, setIsSet] = useState(has);
  const begin = useAction(async () => setOffer(await api.call<Offer>("POST", "totp")));
  const confirm = useAction(async (code: string) => {
    await api.call("POST", "totp/confirm", { body: { code } });
    setOffer(undefined);
    setIsSet(true);
    notify("From now on you sign in with a code.");
  });
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    void confirm.run(String(new FormData(event.currentTarget as HTMLFormElement).get("code")).replace(/\s/g, ""));
  };
  if (offer === undefined)
    return (
      <>
        <p>{isSet ? "You sign in with one-time codes." : "You sign in without one-time codes."}</p>
        <Problem error={begin.error} />
        <p class="buttons"><button type="button" disabled={begin.busy} onClick={() => void begin.run()}>{isSet ? "Use another authenticator" : "Set up one-time codes"}</button></p>
      </>
    );
  return (
    <form onSubmit={send}>
      <p>Add this secret to your authenticator, or <a href={offer.url}>open it there</a>. It is shown this once.</p>
      <p class="copyable"><code>{offer.secret.match(/.{1,4}/g)?.join(" ")}</code> <Copy text={offer.secret} what="the secret" /></p>
      <label class="field"><span>Code that it shows</span><input name="code" required inputMode="numeric" autocomplete="one-time-code" maxLength={16} /></label>
      <Problem error={confirm.error} />
      <p class="buttons"><button class="primary" disabled={confirm.busy}>Confirm</button> <button type="button" onClick={() => setOffer(undefined)}>Cancel</button></p>
    </form>
  );
}
