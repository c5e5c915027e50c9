/** Notes about a visitor or an account. */
/** @jsxImportSource preact */
import { useRef } from "preact/hooks";
import { useAction, useConsole, useLoad } from "../state.js";
import { nameOf, usePeople } from "./people.js";
import { Button, Card, Problem, Show, Time } from "../ui.js";

interface Note {
  id: string;
  text: string;
  created_at: string;
  author?: string;
}

export function Notes({ of, id }: { of: "visitors" | "accounts"; id: string }) {
  const { api, session } = useConsole();
  const people = usePeople();
  const field = useRef<HTMLTextAreaElement>(null);
  const path = `${of}/${encodeURIComponent(id)}/notes`;
  const loaded = useLoad(async () => (await api.manage<{ notes: Note[] }>("GET", path)).notes, [path]);
  const write = useAction(async () => {
    const area = field.current!, text = area.value.trim(); // it may be gone by then
    if (text === "") return;
    await api.manage("POST", path, { text });
    area.value = "";
    loaded.reload();
  });
  const remove = useAction(async (note: string) => {
    await api.manage("DELETE", `${path}/${note}`);
    loaded.reload();
  });
  return (
    <Card title="Notes">
      <Show of={loaded}>{(notes) => (
        <ul class="notes">{notes.map((note) => (
          <li key={note.id}><p>{note.text}</p><p class="quiet"><Time at={note.created_at} />{note.author && ` by ${nameOf(note.author, people, session.member?.id)}`} <Button judge kind="small" busy={remove.busy} name={`Delete the note of ${note.created_at}`} onClick={() => remove.run(note.id)}>Delete</Button></p></li>
        ))}</ul>
      )}</Show>
      <form onSubmit={(event) => { event.preventDefault(); void write.run(); }}>
        <label class="field"><span>A new note</span><textarea ref={field} rows={2} maxLength={2000} readOnly={write.busy} /></label>
        <Problem error={write.error ?? remove.error} />
        <Button judge busy={write.busy}>Write</Button>
      </form>
    </Card>
  );
}
