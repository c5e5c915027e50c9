"use client";

import { SvcProvider, useVisitor } from "@svc/react";
import { useState } from "react";
import { order } from "./order.js";

function Form({ tag }) {
  const { identify, isLoading, error } = useVisitor({ action: "checkout", tag, immediate: false });
  const [said, setSaid] = useState(null);
  const pay = async () => setSaid(await order((await identify())?.request_id ?? null, tag));
  return (
    <form action={pay}>
      <h1>Checkout</h1>
      <button disabled={isLoading}>Pay</button>
      {said && <p role="status">{said}</p>}
      {error && <p role="alert">{error.code}: {error.message}</p>}
    </form>
  );
}

/** Rendered on the server, too: the SDK is imported there, and loaded in the browser only. */
export function Checkout({ apiKey, endpoint, tag }) {
  return (
    <SvcProvider apiKey={apiKey} endpoint={endpoint}>
      <Form tag={tag} />
    </SvcProvider>
  );
}
