// @vitest-environment happy-dom
import { h, render } from "preact";
import { act } from "preact/test-utils";
import { expect, it, vi } from "vitest";
import { kept, usePages } from "../console/state.js";
import { More } from "../console/ui.js";

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

it("shows as many pages as before when it is read again", async () => {
  kept.clear();
  let pages!: ReturnType<typeof usePages<Answer, string>>;
  const read = vi.fn(async (cursor = "3"): Promise<Answer> => ({ rows: [cursor], ...(cursor > "1" && { next_cursor: String(Number(cursor) - 1) }) }));
  function List() {
    pages = usePages(read, ({ rows }) => rows, []);
    return null;
  }
  const soon = () => act(() => new Promise<void>((done) => setTimeout(done)));
  const place = document.createElement("div");
  await act(() => render(h(List, {}), place));
  await soon();
  await act(() => pages.more());
  await act(() => pages.loaded.reload());
  await soon();
  expect(pages.loaded.value).toEqual({ rows: ["3", "2"], cursor: "1" });
  expect(read.mock.calls.map(([cursor]) => cursor)).toEqual([undefined, "2", undefined, "2"]);
});

it("keeps the focus on the button for more, which does nothing while a page is on its way", async () => {
  const place = document.body.appendChild(document.createElement("div"));
  const onMore = vi.fn();
  const show = (busy: boolean) => act(() => render(h(More, { show: true, busy, onMore }), place));
  await show(false);
  const button = place.querySelector("button")!;
  button.focus();
  button.click();
  await show(true);
  button.click();
  expect(onMore).toHaveBeenCalledTimes(1);
  expect([button.disabled, button.getAttribute("aria-disabled"), document.activeElement]).toEqual([false, "true", button]);
});
