/** The machine's tests alone, for mutation testing: without the global set-up that starts the databases. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/machine/*.test.ts"],
    // It reads the sources, which are full of Stryker's switches there.
    exclude: ["test/machine/purity.test.ts"],
    env: { MUTATION: "true" },
  },
});
