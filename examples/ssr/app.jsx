import { useEffect, useState } from "react";
import { SvcProvider, useVisitor } from "@svc/react";

function Greeting() {
  // On the server this renders the state "loading" and nothing else: effects run in the browser alone.
  const { data, error, isLoading } = useVisitor({ action: "visit" });
  const [decision, setDecision] = useState(null);
  useEffect(() => {
    if (data) void decisionAbout(data.request_id).then(setDecision);
  }, [data]);
  if (isLoading || (data && !decision)) return <p>Hello!</p>;
  if (error) return <p role="alert">Hello, whoever you are ({error.code}).</p>;
  // What the browser says of a visitor could be made up: the server has read the event, and decided.
  const greeting = decision === "accept" && !data.visitor_is_new ? "Welcome back!" : "Hello! Log in to see your basket.";
  return <p role="status">{greeting} <code>{data.request_id}</code></p>;
}

async function decisionAbout(requestId) {
  const body = JSON.stringify({ request_id: requestId });
  const response = await fetch("/visits", { method: "POST", headers: { "content-type": "application/json" }, body });
  return response.ok ? (await response.json()).decision : "verify"; // in an outage nobody is greeted by name
}

/** Rendered twice: on the server to HTML, in the browser to make that HTML alive. */
export function App() {
  return (
    <SvcProvider apiKey={SVC_PUBLIC_KEY} endpoint={SVC_URL}>
      <h1>Rendered on the server</h1>
      <Greeting />
    </SvcProvider>
  );
}
