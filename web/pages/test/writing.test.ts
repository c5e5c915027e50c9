// @vitest-environment happy-dom
import { type ComponentChildren, h, render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type Console, Shared, useAction, useAnswer, useLoad } from "../console/state.js";

/** A screen whose button writes until `done` or `fail` is called, and one that loads when it is shown. */
function screens() {
  const notify = vi.fn(), load = vi.fn(async () => "loaded");
  const write = { run: () => {}, done: () => {}, fail: (_error: Error) => {}, error: undefined as unknown };
  function Writes({ children }: { children?: ComponentChildren }) {
    const action = useAction(() => new Promise<void>((done, fail) => Object.assign(write, { done, fail })));
    Object.assign(write, { run: action.run, error: action.error });
    return children ?? null;
  }
  function Reads() {
    useLoad(load, []);
    return null;
  }
  const place = document.createElement("div");
  const show = (screen: (props: object) => ComponentChildren) =>
    act(() => render(h(Shared.Provider, { value: { notify } as unknown as Console, children: h(screen, { key: screen.name }) }), place));
  /** Somebody presses the button, and goes to the other screen before it has written. */
  const leave = async (screen: (props: object) => ComponentChildren = Writes) => {
    await show(screen);
    await act(() => void write.run());
    await show(Reads);
  };
  const after = (ms: number) => act(async () => void (await vi.advanceTimersByTimeAsync(ms)));
  return { notify, load, write, show, leave, after, Writes, Reads };
}

beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout"] }));
afterEach(() => vi.useRealTimers());

it("loads what a screen shows once the one before has written, so that the new one shows it", async () => {
  const { load, write, leave, after } = screens();
  await leave();
  await after(500);
  expect(load).not.toHaveBeenCalled();
  write.done();
  await vi.waitFor(() => expect(load).toHaveBeenCalledTimes(1));
});

it("waits three seconds at most for what a screen writes that was left", async () => {
  const { load, write, leave, after } = screens();
  await leave();
  await after(2900);
  expect(load).not.toHaveBeenCalled();
  await after(200);
  expect(load).toHaveBeenCalledTimes(1);
  write.done();
});

it("waits for a part of a screen that writes, although its other parts, which are left with it, write nothing", async () => {
  const { load, write, leave, after, Writes } = screens();
  const Idle = () => (useAction(async () => undefined), null);
  await leave(() => h(Writes, { children: [h(Idle, {}), h(Idle, {})] }));
  await after(500);
  expect(load).not.toHaveBeenCalled();
  write.done();
  await vi.waitFor(() => expect(load).toHaveBeenCalledTimes(1));
});

it("loads again after each of two writes that began before either had ended", async () => {
  const { load, show, after } = screens();
  const reloads: (() => void)[] = [];
  await show(() => (reloads.push(useLoad(load, []).reload), null));
  await after(0);
  await act(() => reloads[0]!());
  await after(0);
  await act(() => reloads[0]!());
  await after(0);
  expect(load).toHaveBeenCalledTimes(3);
});

it("shows no answer to what is asked no more, in whatever order it comes", async () => {
  const asked: Record<string, (answer: string) => void> = {};
  let answer!: { value?: unknown; busy: boolean; run: () => void };
  const Asks = ({ about }: { about: string }) => ((answer = useAnswer(about, () => new Promise<string>((done) => { asked[about] = done; }))), null);
  const place = document.createElement("div");
  const show = (about: string) => act(() => render(h(Asks, { about }), place));
  await show("production");
  await act(() => answer.run());
  await show("staging");
  await act(async () => asked["production"]!("of production"));
  expect([answer.value, answer.busy]).toEqual([undefined, false]);
  await act(() => answer.run());
  await act(async () => asked["staging"]!("of staging"));
  expect(answer.value).toBe("of staging");
  await show("production");
  expect(answer.value).toBeUndefined();
});

it("loads at once where nothing is being written", async () => {
  const { load, show, after, Writes, Reads } = screens();
  await show(Writes);
  await show(Reads);
  await after(0);
  expect(load).toHaveBeenCalledTimes(1);
});

it("says an error on the screen that wrote, and in passing where somebody has left it", async () => {
  const { notify, write, show, after, Writes, Reads } = screens();
  await show(Writes);
  await act(() => void write.run());
  write.fail(new Error("A reason."));
  await after(0);
  expect([(write.error as Error).message, notify.mock.calls]).toEqual(["A reason.", []]);
  await act(() => void write.run());
  await show(Reads);
  write.fail(new Error("Another reason."));
  await after(0);
  expect(notify.mock.calls).toEqual([["Not saved: Another reason."]]);
});
