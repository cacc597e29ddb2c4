import { defineConfig } from "vitest/config";

/** `npm run histories` records histories and tests nothing. */
export default defineConfig({
  test: {
    include: ["test/histories/record.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    pool: "forks",
    testTimeout: 60_000,
    hookTimeout: 30_000,
  },
});
