// @vitest-environment happy-dom
import { h, render } from "preact";
import { act } from "preact/test-utils";
import { expect, it } from "vitest";
import { usePages } from "../console/lists.js";

type Answer = { rows: string[]; next_cursor?: string };

it("adds no page of another list to the one that is shown", async () => {
  const asked: Record<string, (answer: Answer) => void> = {};
  let pages!: ReturnType<typeof usePages<Answer, string>>;
  function List({ filter }: { filter: string }) {
    pages = usePages((cursor) => new Promise<Answer>((done) => { asked[`${filter} ${cursor}`] = done; }), ({ rows }) => rows, [filter]);
    return null;
  }
  const place = document.createElement("div");
  const show = (filter: string) => act(() => render(h(List, { filter }), place));
  const answer = (to: string, of: Answer) => 
    act(async () => {
      asked[to]!(of);
      await new Promise((done) => setTimeout(done));
    });

  await show("low");
  await answer("low undefined", { rows: ["low 2"], next_cursor: "older" });
  await act(() => void pages.more());
  await show("high");
  expect(pages.busy).toBe(true);
  await answer("high undefined", { rows: ["high 2"], next_cursor: "older" });
  await answer("low older", { rows: ["low 1"] });
  expect(pages.loaded.value).toEqual({ rows: ["high 2"], cursor: "older" });
  expect([pages.busy, pages.error]).toEqual([false, undefined]);

  await act(() => void pages.more());
  await answer("high older", { rows: ["high 1"] });
  expect(pages.loaded.value).toEqual({ rows: ["high 2", "high 1"], cursor: undefined });
});
