/** The page /try: identify the browser that opens it, and show what the service makes of it. */
/** @jsxImportSource preact */
import { type ComponentChildren, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Identification, load, type SvcClient, SvcError, type Timing } from "@svc/web";
import { type About, Activity } from "./parts/activity.js";
import { Facts } from "./parts/facts.js";
import { Identity, Visits } from "./parts/identity.js";
import { Score } from "./parts/score.js";
import { configuration, erase, explanation, NO_TEXTS, ServiceError, texts, type Explained, type Explanation, type Texts } from "./parts/wire.js";

interface Shown extends Explanation {
  response: Identification;
  timing: Timing | null;
  texts: Texts;
}

type State =
  | { step: "working"; what: string }
  | { step: "failed"; message: string; advice: string }
  | { step: "erased" }
  | ({ step: "shown" } & Shown);

let client: SvcClient | undefined;
let key = "";

async function begin(tell: (what: string) => void): Promise<Shown> {
  key = (await configuration()).api_key;
  tell("Collecting what this browser shows to every page …");
  client = load({ apiKey: key, endpoint: location.origin });
  const asked = texts().catch(() => NO_TEXTS);
  return { ...(await identify(client, {}, tell)), texts: await asked };
}

async function identify(client: SvcClient, about: About, tell?: (what: string) => void): Promise<Omit<Shown, "texts">> {
  const response = await client.identify({ ...about, tag: "try" });
  if (response.deferred_token === undefined) {
    throw new ServiceError("The response was lost on the way, and a repeated request has no verdict. Reload the page.");
  }
  tell?.("Asking why …");
  const explained = await explanation(key, response.request_id, response.deferred_token);
  return { ...explained, response, timing: client.timing };
}

const isSaid = (error: unknown): error is Error => error instanceof SvcError || error instanceof ServiceError;
const UNREACHABLE = "The service cannot be reached.";

function failure(error: unknown): State {
  if (isSaid(error)) return { step: "failed", message: error.message, advice: "Reload the page to try again." };
  return { step: "failed", message: UNREACHABLE, advice: "Is it still running? Then reload the page." };
}

function Page() {
  const [state, setState] = useState<State>({ step: "working", what: "Loading …" });
  useEffect(() => {
    begin((what) => setState({ step: "working", what })).then(
      (shown) => setState({ step: "shown", ...shown }),
      (error: unknown) => setState(failure(error)),
    );
  }, []);
  return (
    <>
      <header class="top">
        <a class="name" href=".">svc</a>
        <nav aria-label="Pages"><a href="docs/">Documentation</a> <a href="docs/api">API reference</a></nav>
      </header>
      <main aria-busy={state.step === "working"}>
        <h1>What this service sees of your browser</h1>
        <Content state={state} setState={setState} />
      </main>
    </>
  );
}

function Content({ state, setState }: { state: State; setState: (state: State) => void }) {
  switch (state.step) {
    case "working":
      return <p class="working" role="status">{state.what}</p>;
    case "failed":
      return (
        <section class="card failed" role="alert">
          <h2>That did not work</h2>
          <p>{state.message}</p>
          <p class="quiet">{state.advice}</p>
          <Reload>Try again</Reload>
        </section>
      );
    case "erased":
      return (
        <section class="card" role="status">
          <h2>Forgotten</h2>
          <p>Your visits, their reports and your id are erased, and the token is gone from this browser.</p>
          <p class="quiet">Identify again, and the same browser is somebody new.</p>
          <Reload>Identify again</Reload>
        </section>
      );
    case "shown":
      return <Result shown={state} onShown={(shown) => setState({ step: "shown", ...shown })} onErased={() => setState({ step: "erased" })} onFailed={(error) => setState(failure(error))} />;
  }
}

function Result({ shown, onShown, onErased, onFailed }: {
  shown: Shown;
  onShown: (shown: Shown) => void;
  onErased: () => void;
  onFailed: (error: unknown) => void;
}) {
  const { event, visits, response } = shown;
  const act = async (about: About) => {
    try {
      const next = await identify(client!, about);
      onShown({ ...next, texts: shown.texts });
      return next.event;
    } catch (error) {
      throw isSaid(error) ? error : new ServiceError(UNREACHABLE);
    }
  };
  const forget = async () => {
    try {
      await client?.deferredSent();
      await erase(key, response.request_id, response.deferred_token ?? "");
      await client?.forget();
      onErased();
    } catch (error) {
      onFailed(error);
    }
  };
  return (
    <>
      <Visits visits={visits} current={event.request_id} />
      <Identity event={event} visits={visits} texts={shown.texts} />
      <Score event={event} texts={shown.texts} />
      <Activity event={event} onAct={act} />
      <Facts event={event} timing={shown.timing} texts={shown.texts} />
      <TestIt />
      <Snippet event={event} />
      <Report signals={event.document?.signals} />
      <section class="card">
        <h2>Be forgotten</h2>
        <p>Erase this visitor: the id, every visit above, and the reports behind them. It cannot be undone.</p>
        <Confirmed onConfirm={forget}>Forget me</Confirmed>
      </section>
    </>
  );
}

