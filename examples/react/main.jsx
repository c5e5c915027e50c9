import { useState } from "react";
import { createRoot } from "react-dom/client";
import { SvcProvider, useVisitor } from "@svc/react";

function Checkout() {
  // `immediate: false` identifies on the action. The provider has collected the report by then. A page with a server of
  // its own passes two more: `accountId`, its id of whoever is logged in, and `tag`, a random value for this request.
  // The server compares both with those of the event.
  const { identify, forget, isLoading, error } = useVisitor({ action: "checkout", immediate: false });
  const [ordered, setOrdered] = useState(null);

  async function order(event) {
    event.preventDefault();
    const identification = await identify(); // null where it failed: the order goes on, and the server decides
    setOrdered(identification?.request_id ?? "none");
    // await fetch("/orders", { method: "POST", body: JSON.stringify({ request_id: identification?.request_id }) });
  }

  return (
    <form onSubmit={order}>
      <h1>Checkout</h1>
      <button disabled={isLoading}>Pay</button>
      {/* Where consent is withdrawn: removes the token, and stores nothing any more. */}
      <button type="button" onClick={() => forget().then(() => setOrdered(null))}>Forget this browser</button>
      {ordered && <p role="status">The server gets the request id <code>{ordered}</code>.</p>}
      {error && <p role="alert">{error.code}: {error.message}</p>}
    </form>
  );
}

createRoot(document.getElementById("root")).render(
  <SvcProvider apiKey={SVC_PUBLIC_KEY} endpoint={SVC_URL}>
    <Checkout />
  </SvcProvider>,
);
