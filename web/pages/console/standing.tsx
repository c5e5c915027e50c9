/** Trust and block: whether a visitor, account or address is in one of the lists that every organization has, and one click to change it. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import { audienceOf, effectsIn } from "./effects.js";
import { useAction, useConsole, useLink, useLoad } from "./state.js";
import { Button, Problem, Time } from "./ui.js";
import type { Entry, ListEffect, StoredList } from "./wire.js";

type Kind = "visitor" | "account" | "address";
type Side = "blocked" | "trusted";
const SIDES: Side[] = ["blocked", "trusted"];
const NAMES: Record<Kind, string> = { visitor: "visitors", account: "accounts", address: "addresses" };

interface Standing {
  lists: Record<Side, string>;
  /** The entry in each of the two lists. */
  entries: Partial<Record<Side, Entry>>;
  /** What an entry does, by the name of its list. */
  effects: Map<string, ListEffect>;
}

/** Why an entry does not always decide, with a link to the rules that would have to. */
export function NoEffect({ effect, environment }: { effect: ListEffect | undefined; environment: string }) {
  const link = useLink();
  return effect?.reason ? <p class="note">On the list {effect.name}. {effect.reason} <a href={link("rules", "", { rules: audienceOf(environment) })}>Rules</a></p> : null;
}

export function Standing({ kind, value, environment: given }: { kind: Kind; value: string; environment?: string }) {
  const { api, notify, environment: shown } = useConsole();
  const environment = given ?? shown;
  const link = useLink();
  const [undo, setUndo] = useState<{ text: string; run: () => Promise<void> }>();
  const loaded = useLoad(async (): Promise<Standing> => {
    const [{ lists }, effects] = await Promise.all([api.manage<{ lists: StoredList[] }>("GET", "lists"), effectsIn(api, environment)]);
    const of = (side: Side) => lists.find(({ name }) => name === `${side}_${NAMES[kind]}`)!.id;
    const ids = { blocked: of("blocked"), trusted: of("trusted") };
    const entries: Standing["entries"] = {};
    for (const side of SIDES) {
      const page = await api.manage<{ entries: Entry[] }>("GET", `lists/${ids[side]}/entries`, undefined, { q: value, limit: 1 });
      const found = page.entries[0];
      if (found?.value === value) entries[side] = found;
    }
    return { lists: ids, entries, effects };
  }, [kind, value, environment]);
  const act = useAction(async (change: () => Promise<void>) => {
    await change();
    loaded.reload();
  });
  if (loaded.value === undefined) return <Problem error={loaded.error} retry={loaded.reload} />;
  const { lists, entries, effects } = loaded.value;
  const nameOf = (side: Side) => `${side}_${NAMES[kind]}`;
  const effectOf = (side: Side) => effects.get(nameOf(side));
  const add = async (side: Side, entry: Pick<Entry, "value" | "note" | "expires_at">) => {
    await api.manage("POST", `lists/${lists[side]}/entries`, { entries: [{ value: entry.value, note: entry.note, expires_at: entry.expires_at }] });
  };
  const remove = async (side: Side) => {
    await api.manage("DELETE", `lists/${lists[side]}/entries`, { values: [value] });
  };
  /** Puts it into one list, and out of the other, since the first rule that matches would decide. */
  const put = (side: Side) => act.run(async () => {
    const other: Side = side === "blocked" ? "trusted" : "blocked";
    const before = entries[other];
    await add(side, { value, note: "", expires_at: null });
    if (before) await remove(other);
    setUndo({
      text: effectOf(side)?.reason ? `Added to ${nameOf(side)}.` : side === "blocked" ? "Blocked from the next request on." : "Trusted from the next request on.",
      run: async () => {
        await remove(side);
        if (before) await add(other, before);
      },
    });
  });
  const take = (side: Side) => act.run(async () => {
    const before = entries[side]!;
    await remove(side);
    setUndo({ text: effectOf(side)?.reason ? `Taken off ${nameOf(side)}.` : side === "blocked" ? "Not blocked any more." : "Not trusted any more.", run: () => add(side, before) });
  });
  const takeBack = () => act.run(async () => {
    await undo!.run();
    setUndo(undefined);
    notify("It is as it was before.");
  });
  return (
    <div class="standing">
      {SIDES.map((side) => entries[side] && <span key={side} class={`badge ${effectOf(side)?.effect === "never" ? "" : side === "blocked" ? "high" : "low"}`} title={entries[side].note}>{effectOf(side)?.effect === "never" ? `on ${nameOf(side)}` : side}{entries[side].expires_at && <> until <Time at={entries[side].expires_at} /></>}</span>)}
      <span class="buttons">
        {SIDES.map((side) => entries[side]
          ? <Button judge key={side} kind="small" busy={act.busy} name={side === "blocked" ? `Unblock this ${kind}` : `Trust no more: this ${kind}`} onClick={() => take(side)}>{side === "blocked" ? "Unblock" : "Trust no more"}</Button>
          : <Button judge key={side} kind={`small ${side === "blocked" ? "danger" : ""}`} busy={act.busy} name={`${side === "blocked" ? "Block" : "Trust"} this ${kind}`} onClick={() => put(side)}>{side === "blocked" ? "Block" : "Trust"}</Button>)}
        <a href={link("lists", lists.blocked, { q: value })}>List</a>
      </span>
      <span role="status">{undo && <>{undo.text} <Button kind="small" busy={act.busy} onClick={takeBack}>Undo</Button></>}</span>
      {SIDES.map((side) => entries[side] && <NoEffect key={side} effect={effectOf(side)} environment={environment} />)}
      <Problem error={act.error} />
    </div>
  );
}
