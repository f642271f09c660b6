import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Tests start real processes and wait for them: more workers than cores pays.
    maxWorkers: 4,
    coverage: {
      include: ["src/**/*.ts", "cli/**/*.ts"],
      reporter: ["text-summary", "html", "lcov"],
    },
  },
});
