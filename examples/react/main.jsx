import { useState } from "react";
import { createRoot } from "react-dom/client";
import { SvcProvider, useVisitor } from "@svc/react";

const root = document.getElementById("root");
const { tag } = root.dataset; // a random value of this page, which the server compares with that of the event
const SAID = {
  accept: "Thank you for your order.",
  verify: "We have sent you a code: enter it to pay.",
  refuse: "We can't take this order.",
};

function Checkout() {
  // `immediate: false` identifies on the action. The provider has collected the report by then. A page where somebody is
  // logged in passes `accountId`, too.
  const { identify, forget, isLoading, error } = useVisitor({ action: "checkout", tag, immediate: false });
  const [ordered, setOrdered] = useState(null);

  async function order(event) {
    event.preventDefault();
    const requestId = (await identify())?.request_id ?? null; // null where it failed: the order goes on, and the server decides
    const body = JSON.stringify({ request_id: requestId, tag });
    const response = await fetch("/orders", { method: "POST", headers: { "content-type": "application/json" }, body });
    const { decision } = await response.json();
    setOrdered({ decision, requestId });
  }

  return (
    <form onSubmit={order}>
      <h1>Checkout</h1>
      <button disabled={isLoading}>Pay</button>
      {/* Where consent is withdrawn: removes the token, and stores nothing any more. */}
      <button type="button" onClick={() => forget().then(() => setOrdered(null))}>Forget this browser</button>
      {ordered && <p role="status">{SAID[ordered.decision]} Reference: <code>{ordered.requestId}</code></p>}
      {error && <p role="alert">{error.code}: {error.message}</p>}
    </form>
  );
}

createRoot(root).render(
  <SvcProvider apiKey={SVC_PUBLIC_KEY} endpoint={SVC_URL}>
    <Checkout />
  </SvcProvider>,
);
