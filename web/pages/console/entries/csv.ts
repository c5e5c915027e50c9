/** Entries of lists as people paste them, and as files have them. */

export interface NewEntry {
  value: string;
  note: string;
  expires_at: string | null;
}

const COLUMNS = ["value", "note", "expires_at"];

/** The cells of each line of CSV (RFC 4180). Throws with the number of the line where a quote is not closed. */
export function cells(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [], cell = "", isQuoted = false, line = 1, opened = 1;
  const end = () => {
    row.push(cell);
    cell = "";
  };
  const endRow = () => {
    end();
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  };
  const source = text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  for (let at = 0; at < source.length; at += 1) {
    const letter = source[at]!;
    if (letter === "\n") line += 1;
    if (isQuoted) {
      if (letter !== '"') cell += letter;
      else if (source[at + 1] === '"') { cell += '"'; at += 1; }
      else isQuoted = false;
    } else if (letter === '"' && cell === "") {
      isQuoted = true;
      opened = line;
    } else if (letter === ",") end();
    else if (letter === "\n") endRow();
    else cell += letter;
  }
  if (isQuoted) throw new Error(`Line ${opened}: a quote is not closed.`);
  endRow();
  return rows;
}

/** A file that the console or `svc list export` wrote, or any with the value in its first column; the header may be missing. */
export function entriesOf(text: string): NewEntry[] {
  const rows = cells(text);
  const isHeader = rows[0]?.every((name, at) => name.trim() === COLUMNS[at]);
  return (isHeader ? rows.slice(1) : rows).map(([value = "", note = "", expires = ""], at) => {
    const time = expires.trim() === "" ? null : new Date(expires.trim());
    if (time && Number.isNaN(time.getTime())) throw new Error(`Line ${at + (isHeader ? 2 : 1)}: ${expires} is not a time such as 2026-01-05T10:00:00Z.`);
    return { value: plain(value), note: plain(note), expires_at: time && time.toISOString() };
  });
}

/** Without the apostrophe that an export puts before what a spreadsheet would evaluate. */
const plain = (cell: string): string => cell.trim().replace(/^'(?=[=+\-@])/, "");

/** What was pasted: a value on each line, or several with commas, semicolons or blanks between, as addresses come. */
export function pasted(text: string, kind: string): string[] {
  const between = kind === "account" || kind === "tag" ? /\n+/ : /[\s,;]+/;
  return [...new Set(text.split(between).map((value) => value.trim()).filter(Boolean))];
}

/** Parts of at most this many. */
export const inParts = <T,>(all: T[], size: number): T[][] => Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size));
