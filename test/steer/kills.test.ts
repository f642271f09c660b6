import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { createId } from "../../src/base/id.ts";
import type { FaultPoint } from "../../src/base/fault_point.ts";
import type { Json } from "../harness/service/client.ts";
import { runScenario, type World } from "../harness/model/scenario.ts";
import { FAKE_OPEN_CLAUDE } from "../harness/service/open_world.ts";
import { createTempDir } from "../harness/service/process.ts";
import { waitForValue } from "../harness/wait.ts";

// Each round starts a service twice. SVC_TEST_FAULT_SEEDS adds rounds.
const ROUNDS = Number(Deno.env.get("SVC_TEST_FAULT_SEEDS") ?? 1);
const POINTS = ["steer.accepted", "steer.marked", "steer.written"] as const satisfies FaultPoint[];

/** The words of a round, and the request that sends them. */
interface Sent {
  worker: string;
  words: string;
  route: string;
  headers: Record<string, string>;
}

vi.setConfig({ testTimeout: 120_000 + ROUNDS * 60_000 });

it.each(POINTS)(
  `words for a run survive kill -9 at %s: they reach the agent or a task, and what may come twice says so: ${ROUNDS} kills [STR-1]`,
  async (point) => {
    await using folder = await createTempDir();
    const program = join(folder.path, "claude");
    await Deno.writeTextFile(
      program,
      `#!/bin/sh\nexec ${Deno.execPath()} run -A ${FAKE_OPEN_CLAUDE} "$@"\n`,
      {
        mode: 0o755,
      },
    );
    await runScenario<Sent>({
      env: {
        SVC_ENGINES__DEFAULT: "claude",
        SVC_ENGINES__CLAUDE__COMMAND: program,
        SVC_ENGINES__CLAUDE__PERMISSIONS: "full",
        SVC_ENGINES__CLAUDE__WARM__MAX: "2",
        SVC_LIMITS__MAX_ATTEMPTS: "3",
      },
      rounds: ROUNDS,
      fault: { kind: "point", point, passage: 1 },
      setup: async ({ api }) => {
        const { id: worker } = await api.call("POST /api/workers", { name: "Ada" });
        return { worker, words: "", route: "", headers: {} };
      },
      action: async (world, sent, round) => {
        const { api } = world;
        const { id: session } = await api.call("POST /api/local/sessions", { worker_id: sent.worker });
        await api.call(`POST /api/local/sessions/${session}/messages`, { content: `until ${flag(world)}` });
        const { id } = await waitForValue(async () =>
          (await api.call("GET /api/executions?status=running"))[0] as Json ?? null
        );
        Object.assign(sent, {
          words: `words ${round}`,
          route: `POST /api/executions/${id}/steer`,
          headers: { "idempotency-key": createId() },
        });
        await api.send(sent.route, { content: sent.words }, sent.headers).catch(() => {});
      },
      restarted: async (world, { worker, words, route, headers }) => {
        const { api } = world;
        // The client got no answer, and sends the same request again.
        await api.call(route, { content: words }, headers);
        await Deno.writeTextFile(flag(world), "");
        const ended: Json[] = await waitForValue(async () => {
          const open = await api.call(`GET /api/tasks?worker_id=${worker}&status=pending,running`);
          return open.length === 0 ? await api.call(`GET /api/executions?worker_id=${worker}`) : null;
        });
        const given = ended.filter(({ instruction }) => instruction.includes(words));
        expect(given.filter(({ status }) => status === "completed")).toHaveLength(1);
        for (const { instruction } of given) {
          expect(instruction.startsWith("until ") ? instruction : "may have").toContain("may have");
        }
        await Deno.remove(flag(world));
      },
      check: () => Promise.resolve(),
    });
  },
);

function flag(world: World): string {
  return world.path("go");
}