const TESTS: [string, string][] = [
  ["Reload this page", "The token in this browser's storage names you at once."],
  ["Open this page in a private window", "It has a token of its own, and mostly the same id: up to 89 %, since a copy of the report would look the same."],
  ["Clear the storage of this site", "The browser is recognized by its properties, again with up to 89 %. A reload lists the earlier visits, and on another day its new token is certain."],
  ["Restart the browser, or the service", "Nothing is lost."],
  ["Open it in another browser", "That is another visitor, with an id of its own."],
];

function TestIt() {
  const [isCleared, setCleared] = useState(false);
  const clear = async () => {
    await client?.forget();
    setCleared(true);
  };
  return (
    <section class="card">
      <h2>Test it</h2>
      <ul class="tests">
        {TESTS.map(([what, why]) => <li><strong>{what}.</strong> <span class="quiet">{why}</span></li>)}
      </ul>
      <p class="buttons">
        <Reload>Reload</Reload>
        <button type="button" onClick={clear} disabled={isCleared}>{isCleared ? "Storage is cleared" : "Clear the storage"}</button>
      </p>
    </section>
  );
}

/** Names what the visit shown named, which may be any text: a script ends at no quotes and no tag of it. */
function snippet({ account_id: accountId, action }: Explained): string {
  const about = Object.entries({ accountId, action }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${JSON.stringify(value).replaceAll("<", "\\u003c")}`],
  );
  const options = about.length > 0 ? `{ ${about.join(", ")} }` : "";
  return `<script type="module">
  import { load } from "${location.origin}/sdk/v1/svc.esm.js";
  load({ apiKey: "${key}" }).identify(${options}).then(({ request_id }) => {
    console.log(request_id); // send it to your server
  });
</script>`;
}

function Snippet({ event }: { event: Explained }) {
  const [copied, setCopied] = useState("");
  const text = snippet(event);
  const copy = () =>
    navigator.clipboard === undefined
      ? setCopied("Select the text and copy it: this page has no access to the clipboard.")
      : navigator.clipboard.writeText(text).then(
          () => setCopied("Copied."),
          () => setCopied("The browser refused: select the text and copy it."),
        );
  return (
    <section class="card">
      <h2>Put it on your own page</h2>
      <p>
        Send <code>request_id</code> to your own server with the form, and read the verdict there. This development key
        works from <code>localhost</code>.
      </p>
      <pre tabIndex={0}><code>{text}</code></pre>
      <p class="buttons"><button type="button" onClick={copy}>Copy</button> <span role="status" class="quiet">{copied}</span></p>
    </section>
  );
}

function Report({ signals }: { signals: Record<string, unknown> | undefined }) {
  if (signals === undefined) return null;
  return (
    <details class="card">
      <summary><h2>The report, as it was sent</h2></summary>
      <p class="quiet">Images are hashed in the browser. What is in a report is not a public contract.</p>
      <pre tabIndex={0}><code>{JSON.stringify(signals, null, 2)}</code></pre>
    </details>
  );
}

function Reload({ children }: { children: ComponentChildren }) {
  return <button type="button" class="primary" onClick={() => location.reload()}>{children}</button>;
}

/** A button that asks once more before it does what cannot be undone. */
function Confirmed({ children, onConfirm }: { children: ComponentChildren; onConfirm: () => Promise<void> }) {
  const [step, setStep] = useState<"idle" | "asking" | "doing">("idle");
  if (step === "idle") return <button type="button" class="danger" onClick={() => setStep("asking")}>{children}</button>;
  const confirm = () => {
    setStep("doing");
    void onConfirm();
  };
  return (
    <p class="buttons">
      <button type="button" class="danger" onClick={confirm} disabled={step === "doing"} ref={(button) => button?.focus()}>
        {step === "doing" ? "Erasing …" : "Erase everything"}
      </button>
      <button type="button" onClick={() => setStep("idle")} disabled={step === "doing"}>Keep it</button>
    </p>
  );
}

const place = document.getElementById("page");
if (place !== null) render(<Page />, place);
