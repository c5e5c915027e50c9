/** Trust and block: whether a visitor, account or address is in one of the lists that every organization has, and one click to change it. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import type { Api } from "./api.js";
import { audienceOf, useAction, useConsole, useLink, useLoad } from "./state.js";
import { Button, Problem, Time } from "./ui.js";
import { addEntries, type Back, inSteps, removeEntries } from "./undo.js";
import type { ListStanding } from "./wire.js";

type Kind = "visitor" | "account" | "address";
type Side = "blocked" | "trusted";
const SIDES: Side[] = ["blocked", "trusted"];
const SAID = { blocked: ["Blocked from the next request on.", "No longer blocked."], trusted: ["Trusted from the next request on.", "No longer trusted."] };

/** The lists of blocked and trusted values, what an entry does by the rules in force, and the entries of a value. */
export const standingOf = async (api: Api, environment: string, of: { kind?: string; value?: string } = {}): Promise<ListStanding[]> =>
  (await api.get<{ lists: ListStanding[] }>("standing", { environment: audienceOf(environment), ...of })).lists;

/** Puts a value into one list, and out of the other, since the first rule that matches would decide. Returns the way back. */
export async function put(api: Api, lists: ListStanding[], side: Side, value: string, note = ""): Promise<Back> {
  const of = (one: Side) => lists.find(({ name }) => name.startsWith(one))!;
  const { id } = of(side), other = of(side === "blocked" ? "trusted" : "blocked");
  return inSteps(async (done) => {
    await addEntries(api, id, [{ value, note, expires_at: null }]);
    done.push(() => removeEntries(api, id, [value]));
    if (other.entry) {
      await removeEntries(api, other.id, [value]);
      done.push(() => addEntries(api, other.id, [other.entry!]));
    }
  });
}

/** Why an entry does not always decide, with a link to the rules that would have to. */
export function NoEffect({ list, environment, isList }: { list: ListStanding | undefined; environment: string; isList?: boolean }) {
  const link = useLink();
  return list?.reason ? <p class="note">{!isList && `On the list ${list.name}. `}{list.reason} <a href={link("rules", "", { rules: audienceOf(environment) })}>Rules</a></p> : null;
}

export function Standing({ kind, value }: { kind: Kind; value: string }) {
  const { api, notify, environment } = useConsole();
  const link = useLink();
  const [undo, setUndo] = useState<{ text: string; run: Back }>();
  const loaded = useLoad(() => standingOf(api, environment, { kind, value }), [kind, value, environment]);
  // Also what has failed may have been done: the answer alone may be lost.
  const act = useAction((change: () => Promise<void>) => change().finally(loaded.reload));
  const busy = act.busy || loaded.busy; // until then the buttons are those of before
  if (loaded.value === undefined) return <Problem error={loaded.error} retry={loaded.reload} />;
  const lists = loaded.value;
  const listOf = (side: Side) => lists.find(({ name }) => name.startsWith(side))!;
  const give = (side: Side) => act.run(async () => {
    const run = await put(api, lists, side, value);
    setUndo({ text: listOf(side).reason ? `Added to ${listOf(side).name}.` : SAID[side][0]!, run });
  });
  const take = (side: Side) => act.run(async () => {
    const list = listOf(side), before = list.entry!;
    await removeEntries(api, list.id, [value]);
    setUndo({ text: list.reason ? `Removed from ${list.name}.` : SAID[side][1]!, run: () => addEntries(api, list.id, [before]) });
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
          ? <Button judge key={side} kind="small" busy={busy} name={side === "blocked" ? `Unblock this ${kind}` : `Remove trust from this ${kind}`} onClick={() => take(side)}>{side === "blocked" ? "Unblock" : "Remove trust"}</Button>
          : <Button judge key={side} kind={`small ${side === "blocked" ? "danger" : ""}`} busy={busy} name={`${side === "blocked" ? "Block" : "Trust"} this ${kind}`} onClick={() => give(side)}>{side === "blocked" ? "Block" : "Trust"}</Button>)}
        <a href={link("lists", listOf("blocked").id, { q: value })}>List</a>
      </span>
      <span role="status">{undo && <>{undo.text} <Button kind="small" busy={busy} onClick={takeBack}>Undo</Button></>}</span>
      {SIDES.map((side) => listOf(side).entry && <NoEffect key={side} list={listOf(side)} environment={environment} />)}
      <Problem error={act.error} />
    </div>
  );
}
