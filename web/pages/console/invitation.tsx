/** An invitation: who opens its link chooses a password and is a member from then on. */
/** @jsxImportSource preact */
import { useLayoutEffect, useRef } from "preact/hooks";
import { useAction } from "./state.js";
import { Problem } from "./ui.js";
import { who } from "./who.js";
import type { Session } from "./wire.js";

const SHORTEST = 12;
const LONGEST = 256;

export function Invitation({ session, onAccept, onLeave }: {
  /** That the browser has now, which accepting would end. */
  session: Session | undefined;
  onAccept: (password: string) => Promise<void>;
  onLeave: () => Promise<void>;
}) {
  const { busy, error, run } = useAction(onAccept);
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => heading.current?.focus(), []);
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const [password = "", again] = ["password", "again"].map((name) => String(new FormData(form).get(name)));
    const repeated = form.elements.namedItem("again") as HTMLInputElement;
    repeated.setCustomValidity(password === again ? "" : "This is not the password above.");
    if (repeated.reportValidity()) void run(password);
  };
  return (
    <main class="signin" id="main">
      <h1 tabIndex={-1} ref={heading}>You are invited</h1>
      <form class="card" onSubmit={send}>
        <h2>Choose a password</h2>
        <p>With it and your e-mail address you sign in from now on. Earlier passwords, codes and sessions end.</p>
        {session && <p class="note">You are signed in to <strong>{session.organization.name}</strong> as {who(session)}; that session ends. Accept only an invitation that you expect.</p>}
        <label class="field"><span>Password, {SHORTEST} characters at least</span><input name="password" type="password" required minLength={SHORTEST} maxLength={LONGEST} autocomplete="new-password" /></label>
        <label class="field"><span>The same again</span><input name="again" type="password" required autocomplete="new-password" onInput={(event) => event.currentTarget.setCustomValidity("")} /></label>
        <Problem error={error} />
        <p class="buttons"><button class="primary" disabled={busy}>Accept the invitation</button> <button type="button" onClick={() => void onLeave()}>Not now</button></p>
      </form>
    </main>
  );
}
