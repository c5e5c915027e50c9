/** Signing in: as a member, with a link, which does it by itself, or with a management key. */
/** @jsxImportSource preact */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useAction } from "./state.js";
import { Problem } from "./ui.js";
import type { SignInOptions } from "./wire.js";

export type Credentials = { key: string } | { email: string; password: string; totp?: string };

export function SignIn({ reason, onRetry, onSignIn, options }: {
  reason: string | undefined;
  onRetry: (() => void) | undefined;
  onSignIn: (credentials: Credentials) => Promise<void>;
  options: () => Promise<SignInOptions>;
}) {
  const member = useAction(onSignIn);
  const key = useAction(onSignIn);
  const [provider, setProvider] = useState<string>();
  const heading = useRef<HTMLHeadingElement>(null);
  // Before the next key is pressed: the focus is never taken from a field.
  useLayoutEffect(() => heading.current?.focus(), []);
  // Without an answer there is no button, and the other ways remain.
  useEffect(() => void options().then(({ openid }) => setProvider(openid && new URL(openid.issuer).host), () => undefined), []);
  const read = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    return (name: string) => String(form.get(name)).trim();
  };
  const sendMember = (event: SubmitEvent) => {
    const field = read(event);
    const totp = field("totp").replace(/\s/g, "");
    void member.run({ email: field("email"), password: String(new FormData(event.currentTarget as HTMLFormElement).get("password")), ...(totp && { totp }) });
  };
  const sendKey = (event: SubmitEvent) => void key.run({ key: read(event)("key") });
  return (
    <main class="signin" id="main">
      <h1 tabIndex={-1} ref={heading}>Sign in to the console</h1>
      {reason && <div class="problem" role="alert"><p>{reason}</p>{onRetry && <button type="button" onClick={onRetry}>Try again</button>}</div>}
      {provider && (
        <section class="card">
          <h2>With your company's account</h2>
          <p class="buttons"><a class="button primary" href={`console/oidc?next=${encodeURIComponent(`/console${location.hash.startsWith("#/") ? location.hash : ""}`)}`}>Sign in with {provider}</a></p>
        </section>
      )}
      <form class="card" onSubmit={sendMember}>
        <h2>As a member</h2>
        <label class="field"><span>E-mail address</span><input name="email" type="email" required autocomplete="username" spellcheck={false} /></label>
        <label class="field"><span>Password</span><input name="password" type="password" required autocomplete="current-password" /></label>
        <label class="field"><span>One-time or recovery code, if you have set them up</span><input name="totp" autocomplete="one-time-code" maxLength={16} /></label>
        <Problem error={member.error} />
        <p class="buttons"><button class="primary" disabled={member.busy}>Sign in</button></p>
      </form>
      <section class="card">
        <h2>With a link</h2>
        <p>Run this where the service runs, and open the link that it prints. It works once.</p>
        <pre tabIndex={0}><code>svc console link ORG</code></pre>
        <p class="quiet"><code>svc org list</code> names the organizations; <code>--role developer</code> makes a link that may issue and revoke keys of servers and pages, and change webhooks, but not weights, proxy keys or visitors. <code>svc dev</code> prints a link at its start.</p>
      </section>
      <form class="card" onSubmit={sendKey}>
        <h2>With a management key</h2>
        <label class="field"><span>Management key</span><input name="key" type="password" required autocomplete="off" spellcheck={false} placeholder="svc_mk_…" /></label>
        <Problem error={key.error} />
        <p class="buttons"><button class="primary" disabled={key.busy}>Sign in with the key</button></p>
        <p class="quiet">The key is exchanged for a session and kept nowhere in this browser.</p>
      </form>
    </main>
  );
}
