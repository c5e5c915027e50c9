/** Filters that people keep by a name: for everybody of the organization, or for themselves. */
/** @jsxImportSource preact */
import { useEffect, useState } from "preact/hooks";
import { KEPT } from "./filters.js";
import { type Query, write } from "./hash.js";
import { useAction, useConsole, useLink, useLoad, useMayJudge } from "./state.js";
import { Button, Choice, Copy, Dialog, Field, Problem, Show } from "./ui.js";
import type { View } from "./wire.js";

const OF_A_VIEW = ["window", "from", "to", "sort", ...KEPT, "min_accounts", "min_visitors", "network", "q"];

/** What of an address is part of a view: its filters and its window. */
export const viewOf = (query: Query): Query => Object.fromEntries(OF_A_VIEW.flatMap((name) => (query[name] === undefined ? [] : [[name, query[name]]])));

/** The address of a view, for colleagues. */
export const addressOf = (view: View): string => `${location.origin}${location.pathname}${write("view", view.id)}`;

/** A choice of the saved views of this screen, and what keeps or deletes one. */
export function SavedViews() {
  const { api, environment, session, notify, place: { screen, query } } = useConsole();
  const link = useLink();
  const mayShare = useMayJudge();
  const loaded = useLoad(async (signal) => (await api.get<{ views: View[] }>("views", { screen }, signal)).views, [screen]);
  const [isNaming, setNaming] = useState(false);
  const views = loaded.value ?? [];
  const shown = JSON.stringify(viewOf(query));
  const current = views.find((view) => JSON.stringify(viewOf(view.query)) === shown);
  const forget = useAction(async (view: View) => {
    await api.call("DELETE", `views/${view.id}`);
    loaded.reload();
  });
  const open = (id: string) => {
    const view = views.find((one) => one.id === id);
    location.hash = link(screen, "", { environment, ...view?.query });
  };
  const isOwn = session.member !== undefined;
  return (
    <>
      {views.length > 0 && <Field label="Saved"><Choice value={current?.id ?? ""} options={[["", "choose …"], ...views.map(({ id, name, is_shared }): [string, string] => [id, is_shared ? name : `${name} (own)`])]} onPick={open} /></Field>}
      {current === undefined
        ? shown !== "{}" && (isOwn || mayShare) && <Button onClick={() => setNaming(true)}>Save these filters …</Button>
        : <>
            <Copy text={addressOf(current)} label="Copy the address" what={`the address of the filters ${current.name}`} />
            {(mayShare || !current.is_shared) && <Button name={`Delete the filters ${current.name}`} busy={forget.busy} onClick={() => forget.run(current)}>Delete</Button>}
          </>}
      <Problem error={forget.error ?? loaded.error} />
      {isNaming && (
        <Dialog title="Save these filters" submit="Save" onClose={() => { setNaming(false); loaded.reload(); }} onSubmit={async (values) => {
          const is_shared = values.get("whose") === "all";
          await api.call<View>("POST", "views", { body: { name: String(values.get("name")).trim(), screen, query: viewOf(query), is_shared } });
          setNaming(false);
          loaded.reload();
          notify(is_shared ? "Saved: everybody of the organization finds these filters here." : "Saved for you, in every browser.");
        }}>
          <Field label="Name"><input name="name" required maxLength={60} autocomplete="off" /></Field>
          <Field label="For"><Choice name="whose" value={mayShare ? "all" : "own"} options={[...(mayShare ? [["all", "everybody of the organization"] as [string, string]] : []), ...(isOwn ? [["own", "yourself"] as [string, string]] : [])]} /></Field>
        </Dialog>
      )}
    </>
  );
}

/** A saved view by its address: it leads to the screen with its filters. */
export function OneView() {
  const { api, place: { id } } = useConsole();
  const link = useLink();
  const loaded = useLoad((signal) => api.get<View>(`views/${encodeURIComponent(id)}`, {}, signal), [id]);
  const view = loaded.value;
  // In the place of this address: Back leads to where somebody came from.
  useEffect(() => {
    if (view) location.replace(link(view.screen, "", view.query));
  }, [view]);
  if (loaded.error !== undefined) return <div class="empty"><p>No such view, or it is somebody's own: ask who gave you the address.</p></div>;
  return <Show of={loaded}>{() => null}</Show>;
}
