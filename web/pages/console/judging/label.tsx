/** Labels: what an event turned out to be. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import { words } from "../format.js";
import { useAction, useConsole } from "../state.js";
import { Button, Choice, Dialog, Field, LabelBadge, Problem } from "../ui.js";
import type { EventRow, Label } from "../wire.js";
import { WHY } from "./queue.js";


/** The label of one event, and what changes it. */
export function EventLabel({ event, onChanged }: { event: Pick<EventRow, "request_id" | "label" | "label_reason">; onChanged: () => void }) {
  const { api } = useConsole();
  const [reason, setReason] = useState(event.label_reason ?? "");
  const set = useAction(async (label: Label | null) => {
    await api.manage("PUT", `events/${event.request_id}/label`, { label, label_reason: label === null || reason === "" ? null : reason });
    onChanged();
  });
  return (
    <>
      <div class="standing">
        <span>Label: {event.label ? <><LabelBadge label={event.label} /> {event.label_reason && words(event.label_reason)}</> : <span class="quiet">none</span>}</span>
        <label>Reason <Choice value={reason} options={WHY} onPick={setReason} /></label>
        <span class="buttons">
          <Button judge kind="small danger" busy={set.busy} onClick={() => set.run("fraud")}>Fraud</Button>
          <Button judge kind="small" busy={set.busy} onClick={() => set.run("legitimate")}>Legitimate</Button>
          {event.label && <Button judge kind="small" busy={set.busy} onClick={() => set.run(null)}>Remove the label</Button>}
        </span>
      </div>
      <Problem error={set.error} />
    </>
  );
}

/** One label for events that were chosen: one request for each, and the error says how many were labeled before. */
export function LabelMany({ rows, onClose, onDone }: { rows: EventRow[]; onClose: () => void; onDone: () => void }) {
  const { api, notify } = useConsole();
  return (
    <Dialog title={rows.length === 1 ? "Label one event" : `Label ${rows.length} events`} submit="Label" onClose={onClose} onSubmit={async (form) => {
      const label = String(form.get("label")) || null, reason = String(form.get("reason")) || null;
      let done = 0;
      for (const row of rows) {
        try {
          await api.manage("PUT", `events/${row.request_id}/label`, { label, label_reason: label === null ? null : reason });
        } catch (error) {
          throw new Error(`${error instanceof Error ? error.message : String(error)} ${done} of ${rows.length} are labeled.`);
        }
        done += 1;
      }
      notify(label === null ? `The label of ${done} is removed.` : `${done} labeled ${label}.`);
      onDone();
    }}>
      <Field label="Label"><Choice name="label" value="fraud" options={["fraud", "legitimate", ["", "none: remove it"]]} /></Field>
      <Field label="Reason"><Choice name="reason" value="" options={WHY} /></Field>
    </Dialog>
  );
}
