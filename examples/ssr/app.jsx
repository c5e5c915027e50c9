import { SvcProvider, useVisitor } from "@svc/react";

function Greeting() {
  // On the server this renders the state "loading" and nothing else: effects run in the browser alone.
  const { data, error, isLoading } = useVisitor();
  if (isLoading) return <p>Hello!</p>;
  if (error) return <p role="alert">Hello, whoever you are ({error.code}).</p>;
  return <p role="status">{data.visitor_is_new ? "Hello!" : "Welcome back!"} <code>{data.request_id}</code></p>;
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
