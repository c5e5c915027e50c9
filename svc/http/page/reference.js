"use strict";

const { root } = document.documentElement.dataset;

// Light or dark as the system is, also when it changes. Swagger UI's dark rules hang on this class.
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", paint);
paint();

// A browser is no place for a key that reaches more than development data.
const DEVELOPMENT = /^svc_(pk|sk|px)_[a-z0-9]+_development_/;

const refusal = document.getElementById("refusal");

function onlyDevelopmentKeys(request) {
  const key = request.headers["x-api-key"];
  refusal.hidden = key === undefined || DEVELOPMENT.test(key);
  if (!refusal.hidden) {
    delete request.headers["x-api-key"]; // the request goes without, and is answered with 401
  }
  return request;
}

window.reference = SwaggerUIBundle({
  url: `${root}api/v1/openapi.json`,
  dom_id: "#reference",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  requestInterceptor: onlyDevelopmentKeys,
  showExtensions: true,
  tryItOutEnabled: true,
  validatorUrl: null,
  // The renderer names its list of servers by a heading that is not connected to it.
  onComplete: () => document.getElementById("servers")?.setAttribute("aria-label", "Server"),
});
