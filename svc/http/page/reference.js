"use strict";

const { root } = document.documentElement.dataset;
const at = (path) => new URL(root + path, location.href).href;

// Light or dark as the system is, also when it changes. Swagger UI's dark rules hang on this class.
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", paint);
paint();

// A browser is no place for a key that reaches more than development data.
const DEVELOPMENT = /^svc_(pk|sk|px)_[a-z0-9]+_development_/;
const STREAM_MS = 5000; // how long a stream is shown

const refusal = document.getElementById("refusal");
const signing = document.getElementById("sign-in");
const signed = document.getElementById("signed");
let session; // of the console; undefined = not signed in from here

function refuse(text) {
  refusal.textContent = text;
  refusal.hidden = text === "";
}

/** What a browser may send: development keys, and for the management API the session instead of a key. */
function sendable(request) {
  if (request.loadSpec) return request;
  const key = request.headers["x-api-key"];
  const managed = at("api/v1/management/");
  delete request.headers.Cookie; // the browser has it
  if (request.url.startsWith(managed) || request.url.startsWith(at("console/api/"))) {
    request.url = request.url.replace(managed, at("console/api/management/"));
    delete request.headers["x-api-key"];
    refuse(session ? "" : "Sign in with a management key first, at the top of this page.");
  } else if (key === undefined || DEVELOPMENT.test(key)) {
    refuse("");
  } else {
    delete request.headers["x-api-key"]; // the request goes without, and gets a 401
    refuse("Your key was not sent. Only development keys can be used here.");
  }
  request.userFetch = taken;
  return request;
}

/** `fetch`, but for a stream what arrives of it within some seconds. */
async function taken(url, options) {
  const response = await fetch(url, options);
  if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) return response;
  const reader = response.body.getReader();
  const end = setTimeout(() => reader.cancel(), STREAM_MS);
  const text = new TextDecoder();
  let shown = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) shown += text.decode(part.value, { stream: true });
  clearTimeout(end);
  return new Response(shown, { status: response.status, headers: response.headers });
}

const VARIABLES = { publicKey: "SVC_PUBLIC_KEY", secretKey: "SVC_SECRET_KEY", managementKey: "SVC_MANAGEMENT_KEY" };
const BY_COOKIE = new Set(["readSession", "signOut"]);

/** The request of an operation with the values that the page shows now. */
function requestOf({ specSelectors, oas3Selectors, authSelectors }, path, method) {
  const spec = specSelectors.specJson().toJS();
  const operation = specSelectors.operationWithMeta(path, method).toJS();
  const server = (operation.servers ?? spec.servers)[0].url;
  const headers = {};
  const query = new URLSearchParams();
  let filled = path;
  for (const { name, in: where, value, schema } of operation.parameters ?? []) {
    const given = value ?? "";
    if (where === "path") filled = filled.replace(`{${name}}`, encodeURIComponent(given || schema.examples?.[0] || name));
    else if (given !== "" && where === "query") query.append(name, given);
    else if (given !== "" && where === "header") headers[name] = String(given);
  }
  const entered = authSelectors.authorized().toJS();
  const schemes = (operation.security ?? []).map((one) => Object.keys(one)[0]).filter((name) => name in VARIABLES);
  const scheme = schemes.find((name) => entered[name]) ?? schemes[0];
  if (BY_COOKIE.has(operation.operationId)) {
    headers.Cookie = [location.protocol === "https:" ? "__Host-svc=" : "svc-console=", "SVC_SESSION"];
  } else if (scheme) {
    headers["x-api-key"] = entered[scheme]?.value || ["", VARIABLES[scheme]];
  }
  const isSigning = path === "/console/session" && method !== "get";
  if (scheme === "publicKey" || isSigning) headers.Origin = location.origin; // as the browser sends it
  if (isSigning) headers["Sec-Fetch-Site"] = "same-origin";
  const content = operation.requestBody?.content["application/json"];
  let body;
  if (content) {
    headers["Content-Type"] = "application/json";
    body = content.example;
    try {
      body = JSON.parse(oas3Selectors.requestBodyValue(path, method) ?? undefined);
    } catch {
      // none was written yet, or it is no JSON
    }
  }
  const base = at((server + filled).replace(/^\/+/, ""));
  const streams = Object.values(operation.responses).some((response) => response.content?.["text/event-stream"]);
  return { method: method.toUpperCase(), url: query.size ? `${base}?${query}` : base, headers, body, streams };
}

