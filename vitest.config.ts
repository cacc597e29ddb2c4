import { defineConfig } from "vitest/config";

/** A folder with another version of the AI SDK than the one that is installed here. */
const aiSdk = process.env["AI_SDK"];

export default defineConfig({
  resolve: { alias: aiSdk === undefined ? {} : { ai: `${aiSdk}/node_modules/ai/dist/index.js` } },
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    pool: "forks",
    // Tests mostly wait, for servers and timers.
    maxWorkers: 3,
    reporters: ["default", "./test/support/requirements-reporter.ts"],
    // A machine that is shared stalls now and then. CI tries a failed test once more, and names it (the reporter).
    retry: process.env["CI"] === undefined ? 0 : 1,
    testTimeout: 60_000,
    hookTimeout: 30_000,
    // A second, the default, is short on a busy machine; what holds sooner is seen sooner.
    expect: { poll: { timeout: 20_000 } },
  },
});
