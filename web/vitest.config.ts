import { readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";

const { version } = JSON.parse(readFileSync(new URL("sdk/package.json", import.meta.url), "utf8")) as {
  version: string;
};

export default defineConfig({
  define: { SDK_VERSION: JSON.stringify(version), WORKER_SCRIPT: JSON.stringify("") },
  resolve: { alias: { "@svc/web": new URL("sdk/src/index.ts", import.meta.url).pathname } },
  // A busy machine is no failure: what a test waits for, it waits for until this long.
  test: { include: ["sdk/test/**/*.test.ts", "react/test/**/*.test.tsx", "pages/test/**/*.test.ts"], restoreMocks: true, testTimeout: 30_000 },
});
