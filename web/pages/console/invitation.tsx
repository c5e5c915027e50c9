/** Links that were opened: an invitation, and a sign-in link in a browser that is signed in already. */
/** @jsxImportSource preact */
import { ApiError } from "./api.js";
import { useAction, useLoad, who } from "./state.js";
import { focus, Press, Problem, Show, Time } from "./ui.js";
import type { Invited, Session } from "./wire.js";

const SHORTEST = 12;
const LONGEST = 256;
/** A word joiner: no line breaks at it. */
const JOINED = "\u2060";

/** Who opens an invitation chooses a password and is a member from then on. */
export function Invitation({ session, read, onAccept, onLeave }: {
  /** That the browser has now, which accepting would end. */
  session: Session | undefined;
  read: () => Promise<Invited>;
  onAccept: (password: string) => Promise<void>;
  onLeave: () => Promise<void>;
}) {
  const { busy, error, run } = useAction(onAccept);
  const invited = useLoad(read, []);
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const [password = "", again] = ["password", "again"].map((name) => String(new FormData(form).get(name)));
    const repeated = form.elements.namedItem("again") as HTMLInputElement;
    repeated.setCustomValidity(password === again ? "" : "This is not the password above.");
    if (repeated.reportValidity()) void run(password);
  };
  const leave = <button type="button" onClick={() => void onLeave()}>Not now</button>;
  return (
    <main class="signin" id="main">
      <h1 tabIndex={-1} ref={focus}>You are invited</h1>
      <div class="card">
        <Show of={invited}>{({ organization, email, name, role, expires_at }) => (
          <form onSubmit={send}>
            <h2>To {organization}</h2>
            <p>For <bdi>{name}</bdi>, with the role <strong>{role}</strong>. The link works once, until <Time at={expires_at} />.</p>
            {session && <p class="note">You are signed in to <strong>{session.organization.name}</strong> as {who(session)}; that session ends. Accept only an invitation that you expect.</p>}
            <p>With this address and the password that you choose, you sign in from now on. Earlier passwords, codes and sessions end.</p>
            <label class="field"><span>E-mail address</span><input name="email" type="email" readOnly value={email} autocomplete="username" /></label>
            <label class="field"><span>Password, {SHORTEST} characters at least</span><input name="password" type="password" required minLength={SHORTEST} maxLength={LONGEST} autocomplete="new-password" /></label>
            <label class="field"><span>Repeat the password</span><input name="again" type="password" required autocomplete="new-password" onInput={(event) => event.currentTarget.setCustomValidity("")} /></label>
            <Problem error={error} />
            <p class="buttons"><Press kind="primary" busy={busy}>Accept the invitation</Press> {leave}</p>
          </form>
        )}</Show>
        {invited.value === undefined && <p class="buttons">{leave}</p>}
      </div>
    </main>
  );
}

/** Only the user of a session may replace it. */
export function Link({ session, onStay, onUse }: { session: Session; onStay: () => Promise<void>; onUse: () => Promise<void> }) {
  const { busy, error, run } = useAction(onUse);
  const isUseless = error instanceof ApiError && error.status === 401;
  return (
    <main class="signin" id="main">
      <h1>You are signed in already</h1>
      <section class="card">
        <Problem error={error} />
        <div id="link">
          <p>You are signed in to <strong>{session.organization.name}</strong> as {who(session, JOINED)}.</p>
          {isUseless
            ? <p>The link did not sign you in. Your session goes on.</p>
            : <p>This link signs you in again, possibly to another organization, and ends this session. Use it only if you asked for it.</p>}
        </div>
        <p class="buttons">
          <button type="button" class="primary" key={String(isUseless)} ref={focus} aria-describedby="link" onClick={onStay}>Stay signed in</button>
          {!isUseless && <> <Press busy={busy} onClick={() => void run()}>Use the link</Press></>}
        </p>
      </section>
    </main>
  );
}
