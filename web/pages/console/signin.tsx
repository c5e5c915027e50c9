/** Signing in: with a link, which does it by itself, or with a management key. */
/** @jsxImportSource preact */
import { useLayoutEffect, useRef } from "preact/hooks";
import { Problem } from "./ui.js";
import { useAction } from "./state.js";

export function SignIn({ reason, onRetry, onKey }: { reason: string | undefined; onRetry: (() => void) | undefined; onKey: (key: string) => Promise<void> }) {
  const { busy, error, run } = useAction(onKey);
  const heading = useRef<HTMLHeadingElement>(null);
  // Before the next key is pressed: the focus is never taken from a field.
  useLayoutEffect(() => heading.current?.focus(), []);
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    void run(String(new FormData(event.currentTarget as HTMLFormElement).get("key")).trim());
  };
  return (
    <main class="signin" id="main">
      <h1 tabIndex={-1} ref={heading}>Sign in to the console</h1>
      {reason && <div class="problem" role="alert"><p>{reason}</p>{onRetry && <button type="button" onClick={onRetry}>Try again</button>}</div>}
      <section class="card">
        <h2>With a link</h2>
        <p>Run this where the service runs, and open the link that it prints. It works once.</p>
        <pre tabIndex={0}><code>svc console link ORG</code></pre>
        <p class="quiet"><code>svc org list</code> names the organizations; <code>--role developer</code> makes a link that may issue and revoke keys of servers and pages, and change webhooks, but not weights, proxy keys or visitors. <code>svc dev</code> prints a link at its start.</p>
      </section>
      <form class="card" onSubmit={send}>
        <h2>With a management key</h2>
        <label class="field"><span>Management key</span><input name="key" type="password" required autocomplete="off" spellcheck={false} placeholder="svc_mk_…" /></label>
        <Problem error={error} />
        <p class="buttons"><button class="primary" disabled={busy}>Sign in</button></p>
        <p class="quiet">The key is exchanged for a session and kept nowhere in this browser.</p>
      </form>
    </main>
  );
}
