/** What an entry of the lists of blocked and trusted values does: a list by itself blocks nobody, a rule must read it. */
import type { Api } from "./api.js";
import type { ListEffect } from "./wire.js";

/** Whose rules decide in an environment. */
export const audienceOf = (environment: string): "live" | "test" => (environment === "production" ? "live" : "test");

/** Of each of the six lists, by its name, what an entry does by the rules in force. */
export async function effectsIn(api: Api, environment: string): Promise<Map<string, ListEffect>> {
  const { lists } = await api.get<{ lists: ListEffect[] }>("rules/list-effects", { environment: audienceOf(environment) });
  return new Map(lists.map((one) => [one.name, one]));
}
