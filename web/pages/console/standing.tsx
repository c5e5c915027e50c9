/** Trust and block: whether a visitor, account or address is in one of the lists that every organization has, and one click to change it. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import type { Api } from "./api.js";
import { audienceOf, useAction, useConsole, useLink, useLoad } from "./state.js";
import { Button, Problem, Time } from "./ui.js";
import type { Entry, ListStanding } from "./wire.js";

type Kind = "visitor" | "account" | "address";
type Side = "blocked" | "trusted";
const SIDES: Side[] = ["blocked", "trusted"];
const SAID = { blocked: ["Blocked from the next request on.", "Not blocked any more."], trusted: ["Trusted from the next request on.", "Not trusted any more."] };

/** The lists of blocked and trusted values, what an entry does by the rules in force, and the entries of a value. */
export const standingOf = async (api: Api, environment: string, of: { kind?: string; value?: string } = {}): Promise<ListStanding[]> =>
  (await api.get<{ lists: ListStanding[] }>("standing", { environment: audienceOf(environment), ...of })).lists;

/** Why an entry does not always decide, with a link to the rules that would have to. */
export function NoEffect({ list, environment, isList }: { list: ListStanding | undefined; environment: string; isList?: boolean }) {
  const link = useLink();
  return list?.reason ? <p class="note">{!isList && `On the list ${list.name}. `}{list.reason} <a href={link("rules", "", { rules: audienceOf(environment) })}>Rules</a></p> : null;
}

export function Standing({ kind, value, environment: given }: { kind: Kind; value: string; environment?: string }) {
  const { api, notify, environment: shown } = useConsole();
  const environment = given ?? shown;
  const link = useLink();
  const [undo, setUndo] = useState<{ text: string; run: () => Promise<void> }>();
  const loaded = useLoad(() => standingOf(api, environment, { kind, value }), [kind, value, environment]);
  const act = useAction(async (change: () => Promise<void>) => {
    await change();
    loaded.reload();
  });
  if (loaded.value === undefined) return <Problem error={loaded.error} retry={loaded.reload} />;
  const lists = loaded.value;
  const listOf = (side: Side) => lists.find(({ name }) => name.startsWith(side))!;
  const add = async (side: Side, entry: Pick<Entry, "value" | "note" | "expires_at">) => {
    await api.manage("POST", `lists/${listOf(side).id}/entries`, { entries: [{ value: entry.value, note: entry.note, expires_at: entry.expires_at }] });
  };
  const remove = async (side: Side) => {
    await api.manage("DELETE", `lists/${listOf(side).id}/entries`, { values: [value] });
  };
  /** Puts it into one list, and out of the other, since the first rule that matches would decide. */
  const put = (side: Side) => act.run(async () => {
    const other: Side = side === "blocked" ? "trusted" : "blocked";
    const before = listOf(other).entry;
    await add(side, { value, note: "", expires_at: null });
    if (before) await remove(other);
    setUndo({
      text: listOf(side).reason ? `Added to ${listOf(side).name}.` : SAID[side][0]!,
      run: async () => {
        await remove(side);
        if (before) await add(other, before);
      },
    });
  });
  const take = (side: Side) => act.run(async () => {
    const before = listOf(side).entry!;
    await remove(side);
    setUndo({ text: listOf(side).reason ? `Taken off ${listOf(side).name}.` : SAID[side][1]!, run: () => add(side, before) });
  });
  const takeBack = () => act.run(async () => {
    await undo!.run();
    setUndo(undefined);
    notify("It is as it was before.");
  });
  return (
    <div class="standing">
      {SIDES.map((side) => {
        const { entry, effect, name } = listOf(side);
        const isIdle = effect === "never";
        return entry && <span key={side} class={`badge ${isIdle ? "" : side === "blocked" ? "high" : "low"}`} title={entry.note}>{isIdle ? `on ${name}` : side}{entry.expires_at && <> until <Time at={entry.expires_at} /></>}</span>;
      })}
      <span class="buttons">
        {SIDES.map((side) => listOf(side).entry
          ? <Button judge key={side} kind="small" busy={act.busy} name={side === "blocked" ? `Unblock this ${kind}` : `Trust no more: this ${kind}`} onClick={() => take(side)}>{side === "blocked" ? "Unblock" : "Trust no more"}</Button>
          : <Button judge key={side} kind={`small ${side === "blocked" ? "danger" : ""}`} busy={act.busy} name={`${side === "blocked" ? "Block" : "Trust"} this ${kind}`} onClick={() => put(side)}>{side === "blocked" ? "Block" : "Trust"}</Button>)}
        <a href={link("lists", listOf("blocked").id, { q: value })}>List</a>
      </span>
      <span role="status">{undo && <>{undo.text} <Button kind="small" busy={act.busy} onClick={takeBack}>Undo</Button></>}</span>
      {SIDES.map((side) => listOf(side).entry && <NoEffect key={side} list={listOf(side)} environment={environment} />)}
      <Problem error={act.error} />
    </div>
  );
}