/** The samples of an operation with the values that the page shows now, by language. */
window.samplesOf = (path, method) => {
  const request = requestOf(window.reference, path, method);
  return Object.fromEntries(Object.entries(window.samples).map(([language, write]) => [language, write(request)]));
};

/** What Swagger UI does not have: samples in three languages, and heads of operations without a link in a button. */
function additions({ React }) {
  const make = React.createElement;
  let chosen = "curl";

  function Samples({ path, method }) {
    const [language, choose] = React.useState(chosen);
    const [copied, note] = React.useState("");
    const text = window.samplesOf(path, method)[language];
    const pick = (name) => () => {
      chosen = name;
      choose(name);
      note("");
    };
    const copy = () => navigator.clipboard.writeText(text).then(() => note("Copied."), () => note("Select the text and copy it."));
    const languages = Object.keys(window.samples).map((name) =>
      make("button", { key: name, type: "button", "aria-pressed": name === language, onClick: pick(name) }, name),
    );
    return make(
      "section",
      { className: "samples", "aria-label": `Code samples of ${method.toUpperCase()} ${path}` },
      make("h4", null, "Code samples"),
      make("div", { className: "languages", role: "group", "aria-label": "Language" }, ...languages, make("button", { type: "button", className: "copy", onClick: copy }, "Copy"), make("span", { role: "status" }, copied)),
      make("pre", { tabIndex: 0, "aria-label": `${language} sample`, "data-language": language }, make("code", null, text)),
    );
  }

  return {
    wrapComponents: {
      DeepLink: () => ({ text }) => make("span", null, text),
      curl: () => () => null,
      responses: (Original, system) => (props) => {
        const isWebhook = system.specSelectors.specJson().getIn(["webhooks", props.path]) !== undefined;
        const samples = isWebhook ? null : make(Samples, { path: props.path, method: props.method });
        return make(React.Fragment, null, samples, make(Original, props));
      },
    },
  };
}

/** What the renderer leaves without a name or out of reach of the keyboard. */
function reachable() {
  const names = { "textarea.body-param__text": "Request body", "select.examples-select-element": "Example", "select.content-type": "Media type" };
  for (const [selector, name] of Object.entries(names)) {
    for (const element of document.querySelectorAll(`${selector}:not([aria-label])`)) element.setAttribute("aria-label", name);
  }
  for (const box of document.querySelectorAll(":is(.microlight, .body-param__example, .model-box, .table-container):not([tabindex])")) {
    box.tabIndex = 0;
  }
  // Its headings begin two levels below the title, and each table of responses is a region of the same name.
  for (const [heading, level] of Object.entries({ h3: 2, h4: 3, h5: 4 })) {
    for (const element of document.querySelectorAll(`#reference ${heading}:not([aria-level])`)) element.setAttribute("aria-level", level);
  }
  for (const table of document.querySelectorAll(".opblock [role=region][id$=_responses]:not([aria-label])")) {
    table.setAttribute("aria-label", table.id.replaceAll("_", " "));
  }
  for (const [selector, name] of Object.entries({ ".information-container": "About", ".scheme-container": "Server and keys" })) {
    const part = document.querySelector(`#reference ${selector}:not([role])`);
    part?.setAttribute("role", "region");
    part?.setAttribute("aria-label", name);
  }
}

