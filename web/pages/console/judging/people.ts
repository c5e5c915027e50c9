/** The members of the organization by their names: who wrote a note, and who may take a review. */
import { useConsole, useLoad } from "../state.js";

export interface Person {
  id: string;
  name: string;
  /** Whether it may close reviews. */
  judges: boolean;
}

/** Everybody, as far as it is loaded. */
export function usePeople(): Person[] {
  const { api } = useConsole();
  return useLoad(async (signal) => (await api.get<{ people: Person[] }>("people", {}, signal)).people, []).value ?? [];
}

/** "you", or a member's name. Of one that is removed nothing but the id is left. */
export const nameOf = (id: string, people: Person[], own?: string): string =>
  id === own ? "you" : (people.find((person) => person.id === id)?.name ?? id);

/** Who may take a review: oneself first, then by name. The member who has it already stays to be chosen. */
export function takers(people: Person[], own?: string, now?: string | null): [id: string, name: string][] {
  const found = people
    .filter(({ id, judges }) => judges || id === now)
    .map(({ id }): [string, string] => [id, nameOf(id, people, own)])
    .sort(([one, name], [other, otherName]) => Number(other === own) - Number(one === own) || name.localeCompare(otherName));
  return now && !found.some(([id]) => id === now) ? [...found, [now, nameOf(now, people, own)]] : found;
}
