import process from "node:process";
import { defineConfig } from "vitest/config";

const TIMING = "test/**/*.timing.test.ts";

/**
 * Settings of both projects. Waits end with an event, so a generous limit costs nothing. A worker process runs many files: starting one
 * and loading the sources for each file took a fifth of the processor time.
 */
const shared = {
  ...{ pool: "forks", isolate: false, testTimeout: 120_000, hookTimeout: 120_000 },
  expect: { poll: { timeout: 60_000 } },
} as const;

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...shared,
          name: "parallel",
          include: ["test/**/*.test.ts"],
          // A run of all tests has a bundle. The rules of the house are part of `make check`.
          exclude: process.env.SVC_TEST_BUNDLE === undefined ? [TIMING] : [TIMING, "test/house/**"],
          setupFiles: ["test/harness/cheap_passwords.ts"],
          // Tests start real processes and wait for them: more workers than cores pays.
          maxWorkers: 4,
          sequence: { groupOrder: 0 },
        },
      },
      {
        // Tests that assert wall-clock times run after all others, one file at a time.
        test: {
          ...shared,
          name: "timing",
          include: [TIMING],
          setupFiles: ["test/harness/cheap_passwords.ts"],
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
    coverage: {
      include: ["src/**/*.ts", "cli/**/*.ts"],
      reporter: ["text-summary", "html", "lcov"],
    },
  },
});
