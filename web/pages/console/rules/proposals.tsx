/** What others propose: admins see it before the rules themselves. */
/** @jsxImportSource preact */
import { nameOf, usePeople } from "../judging/people.js";
import { useAction, useAdmin, useConsole } from "../state.js";
import { Button, Card, Problem, Time } from "../ui.js";
import type { Proposal, Ruleset } from "../wire.js";
import { differences } from "./diff.js";
import { Changes } from "./history.js";

export function Proposals({ audience, saved, proposals, onTake, onGone }: {
  audience: string;
  saved: Ruleset;
  proposals: Proposal[];
  onTake: (proposal: Proposal) => void;
  onGone: () => void;
}) {
  const { api, session, notify } = useConsole();
  const people = usePeople();
  const isAdmin = useAdmin();
  const own = session.member?.id;
  const dismiss = useAction(async (id: string) => {
    await api.manage("DELETE", `rule-proposals/${id}`, undefined, { environment: audience });
    onGone();
    notify("The proposal is dismissed.");
  });
  if (proposals.length === 0) return null;
  return (
    <Card title={proposals.length === 1 ? "A proposal" : `${proposals.length} proposals`}>
      <Problem error={dismiss.error} />
      <ol class="timeline">
        {proposals.map((one) => (
          <li key={one.id}>
            <p><strong>{one.author ? nameOf(one.author, people, own) : "A management key"}</strong> <Time at={one.created_at} />{one.note && <>: {one.note}</>}</p>
            {one.revision !== saved.revision && <p class="quiet">Made from revision {one.revision}; revision {saved.revision} is in force.</p>}
            <Changes of={differences(saved.rules, one.rules)} />
            <p class="buttons">
              {isAdmin && <Button kind="small" onClick={() => onTake(one)}>Load into the editor</Button>}
              {(isAdmin || (own !== undefined && one.author === own)) && <Button kind="small danger" busy={dismiss.busy} onClick={() => dismiss.run(one.id)}>Dismiss</Button>}
            </p>
          </li>
        ))}
      </ol>
    </Card>
  );
}
