import { defineConfig } from "vitest/config";

/** `npm run screens` takes pictures and tests nothing. */
export default defineConfig({
  test: {
    include: ["test/web/screens.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    pool: "forks",
    testTimeout: 120_000,
    hookTimeout: 60_000,
  },
});
