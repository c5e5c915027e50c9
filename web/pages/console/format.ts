/** Values as people read them. */

const whole = new Intl.NumberFormat("en");
export const count = (value: number): string => whole.format(value);

/** "1 visit", "2 visits"; "2 entries" where the plural is given. */
export const many = (value: number, one: string, more = `${one}s`): string => `${count(value)} ${value === 1 ? one : more}`;

/** A count that may go on: "540 events", "more than 10,000 events". */
export const total = (of: { count: number; is_exact: boolean }, one: string): string => `${of.is_exact ? "" : "more than "}${many(of.count, one)}`;

/** A count that ends at 64. */
export const upTo64 = (value: number): string => (value >= 64 ? "64+" : String(value));

/** A share of all: to a tenth of a percent below ten percent. */
export const share = (part: number, all: number): string =>
  all === 0 ? "0 %" : part > 0 && part * 2000 < all ? "< 0.1 %" : `${((100 * part) / all).toFixed(part > 0 && part * 10 < all ? 1 : 0)} %`;

/** Millionths of a dollar, exact: cents where they say it all of what stands together. */
export function money(micros: number, beside = [micros]): string {
  const digits = beside.every((one) => one % 10_000 === 0) ? 2 : 4;
  const amount = (Math.abs(micros) / 1e6).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: 6 });
  return `${micros < 0 ? "−" : ""}$${amount}`;
}

const sameDay = (one: Date, other: Date): boolean => one.toDateString() === other.toDateString();

/** Local time: of today without its date, of another year with it. */
export function moment(at: string, now: Date = new Date()): string {
  const time = new Date(at);
  const clock: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
  if (sameDay(time, now)) return time.toLocaleTimeString("en-GB", clock);
  const year = time.getFullYear() === now.getFullYear() ? {} : { year: "numeric" as const };
  return time.toLocaleString("en-GB", { day: "numeric", month: "short", ...year, ...clock });
}

/** The time zone in which times are shown, such as "Europe/London (UTC+1)". */
export function zone(now: Date = new Date()): string {
  const { timeZone } = new Intl.DateTimeFormat("en").resolvedOptions();
  const minutes = -now.getTimezoneOffset();
  const rest = Math.abs(minutes) % 60;
  const offset = `UTC${minutes === 0 ? "" : `${minutes < 0 ? "−" : "+"}${Math.floor(Math.abs(minutes) / 60)}${rest ? `:${String(rest).padStart(2, "0")}` : ""}`}`;
  return timeZone === "UTC" ? "UTC" : `${timeZone} (${offset})`;
}

export const utc = (at: string): string => `${at.replace("T", " ").replace(/(\.\d+)?Z$/, "")} UTC`;

let regions: Intl.DisplayNames | undefined;
/** The English name of a country; its code where it has none. */
export function country(code: string): string {
  try {
    regions ??= new Intl.DisplayNames("en", { type: "region" });
    return regions.of(code) ?? code;
  } catch {
    return code;
  }
}

/** A name of the API as words. */
export const words = (name: string): string => name.replace(/[_.]/g, " ").replace(/\b(ai|asn|id|ip|url|vpn)\b/g, (short) => short.toUpperCase());

export const capital = (phrase: string): string => phrase.charAt(0).toUpperCase() + phrase.slice(1);

/** A text that turns no direction of writing but its own, where no element can say so: between isolates of Unicode. */
export const apart = (text: string): string => `\u2068${text}\u2069`;

/** A condition with what turns the direction of writing as escapes, which CEL reads as the same. */
export const literal = (condition: string): string => condition.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** "147" of "147.0.7727.117", "26.4" of "26.4.1". */
export const shortVersion = (version?: string): string | undefined => version?.split(".").slice(0, 2).join(".").replace(/\.0$/, "");
