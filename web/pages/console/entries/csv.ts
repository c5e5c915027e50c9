/**
 * Entries of lists as people paste them, and as files have them: what can be read in one way is, and nothing else is taken for a
 * value. By the rules of `svc/kernel/values/text_files.py`; both pass the vectors of `tests/domain/csv_tables.json`.
 */

export interface NewEntry {
  value: string;
  note: string;
  expires_at: string | null;
}

export interface Table {
  /** Name of one of `SEPARATORS`. */
  separator: string;
  /** Whether its first line names the columns. */
  hasHeader: boolean;
  entries: NewEntry[];
}

const COLUMNS = ["value", "note", "expires_at"];
const SEPARATORS: Record<string, string> = { comma: ",", semicolon: ";", tab: "\t" };
/** First lines that begin so are headers of other programs, where any text may be a value. */
const SUSPECTS = ["account", "account_id", "customer", "customer_id", "email", "id", "tag", "user", "user_id", "username", "values"];
const TIME = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

interface Row {
  /** Where it begins, from 1. */
  line: number;
  cells: string[];
  /** Whether the first cell is. */
  isQuoted: boolean;
}

/** Behind an apostrophe of an export: what a spreadsheet would evaluate, however it separates cells. */
const HIDDEN = /(^|[;\t\r\n])'(?=['\s"\u200b-\u200f\u2060\ufeff]*[=+@\uff1d\uff0b\uff0d\uff20-])/g;

/** A cell as an export wrote it, with apostrophes before formulas, and around what has a blank at an end. */
function read(text: string): string {
  const cell = text.trim().replace(HIDDEN, "$1");
  let around = 0;
  while (around < cell.length / 2 && cell[around] === "'" && cell.at(-1 - around) === "'") around += 1;
  return around > 0 && /^[\s\x1c-\x1f\x85]|[\s\x1c-\x1f\x85]$/.test(cell.slice(around, -around)) ? cell.slice(1, -1) : cell;
}

const isAnyText = (kind: string): boolean => kind === "account" || kind === "tag";

/** The rows of CSV (RFC 4180), but for empty ones. Throws with the number of the line where a quote is not closed. */
export function rowsOf(text: string, separator: string): Row[] {
  const rows: Row[] = [];
  let row: Row = { line: 1, cells: [], isQuoted: false }, cell = "", isQuoted = false, isClosed = false, line = 1;
  const end = () => {
    row.cells.push(read(cell));
    cell = "";
    isClosed = false;
  };
  const endRow = () => {
    end();
    if (row.cells.some(Boolean)) rows.push(row);
    row = { line, cells: [], isQuoted: false };
  };
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at]!;
    if (letter === "\n") line += 1;
    if (isQuoted) {
      if (letter !== '"') cell += letter;
      else if (text[at + 1] === '"') { cell += '"'; at += 1; }
      else { isQuoted = false; isClosed = true; }
    } else if (letter === separator) end();
    else if (letter === "\n") endRow();
    else if (isClosed) throw new Error(`Line ${row.line}: there is text after a closing quote.`);
    else if (letter === '"' && cell === "") {
      isQuoted = true;
      row.isQuoted ||= row.cells.length === 0;
    } else if (letter !== " " || cell !== "") cell += letter;
  }
  if (isQuoted) throw new Error(`Line ${row.line}: a quote is not closed.`);
  endRow();
  return rows;
}

/** The cells of a header as columns are spelled, without empty ones at the end. */
function namesOf(cells: string[]): string[] {
  const names = cells.map((cell) => cell.trim().replace(/[\s-]+/g, "_").toLowerCase());
  while (names.at(-1) === "") names.pop();
  return names;
}

/** Why names are not a header. */
function headerFault(names: string[]): string | undefined {
  const unknown = names.find((name) => !COLUMNS.includes(name));
  if (unknown !== undefined) return `'${unknown}' is not a column`;
  if (new Set(names).size < names.length) return "a column appears twice";
  return names.includes("value") ? undefined : "the column value is missing";
}

const isSuspect = (names: string[], kind: string): boolean => (isAnyText(kind) && SUSPECTS.includes(names[0] ?? "")) || names.some((name) => COLUMNS.includes(name));

/** A file for a list of this kind. Throws for its first fault, also where separator or header are not clear. */
export function tableOf(content: string, kind: string): Table {
  const text = content.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  let separator = "comma", header: string[] | undefined, wrong = "";
  const head = text.split("\n").find((line) => line.trim() !== "") ?? "";
  for (const one in SEPARATORS) {
    let names: string[];
    try {
      names = namesOf(rowsOf(head, SEPARATORS[one]!)[0]?.cells ?? []);
    } catch {
      continue;
    }
    const fault = headerFault(names);
    if (fault === undefined) {
      [separator, header] = [one, names];
      break;
    }
    if (isSuspect(names, kind)) wrong ||= fault;
  }
  if (!header && wrong) throw new Error(`Line 1: it looks like a header, and ${wrong}: begin the file with ${COLUMNS.join(",")}.`);
  const rows = rowsOf(text, SEPARATORS[separator]!);
  const entries = (header ? rows.slice(1) : rows).map((row) => entryOf(row, header, separator));
  return { separator, hasHeader: header !== undefined, entries };
}

function entryOf({ line, cells, isQuoted }: Row, header: string[] | undefined, separator: string): NewEntry {
  const columns = header ?? COLUMNS, width = cells.length;
  const names = namesOf(cells);
  while (cells.length > columns.length && cells.at(-1) === "") cells.pop();
  if (cells.length > columns.length) throw new Error(`Line ${line}: ${cells.length} columns, and there are ${columns.length}: ${columns.join(", ")}.`);
  if (names.length > 1 && headerFault(names) === undefined) throw new Error(`Line ${line}: a header that is not the first line.`);
  const isWhole = header !== undefined && header.length > 1 && width >= header.length;
  const other = !isWhole && !isQuoted && Object.keys(SEPARATORS).find((one) => one !== separator && cells[0]!.includes(SEPARATORS[one]!));
  if (other) throw new Error(`Line ${line}: '${cells[0]}' has a ${other}: put it in quotes, or begin the file with ${COLUMNS.join(SEPARATORS[other])}.`);
  const [value, note, expires] = COLUMNS.map((name) => cells[columns.indexOf(name)] ?? "");
  const time = expires ? new Date(TIME.test(expires) ? expires : "") : undefined;
  if (time && Number.isNaN(time.getTime())) throw new Error(`Line ${line}: '${expires}' is not a time such as 2026-01-05T10:00:00Z.`);
  return { value: value!, note: note!, expires_at: time ? time.toISOString() : null };
}

/** What was pasted: a value on each line, or several with commas, semicolons or blanks between, as addresses come. Throws for a header. */
export function pasted(text: string, kind: string): string[] {
  const first = text.trim().split("\n")[0]!;
  if (Object.values(SEPARATORS).some((one) => isSuspect(namesOf(first.split(one)), kind))) throw new Error(`'${first}' looks like a header: leave it out, or import the text as a file.`);
  const between = isAnyText(kind) ? /\n+/ : /[\s,;]+/;
  return [...new Set(text.split(between).map((value) => value.trim()).filter(Boolean))];
}

/** Parts of at most this many. */
export const inParts = <T,>(all: T[], size: number): T[][] => Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size));
