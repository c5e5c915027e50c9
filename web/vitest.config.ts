import { readFileSync } from "node:fs";
import { compile } from "svelte/compiler";
import { defineConfig, type Plugin } from "vitest/config";

const { version } = JSON.parse(readFileSync(new URL("sdk/package.json", import.meta.url), "utf8")) as {
  version: string;
};

const here = (path: string): string => new URL(path, import.meta.url).pathname;

/** Components of Svelte, for a browser. */
const svelte: Plugin = {
  name: "svelte",
  transform: (text, id) => (id.endsWith(".svelte") ? compile(text, { filename: id, generate: "client" }).js.code : null),
};

export default defineConfig({
  plugins: [svelte],
  define: { SDK_VERSION: JSON.stringify(version), WORKER_SCRIPT: JSON.stringify("") },
  resolve: {
    alias: [
      { find: "@svc/web", replacement: here("sdk/src/index.ts") },
      // As a browser gets it: without this, tests get what renders on a server.
      { find: /^svelte$/, replacement: here("node_modules/svelte/src/index-client.js") },
      { find: /^svelte\/store$/, replacement: here("node_modules/svelte/src/store/index-client.js") },
    ],
  },
  test: {
    restoreMocks: true,
    // A busy machine is no failure: what a test waits for, it waits for until this long.
    testTimeout: 30_000,
    projects: [
      { extends: true, test: { name: "web", isolate: false, include: ["{sdk,pages}/test/**/*.test.ts"] } },
      // Each replaces the SDK by its own, which files that share their modules would not see.
      { extends: true, test: { name: "wrappers", include: ["{react,vue,svelte}/test/**/*.test.{ts,tsx}"] } },
    ],
  },
});