/** A list of all operations beside them, for those who know what they look for. */
function list(ui) {
  const spec = ui.specSelectors.specJson().toJS();
  const nav = document.getElementById("index");
  const groups = new Map(spec.tags.map(({ name }) => [name, []]));
  for (const methods of Object.values(spec.paths)) {
    for (const { tags, operationId, summary } of Object.values(methods)) groups.get(tags[0]).push({ operationId, summary });
  }
  groups.set("webhooks", Object.keys(spec.webhooks).map((name) => ({ operationId: name, summary: name })));
  const found = document.createElement("div");
  for (const [tag, operations] of groups) {
    const heading = Object.assign(document.createElement("h2"), { textContent: tag === "webhooks" ? "Webhooks" : tag });
    const rows = document.createElement("ul");
    for (const { operationId, summary } of operations) {
      const link = Object.assign(document.createElement("a"), { textContent: summary, href: `#/${encodeURIComponent(tag)}/${operationId}` });
      link.addEventListener("click", () => {
        ui.layoutActions.show(["operations-tag", tag], true);
        ui.layoutActions.show(["operations", tag, operationId], true);
        setTimeout(() => {
          const block = [...document.querySelectorAll(".opblock")].find(({ id }) => id.replaceAll("\\", "").endsWith(`-${operationId}`));
          block?.scrollIntoView();
          block?.querySelector("button")?.focus({ preventScroll: true });
        }, 100);
      });
      rows.append(document.createElement("li"));
      rows.lastChild.append(link);
    }
    found.append(heading, rows);
  }
  nav.append(found);
  nav.querySelector("input").addEventListener("input", ({ target }) => {
    const words = target.value.toLowerCase().split(/\s+/);
    for (const row of found.querySelectorAll("li")) {
      row.hidden = !words.every((word) => `${row.textContent} ${row.firstChild.hash}`.toLowerCase().includes(word));
    }
    for (const rows of found.querySelectorAll("ul")) rows.hidden = rows.previousSibling.hidden = !rows.querySelector("li:not([hidden])");
  });
}

/** Sets a parameter of every operation that has it. */
function fill(name, value) {
  const { specActions, specSelectors } = window.reference;
  for (const [path, methods] of specSelectors.specJson().get("paths")) {
    for (const [method, operation] of methods) {
      const parameter = operation.get("parameters")?.find((one) => one.get("name") === name);
      if (parameter) specActions.changeParamByIdentity([path, method], parameter, value, false);
    }
  }
}

/** Signs in to the console with a management key, or takes the session that the browser has. */
async function signIn(key) {
  const begin = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ key }) };
  const response = await fetch(at("console/session"), key ? begin : {});
  const begun = await response.json();
  session = response.ok ? begun : undefined;
  if (session) fill("organization_id", session.organization.id);
  signed.textContent = session
    ? `Signed in to ${session.organization.name} (${session.organization.id}) as ${session.key.role}.`
    : begun.error.message;
}

signing.addEventListener("submit", (event) => {
  event.preventDefault();
  const input = signing.querySelector("input");
  signIn(input.value.trim()).catch((error) => (signed.textContent = error.message));
  input.value = "";
});

window.reference = SwaggerUIBundle({
  url: `${root}docs/api/reference.json`,
  dom_id: "#reference",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  plugins: [additions],
  requestInterceptor: sendable,
  showExtensions: true,
  tryItOutEnabled: true,
  validatorUrl: null,
  onComplete: () => {
    // The renderer names its list of servers by a heading that is not connected to it.
    document.getElementById("servers")?.setAttribute("aria-label", "Server");
    list(window.reference);
    let due = false;
    const soon = () => {
      if (due) return;
      due = true;
      setTimeout(() => {
        due = false;
        reachable();
      }, 100);
    };
    new MutationObserver(soon).observe(document.getElementById("reference"), { childList: true, subtree: true });
    soon();
  },
});
