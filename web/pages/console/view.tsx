/** A saved view by its address: it leads to the screen with its filters. */
/** @jsxImportSource preact */
import { useEffect } from "preact/hooks";
import { useConsole, useLink, useLoad } from "./state.js";
import { Show } from "./ui.js";
import type { View } from "./wire.js";

export function OneView() {
  const { api, place: { id } } = useConsole();
  const link = useLink();
  const loaded = useLoad((signal) => api.get<View>(`views/${encodeURIComponent(id)}`, {}, signal), [id]);
  const view = loaded.value;
  // In the place of this address: Back leads to where somebody came from.
  useEffect(() => {
    if (view) location.replace(link(view.screen, "", view.query));
  }, [view]);
  if (loaded.error !== undefined) return <div class="empty"><p>No such view, or it is somebody's own: ask who gave you the address.</p></div>;
  return <Show of={loaded}>{() => null}</Show>;
}
