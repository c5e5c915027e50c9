/** A field for a condition: completion of what it may name, and its error where it is. */
/** @jsxImportSource preact */
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useConsole } from "../state.js";
import type { Language } from "../wire.js";
import { type Completion, completions } from "./complete.js";
import { offsetOf } from "./diff.js";

export interface Fault {
  line: number;
  column: number;
  text: string;
}

export function ConditionField({ value, fault, language, onEdit }: { value: string; fault: Fault | undefined; language: Language; onEdit: (text: string) => void }) {
  const { texts } = useConsole();
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const caret = useRef<number>();
  const [offered, offer] = useState<{ replaces: number; found: Completion[] }>({ replaces: 0, found: [] });
  const [at, setAt] = useState(0);
  const close = () => offer({ replaces: 0, found: [] });
  const look = (text: string, position: number) => {
    offer(completions(text.slice(0, position), language, Object.keys(texts.signals)));
    setAt(0);
  };
  const take = (one: Completion) => {
    const end = field.current!.selectionStart, start = end - offered.replaces;
    caret.current = start + one.text.length;
    onEdit(value.slice(0, start) + one.text + value.slice(end));
    close();
  };
  useLayoutEffect(() => {
    if (caret.current === undefined) return;
    field.current?.setSelectionRange(caret.current, caret.current);
    caret.current = undefined;
  }, [value]);
  useEffect(() => document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" }), [at]);
  const key = (event: KeyboardEvent) => {
    const { found } = offered;
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      look(value, field.current!.selectionStart);
    } else if (found.length === 0) {
      return;
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setAt((at + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      take(found[at]!);
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  };
  const isOpen = offered.found.length > 0;
  const toFault = () => {
    const position = offsetOf(value, fault!.line, fault!.column);
    field.current?.focus();
    field.current?.setSelectionRange(position, position + 1);
  };
  return (
    <div class="field condition">
      <label for={id}>Condition</label>
      <textarea
        id={id} ref={field} rows={Math.min(10, value.split("\n").length + 1)} maxLength={2000} required spellcheck={false} autocapitalize="none" value={value}
        aria-autocomplete="list" aria-haspopup="listbox" aria-controls={`${id}-list`} aria-activedescendant={isOpen ? `${id}-${at}` : undefined}
        aria-invalid={fault !== undefined} aria-describedby={fault ? `${id}-fault` : `${id}-hint`}
        onInput={(event) => { onEdit(event.currentTarget.value); look(event.currentTarget.value, event.currentTarget.selectionStart); }}
        onKeyDown={key} onBlur={close} onClick={close}
      />
      <ul id={`${id}-list`} role="listbox" aria-label="Completions" class="completions" hidden={!isOpen}>
        {offered.found.map((one, index) => (
          <li key={one.label} id={`${id}-${index}`} role="option" aria-selected={index === at} onMouseDown={(event) => { event.preventDefault(); take(one); }}><code>{one.label}</code> <span class="quiet">{one.detail}</span></li>
        ))}
      </ul>
      {fault
        ? <div id={`${id}-fault`} class="fault" role="alert">
            <pre aria-hidden="true"><code>{value.split("\n")[fault.line - 1] ?? ""}{"\n"}{" ".repeat(Math.max(0, fault.column - 1))}^</code></pre>
            <p>Line {fault.line}, column {fault.column}: {fault.text} <button type="button" class="small" onClick={toFault}>Go there</button></p>
          </div>
        : <small id={`${id}-hint`}>Written in CEL. Press Ctrl+Space for completions.</small>}
    </div>
  );
}
