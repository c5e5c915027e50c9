/** Parts of the console that are loaded when they are shown first. */
/** @jsxImportSource preact */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { within } from "./api.js";

/** A component in a script of its own; until it is there, the screen says so, and where it does not come, what to do. */
export function lazy<P extends object = object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let there: ComponentType<P> | undefined;
  return function Lazy(props: P) {
    const [Shown, show] = useState<ComponentType<P> | undefined>(() => there);
    const [isMissing, setMissing] = useState(false);
    useEffect(() => {
      let isGone = false;
      if (there === undefined) {
        within(load(), "").then(
          (found) => {
            there = found;
            if (!isGone) show(() => found);
          },
          () => isGone || setMissing(true),
        );
      }
      return () => {
        isGone = true;
      };
    }, []);
    if (Shown) return <Shown {...props} />;
    if (!isMissing) return <p class="quiet" role="status">Loading …</p>;
    return (
      <div class="problem" role="alert">
        <p>This screen cannot be loaded: the connection is lost, or the service was updated.</p>
        <button type="button" onClick={() => location.reload()}>Load the console again</button>
      </div>
    );
  };
}
