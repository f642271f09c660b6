import { defineConfig } from "vitest/config";

const TIMING = "test/**/*.timing.test.ts";

/** Settings of both projects: waits end by an event, so that a generous limit costs nothing. */
const shared = { pool: "forks", testTimeout: 120_000, hookTimeout: 120_000 } as const;

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...shared,
          name: "parallel",
          include: ["test/**/*.test.ts"],
          exclude: [TIMING],
          // Tests start real processes and wait for them: more workers than cores pays.
          maxWorkers: 4,
          sequence: { groupOrder: 0 },
        },
      },
      {
        // Tests that assert wall-clock times run after all others, one file at a time.
        test: { ...shared, name: "timing", include: [TIMING], maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
    coverage: {
      include: ["src/**/*.ts", "cli/**/*.ts"],
      reporter: ["text-summary", "html", "lcov"],
    },
  },
});
