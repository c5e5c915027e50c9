import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Deadline } from "../src/deadline.js";
import { openPage, type World } from "./page.js";

let world: World;

beforeEach(() => {
  vi.useFakeTimers();
  world = openPage();
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function isOver(deadline: Deadline): Promise<boolean> {
  return Promise.race([deadline.over.then(() => true), Promise.resolve().then(() => false)]);
}

test("a visible page has so many milliseconds", async () => {
  const deadline = new Deadline(1000);
  await vi.advanceTimersByTimeAsync(999);
  expect([await isOver(deadline), deadline.remainingMs()]).toEqual([false, 1]);
  await vi.advanceTimersByTimeAsync(1);
  expect([await isOver(deadline), deadline.remainingMs()]).toEqual([true, 0]);
});

test("time in which the page is hidden does not count", async () => {
  const deadline = new Deadline(1000);
  await vi.advanceTimersByTimeAsync(400);
  world.page.show("hidden");
  await vi.advanceTimersByTimeAsync(60_000);
  expect([await isOver(deadline), deadline.remainingMs()]).toEqual([false, 600]);
  world.page.show("visible");
  await vi.advanceTimersByTimeAsync(599);
  expect(await isOver(deadline)).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect([await isOver(deadline), deadline.hiddenMs]).toEqual([true, 60_000]);
});

test("a page that begins hidden has all its time when it is shown", async () => {
  world.page.visibilityState = "hidden";
  const deadline = new Deadline(1000);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(deadline.remainingMs()).toBe(1000);
  world.page.show("visible");
  await vi.advanceTimersByTimeAsync(1000);
  expect(await isOver(deadline)).toBe(true);
});

test("a stopped one holds no timer and hears nothing", async () => {
  const deadline = new Deadline(1000);
  deadline.stop();
  world.page.show("hidden");
  world.page.show("visible");
  expect(vi.getTimerCount()).toBe(0);
  expect(deadline.hiddenMs).toBe(0);
});
