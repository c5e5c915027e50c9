/** The menu of the account: whose the session is, how its member signs in, and signing out. */
/** @jsxImportSource preact */
import { lazy } from "./lazy.js";
import { useAction, useConsole, who } from "./state.js";
import { Press, Problem } from "./ui.js";

const Security = lazy(async () => (await import("./security.js")).Security);

export function AccountMenu({ onLeave }: { onLeave: () => Promise<void> }) {
  const { session } = useConsole();
  const leave = useAction(onLeave);
  return (
    <details class="account">
      <summary>{who(session)}</summary>
      <div class="card">
        {session.member ? <><p>{session.member.email}</p>{session.member.has_password && <Security member={session.member} />}</> : <p class="quiet">This is the session of a management key.</p>}
        <p class="docs"><a href="docs/">Documentation</a></p>
        <Problem error={leave.error} />
        <p class="buttons"><Press busy={leave.busy} onClick={() => void leave.run()}>Sign out</Press></p>
      </div>
    </details>
  );
}
