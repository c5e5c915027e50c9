/** What somebody does first: the snippet with a key of their own, until the first identification is there. */
/** @jsxImportSource preact */
import { useEffect, useState } from "preact/hooks";
import { sdkKeys } from "./api.js";
import { Snippet } from "./snippet.js";
import { useAction, useConsole, useLink, useLoad } from "./state.js";
import { Button, Card, Problem, Show } from "./ui.js";
import type { EventRow, Key } from "./wire.js";

const LOOK_MS = 5000;

/** The public keys of an environment that a page can use now. */
export const usable = (keys: Key[], environment: string, now: number): Key[] =>
  keys.filter((key) => key.kind === "public" && key.environment === environment && key.status === "active" && (key.expires_at === null || Date.parse(key.expires_at) > now));

/** `waits`: nothing else on the screen shows the first event when it comes. */
export function FirstRun({ waits = true }: { waits?: boolean }) {
  const { api, environment, notify } = useConsole();
  const link = useLink();
  const keys = useLoad(() => sdkKeys(api), [environment]);
  const first = useFirstEvent(waits);
  const issue = useAction(async () => {
    await api.manage("POST", "sdk-keys", { name: "first page", environment, kind: "public" });
    notify("The key is issued.");
    keys.reload();
  });
  if (first) return <div class="note" role="status"><p>The first identification is here. <a href={link("events", first)}>Look at it</a>, or <a href={link("live")}>watch them come</a>.</p></div>;
  return (
    <Card title={`Identify a visitor in ${environment}`}>
      <Show of={keys}>{(all) => {
        const [key] = usable(all, environment, Date.now()).reverse();
        if (key?.public_key) {
          return (
            <>
              <p>Put this on a page{key.environment === "development" ? " on localhost" : key.allowed_origins?.length ? <> of {key.allowed_origins.join(", ")}</> : ", after you have added its origin to the key"}, and open it:</p>
              <Snippet apiKey={key.public_key} />
              <p class="quiet" role="status">Waiting for the first identification …</p>
            </>
          );
        }
        if (key) return <p>The key <bdi>{key.name}</bdi> was issued by an earlier version, which kept only its end. <a href={link("keys")}>Issue another one</a> to see the snippet with it.</p>;
        return environment === "development"
          ? <><p>There is no public key for {environment} yet.</p><Button developer kind="primary" busy={issue.busy || keys.busy} onClick={() => issue.run()}>Issue a public key</Button></>
          : <p>There is no public key for {environment} yet. <a href={link("keys")}>Issue one with the origin of your page</a>, or choose the environment development above.</p>;
      }}</Show>
      <Problem error={issue.error} />
    </Card>
  );
}

/** The id of the newest event, as soon as there is one. */
function useFirstEvent(waits: boolean): string | undefined {
  const { api, environment } = useConsole();
  const [found, setFound] = useState<string>();
  useEffect(() => {
    if (!waits) return undefined;
    const control = new AbortController();
    const look = async () => {
      if (document.hidden) return;
      const { rows } = await api.get<{ rows: EventRow[] }>("events", { environment, limit: 1 }, control.signal).catch(() => ({ rows: [] as EventRow[] }));
      if (rows[0] && !control.signal.aborted) setFound(rows[0].request_id);
    };
    const timer = setInterval(() => void look(), LOOK_MS);
    return () => {
      control.abort();
      clearInterval(timer);
    };
  }, [environment, waits]);
  return found;
}
