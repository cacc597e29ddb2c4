/** The machine's tests alone, for mutation testing: without the global set-up that starts the databases. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  root: new URL("../..", import.meta.url).pathname,
  test: { include: ["test/machine/*.test.ts"], env: { PROPERTY_RUNS: "40" } },
});
