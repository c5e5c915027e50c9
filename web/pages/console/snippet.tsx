/** What to put on a page to identify with a key of this service. */
/** @jsxImportSource preact */
import { Copy } from "./ui.js";

export const snippet = (key: string): string => `<script type="module">
  import { load } from "${new URL("sdk/v1/svc.esm.js", document.baseURI).href}";
  load({ apiKey: "${key}" }).identify().then(({ request_id }) => {
    console.log(request_id); // send it to your server
  });
</script>`;

export const Snippet = ({ apiKey }: { apiKey: string }) => (
  <>
    <pre tabIndex={0}><code>{snippet(apiKey)}</code></pre>
    <p><Copy text={snippet(apiKey)} label="Copy the snippet" /></p>
    <p class="quiet">Send request_id to your server with the form, and read the verdict there with a secret key.</p>
  </>
);
