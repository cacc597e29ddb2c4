import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    pool: "forks",
    // Tests mostly wait, for servers and timers.
    maxWorkers: 3,
    reporters: ["default", "./test/support/requirements-reporter.ts"],
    testTimeout: 60_000,
    hookTimeout: 30_000,
  },
});
