/** Filters that somebody keeps by a name, in this browser. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import { KEPT } from "./filters.js";
import type { Query } from "./hash.js";
import { useConsole, useLink } from "./state.js";
import { Button, Choice, Dialog, Field } from "./ui.js";

interface View {
  name: string;
  query: Query;
}

const OF_A_VIEW = ["window", "from", "to", "sort", ...KEPT];

/** What the browser keeps under this name; nothing where it keeps none, or not in this form. */
export function savedViews(storage: Pick<Storage, "getItem">, place: string): View[] {
  try {
    const found: unknown = JSON.parse(storage.getItem(place) ?? "[]");
    const isView = (one: unknown): one is View => typeof (one as View | null)?.name === "string" && typeof (one as View).query === "object";
    return Array.isArray(found) ? found.filter(isView) : [];
  } catch {
    return [];
  }
}

/** The views with one more, or another one of its name. */
export const withView = (views: View[], view: View): View[] =>
  [...views.filter(({ name }) => name !== view.name), view].sort((one, other) => one.name.localeCompare(other.name));

/** What of an address is part of a view: its filters and its window. */
export const viewOf = (query: Query): Query => Object.fromEntries(OF_A_VIEW.flatMap((name) => (query[name] === undefined ? [] : [[name, query[name]]])));

/** A choice of the saved views of this screen, and what keeps or forgets one. */
export function SavedViews() {
  const { session, place: { screen, query } } = useConsole();
  const link = useLink();
  const place = `svc views ${session.organization.id} ${screen}`;
  const [views, setViews] = useState(() => savedViews(localStorage, place));
  const [isNaming, setNaming] = useState(false);
  const shown = JSON.stringify(viewOf(query));
  const current = views.find((view) => JSON.stringify(viewOf(view.query)) === shown);
  const keep = (next: View[]) => {
    setViews(next);
    if (next.length > 0) localStorage.setItem(place, JSON.stringify(next));
    else localStorage.removeItem(place);
  };
  const open = (name: string) => {
    location.hash = link(screen, "", views.find((view) => view.name === name)?.query ?? {});
  };
  return (
    <>
      {views.length > 0 && <Field label="Saved"><Choice value={current?.name ?? ""} options={[["", "choose …"], ...views.map(({ name }): [string, string] => [name, name])]} onPick={open} /></Field>}
      {current === undefined
        ? shown !== "{}" && <Button onClick={() => setNaming(true)}>Save these filters …</Button>
        : <Button name={`Forget the filters ${current.name}`} onClick={() => keep(views.filter((view) => view !== current))}>Forget</Button>}
      {isNaming && (
        <Dialog title="Save these filters" submit="Save" onClose={() => setNaming(false)} onSubmit={async (values) => {
          keep(withView(views, { name: String(values.get("name")).trim(), query: viewOf(query) }));
          setNaming(false);
        }}>
          <Field label="Name" hint="Kept in this browser. To share a view, copy its address."><input name="name" required maxLength={60} autocomplete="off" /></Field>
        </Dialog>
      )}
    </>
  );
}
