/** A sign-in link in a browser that is signed in already: only its user may replace the session. */
/** @jsxImportSource preact */
import { useLayoutEffect, useRef } from "preact/hooks";
import { ApiError } from "./api.js";
import { useAction, who } from "./state.js";
import { Problem } from "./ui.js";
import type { Session } from "./wire.js";

/** No line breaks here. */
const JOINED = "\u2060";

export function Link({ session, onStay, onUse }: { session: Session; onStay: () => Promise<void>; onUse: () => Promise<void> }) {
  const { busy, error, run } = useAction(onUse);
  const stay = useRef<HTMLButtonElement>(null);
  const isUseless = error instanceof ApiError && error.status === 401;
  // Also after the other button is gone.
  useLayoutEffect(() => stay.current?.focus(), [isUseless]);
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
          <button type="button" class="primary" ref={stay} aria-describedby="link" onClick={onStay}>Stay signed in</button>
          {!isUseless && <> <button type="button" disabled={busy} onClick={() => run()}>Use the link</button></>}
        </p>
      </section>
    </main>
  );
}
