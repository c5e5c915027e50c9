import { expect, it } from "vitest";
import type { Api } from "../console/api.js";
import { blockAll } from "../console/ring.js";
import { put } from "../console/standing.js";
import { addEntries } from "../console/undo.js";
import type { ListStanding } from "../console/wire.js";

const LISTS = ["blocked_visitors", "trusted_visitors", "blocked_accounts", "trusted_accounts"];
const lists = LISTS.map((name) => ({ name, id: name })) as unknown as ListStanding[];
const trusted = (list: string, value: string, expires_at: string | null = null) => ({ list_id: list, list, entry: { value, note: "known", expires_at } });

/** A service that keeps what it is asked to change, and fails where `fails` says so. */
function service(entries: ReturnType<typeof trusted>[] = []) {
  const asked: string[] = [], state = { fails: (_: string): boolean => false };
  const api = {
    get: async () => ({ lists }),
    call: async () => ({ entries }),
    manage: async (method: string, path: string, body: { entries?: { value: string }[]; values?: string[] }) => {
      const said = `${method} ${path.split("/")[1]} ${body.values ?? body.entries!.map(({ value }) => value)}`;
      if (state.fails(said)) throw new Error(said);
      asked.push(said);
    },
  } as unknown as Api;
  return { api, asked, state };
}

it("goes on with the step that has failed when an undo is asked for again", async () => {
  const { api, asked, state } = service([trusted("trusted_visitors", "v"), trusted("trusted_accounts", "a")]);
  const { back } = await blockAll(api, "production", { visitors: ["v"], accounts: ["a"] }, "");
  asked.length = 0;
  state.fails = (said) => said === "DELETE blocked_accounts a";
  await expect(back()).rejects.toThrow("DELETE blocked_accounts a");
  expect(asked).toEqual(["POST trusted_accounts a"]);
  await expect(back()).rejects.toThrow("DELETE blocked_accounts a");
  state.fails = () => false;
  await back();
  expect(asked).toEqual(["POST trusted_accounts a", "DELETE blocked_accounts a", "POST trusted_visitors v", "DELETE blocked_visitors v"]);
  await back();
  expect(asked.length, "nothing is left to undo").toBe(4);
});

it("takes back what was done where a step fails", async () => {
  const { api, asked, state } = service([trusted("trusted_visitors", "v")]);
  state.fails = (said) => said.startsWith("DELETE trusted");
  await expect(blockAll(api, "production", { visitors: ["v"], accounts: [] }, "")).rejects.toThrow();
  const one = lists.slice(0, 2).map((list, at) => (at === 1 ? { ...list, entry: trusted("", "v").entry } : list)) as ListStanding[];
  await expect(put(api, one, "blocked", "v")).rejects.toThrow();
  expect(asked).toEqual(["POST blocked_visitors v", "DELETE blocked_visitors v", "POST blocked_visitors v", "DELETE blocked_visitors v"]);
});

it("leaves out entries that have expired meanwhile", async () => {
  const { api, asked } = service();
  const [gone, later] = ["2020-01-01T00:00:00.000Z", "2999-01-01T00:00:00.000Z"];
  await addEntries(api, "x", [trusted("", "a", gone).entry, trusted("", "b", later).entry, trusted("", "c").entry]);
  await addEntries(api, "x", [trusted("", "a", gone).entry]);
  expect(asked).toEqual(["POST x b,c"]);
});
