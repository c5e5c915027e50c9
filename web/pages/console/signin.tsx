/** Signing in: as a member, with a link, which does it by itself, or with a management key. */
/** @jsxImportSource preact */
import { useEffect, useState } from "preact/hooks";
import { useAction } from "./state.js";
import { focus, Press, Problem } from "./ui.js";
import type { SignInOptions } from "./wire.js";

export type Credentials = { key: string } | { email: string; password: string; totp: string | undefined; organization_id: string | undefined };

export function SignIn({ reason, onRetry, onSignIn, options }: {
  reason: string | undefined;
  onRetry: (() => void) | undefined;
  onSignIn: (credentials: Credentials) => Promise<void>;
  options: () => Promise<SignInOptions>;
}) {
  const member = useAction(onSignIn);
  const key = useAction(onSignIn);
  const [provider, setProvider] = useState<string>();
  // Without an answer there is no button, and the other ways remain.
  useEffect(() => void options().then(({ openid }) => setProvider(openid && new URL(openid.issuer).host), () => undefined), []);
  const read = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    return (name: string) => String(form.get(name)).trim();
  };
  const sendMember = (event: SubmitEvent) => {
    const field = read(event);
    const password = String(new FormData(event.currentTarget as HTMLFormElement).get("password"));
    void member.run({ email: field("email"), password, totp: field("totp").replace(/\s/g, "") || undefined, organization_id: field("organization_id") || undefined });
  };
  const sendKey = (event: SubmitEvent) => void key.run({ key: read(event)("key") });
  return (
    <main class="signin" id="main">
      <h1 tabIndex={-1} ref={focus}>Sign in to the console</h1>
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
        <label class="field"><span>Organization, if you are in several</span><input name="organization_id" maxLength={200} autocomplete="off" /></label>
        <Problem error={member.error} />
        <p class="buttons"><Press kind="primary" busy={member.busy}>Sign in</Press></p>
      </form>
      <section class="card">
        <h2>With a link</h2>
        <p>Run this where the service runs. The link works once.</p>
        <pre tabIndex={0}><code>svc console link ORG</code></pre>
        <p class="quiet"><code>svc org list</code> names organizations.</p>
      </section>
      <form class="card" onSubmit={sendKey}>
        <h2>With a management key</h2>
        <label class="field"><span>Management key</span><input name="key" type="password" required autocomplete="off" spellcheck={false} placeholder="svc_mk_…" /></label>
        <Problem error={key.error} />
        <p class="buttons"><Press kind="primary" busy={key.busy}>Sign in with the key</Press></p>
        <p class="quiet">This browser does not keep the key.</p>
      </form>
    </main>
  );
}
