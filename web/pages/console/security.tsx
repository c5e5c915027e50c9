/** How the member signs in: one-time codes, recovery codes and the password. Each change is proven by the password. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import { many } from "./format.js";
import { Qr } from "./qr.js";
import { useAction, useConsole } from "./state.js";
import { Copy, focus, Press, Problem } from "./ui.js";
import type { Session } from "./wire.js";

interface Offer {
  secret: string;
  url: string;
}

/** What is shown: which form is open, the secret to confirm, or the recovery codes of the secret that was confirmed. */
type Shown = "" | "codes" | "recovery" | "password" | Offer | string[];

const SHORTEST = 12;
/** What the button of the first form says: what comes next. */
const NEXT = { codes: "Continue", recovery: "Make new ones", password: "Change" };

export function Security({ member }: { member: NonNullable<Session["member"]> }) {
  const { api, notify } = useConsole();
  const [shown, show] = useState<Shown>("");
  const [isSet, setIsSet] = useState(member.has_totp);
  const [left, setLeft] = useState(member.recovery_codes_left);
  const action = useAction(async (body: Record<string, FormDataEntryValue>) => {
    if (shown === "codes") show(await api.call<Offer>("POST", "totp", { body }));
    else if (shown === "password") {
      await api.call("POST", "password", { body });
      leave();
      notify("Your password is changed. Your other sessions have ended.");
    } else {
      const { recovery_codes } = await api.call<{ recovery_codes: string[] }>("POST", shown === "recovery" ? "totp/recovery" : "totp/confirm", { body });
      setIsSet(true);
      setLeft(recovery_codes.length);
      show(recovery_codes);
    }
  });
  const leave = () => {
    show("");
    action.setError(undefined);
    focus(document.querySelector("summary"));
  };
  if (shown === "")
    return (
      <>
        <p>{isSet ? `You sign in with one-time codes. ${many(left, "recovery code")} left.` : "You sign in without one-time codes."}</p>
        <p class="buttons">
          <button type="button" onClick={() => show("codes")}>{isSet ? "Use another authenticator" : "Set up one-time codes"}</button>
          {isSet && <button type="button" onClick={() => show("recovery")}>New recovery codes</button>}
          <button type="button" onClick={() => show("password")}>Change password</button>
        </p>
      </>
    );
  if (Array.isArray(shown))
    return (
      <>
        <p>Keep these recovery codes where you can reach them without your phone: each replaces a code of your authenticator once. Earlier ones no longer work. They are shown only now.</p>
        <pre tabIndex={0} ref={focus}>{shown.join("\n")}</pre>
        <p class="buttons"><Copy text={shown.join("\n")} what="the recovery codes" /> <button type="button" onClick={leave}>I have stored them</button></p>
      </>
    );
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    void action.run(Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement)));
  };
  return (
    <form onSubmit={send} key={String(shown)}>
      {typeof shown === "object" ? (
        <>
          <p>Scan this with your authenticator, <a href={shown.url}>open it there</a>, or type the secret. It is shown only now.</p>
          <Qr text={shown.url} says="QR code of the secret for your authenticator" />
          <p class="copyable"><code>{shown.secret.match(/.{1,4}/g)?.join(" ")}</code> <Copy text={shown.secret} what="the secret" /></p>
          <label class="field"><span>Code that it shows</span><input name="code" ref={focus} required inputMode="numeric" autocomplete="one-time-code" maxLength={16} /></label>
        </>
      ) : (
        <label class="field"><span>Your password</span><input name="password" type="password" ref={focus} required autocomplete="current-password" /></label>
      )}
      {shown === "password" && <label class="field"><span>New password, {SHORTEST} characters at least</span><input name="new_password" type="password" required minLength={SHORTEST} maxLength={256} autocomplete="new-password" /></label>}
      <Problem error={action.error} />
      <p class="buttons"><Press kind="primary" busy={action.busy}>{typeof shown === "string" ? NEXT[shown] : "Confirm"}</Press> <button type="button" onClick={leave}>Cancel</button></p>
    </form>
  );
}
