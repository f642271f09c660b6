import { expect, it } from "vitest";
import { z } from "zod";
import { FAILURES } from "../../src/domain/call/vocabulary.ts";
import {
  CLAIM_WAIT_MAX_MS,
  LEASE_TIMES,
  runEndSchema,
  runEventsSchema,
  runLoggedSchema,
  runLogQuery,
  RUNNER_PROTOCOL,
  runnerBeatSchema,
  runnerClaimedSchema,
  runnerClaimSchema,
  runnerHeardSchema,
  runRepoQuery,
  RUNS_PER_RUNNER_MAX,
  runStoredSchema,
} from "../../src/domain/workers/runner.ts";
import { runnerRoutes } from "../../src/http/routes/runner.ts";
import { readText } from "../harness/house/tree.ts";

const page = readText("docs/reference/runner-protocol.md");

/** Lists the names of all fields in a JSON schema, at any depth. */
function listFields(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]) => [
    ...(key === "properties" ? Object.keys(value as object) : []),
    ...listFields(value),
  ]);
}

it("the document of the runner protocol names each field of its requests and answers", () => {
  const schemas = {
    ...{ runnerClaimSchema, runnerClaimedSchema, runnerBeatSchema, runnerHeardSchema },
    ...{ runEventsSchema, runLoggedSchema, runEndSchema, runStoredSchema, log: z.object(runLogQuery) },
    repo: z.object(runRepoQuery),
  };
  const missing = Object.entries(schemas).flatMap(([name, schema]) =>
    [...new Set(listFields(z.toJSONSchema(schema, { io: "input" })))]
      .filter((field) => !page.includes(`\`${field}\``))
      .map((field) => `${name}: ${field}`)
  );
  expect(missing).toEqual([]);
});

it("the document of the runner protocol names each of its requests and failures, and the times of the code", () => {
  const routes = runnerRoutes.filter(({ access }) => access === "write:runs").map(({ method, path }) =>
    `${method} ${path}`
  );
  expect(routes.length).toBe(8);
  for (const route of routes) expect(page).toContain(`\`${route}\``);
  for (const failure of FAILURES) expect(page).toContain(`\`${failure}\``);
  const format = (ms: number) => ms.toLocaleString("en-US");
  for (
    const row of [
      `| \`protocol\` | ${RUNNER_PROTOCOL}.`,
      `| \`max_runs\` | runs at a time, 1 to ${format(RUNS_PER_RUNNER_MAX)} |`,
      `at most ${format(CLAIM_WAIT_MAX_MS)} (default)`,
      `| \`lease_ms\` | ${LEASE_TIMES.lease_ms / 1_000} s.`,
      `| \`beat_ms\` | ${LEASE_TIMES.beat_ms / 1_000} s |`,
      `| \`margin_ms\` | ${LEASE_TIMES.margin_ms / 1_000} s.`,
    ]
  ) {
    expect(page).toContain(row);
  }
});
