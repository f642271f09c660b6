import { join } from "node:path";
import { expect, it, vi } from "vitest";
import {
  countRuns,
  openAskingService,
  waitForCalls,
  writeAskingClaude,
} from "../harness/fakes/asking_claude.ts";
import { runScenario, type World } from "../harness/model/scenario.ts";
import { createTempDir } from "../harness/service/process.ts";
import { waitForValue } from "../harness/wait.ts";
import { pause } from "../harness/model/workload.ts";
import type { Json } from "../harness/service/client.ts";

// Each round starts a service. SVC_TEST_RACES adds rounds.
const ROUNDS = Deno.env.has("SVC_TEST_RACES") ? 50 : 2;
const OFFSET_MAX_MS = 5;

vi.setConfig({ testTimeout: 120_000 + ROUNDS * 60_000 });

it("is denied and its question cancelled when the service restarts, and its task runs again [APV-1]", async () => {
  await using dir = await createTempDir();
  const path = join(dir.path, "a");
  let asked = "";
  {
    await using one = await openAskingService({ dataDir: dir.path });
    await one.call(`Write ${path}`);
    asked = (await waitForCalls(one.app))[0]?.id;
  }
  await using one = await openAskingService({ dataDir: dir.path });
  await waitForValue(async () =>
    (await one.app.call(`GET /api/questions/${asked}`)).status !== "open" || null
  );
  expect(await one.app.call(`GET /api/questions/${asked}`)).toMatchObject({ status: "cancelled" });
  expect((await one.app.send(`POST /api/questions/${asked}/answer`, { answer: "Allow" })).status).toBe(409);
  const [again] = await waitForCalls(one.app);
  expect(again?.id).not.toBe(asked);
  await one.app.call(`POST /api/questions/${again?.id}/answer`, { answer: "Allow" });
  await one.app.settle();
  expect(await countRuns(path)).toBe(1);
});

interface OpenCall {
  session: string;
  path: string;
  id: string;
}

it(`an answer at the moment of kill -9 lets at most one call run: ${ROUNDS} kills [APV-1]`, async () => {
  await using dir = await createTempDir();
  const { command } = await writeAskingClaude(dir.path);
  await runScenario<OpenCall>({
    seed: 11,
    rounds: ROUNDS,
    fault: { kind: "kill", afterMs: offsetMs },
    env: {
      SVC_ENGINES__DEFAULT: "claude",
      SVC_ENGINES__CLAUDE__COMMAND: command,
      SVC_ENGINES__CLAUDE__PERMISSIONS: "ask",
    },
    setup: async (world) => {
      const worker = (await world.api.call("POST /api/workers", { name: "Ada" })).id;
      const { id: session } = await world.api.call("POST /api/local/sessions", { worker_id: worker });
      return await ask(world, session, 0);
    },
    action: async (world, open) => {
      await pause(offsetMs(world));
      await world.api.send(`POST /api/questions/${open.id}/answer`, { answer: "Allow" }).catch(() => {});
    },
    restarted: async (world, open, round) => {
      const { api } = world;
      await waitForValue(async () =>
        (await api.call(`GET /api/questions/${open.id}`)).status !== "open" || null
      );
      // The task runs again, and its new call is denied, so only the first one can have run.
      await waitForValue(async () => {
        const calls: Json[] = await api.call("GET /api/questions?status=open");
        for (const { id } of calls) await api.send(`POST /api/questions/${id}/answer`, { answer: "Deny" });
        const [task] = await api.call(`GET /api/tasks?session_key=local:${open.session}`);
        return ["completed", "failed", "cancelled"].includes(task.status) || null;
      });
      expect(await countRuns(open.path)).toBeLessThanOrEqual(1);
      const { status, answer } = await api.call(`GET /api/questions/${open.id}`);
      if (await countRuns(open.path) === 1) expect([status, answer]).toEqual(["answered", "Allow"]);
      if (round + 1 < ROUNDS) Object.assign(open, await ask(world, open.session, round + 1));
    },
    check: () => Promise.resolve(),
  });
});

function offsetMs({ chance }: World): number {
  return Math.floor(chance() * (OFFSET_MAX_MS + 1));
}

async function ask({ api, path: place }: World, session: string, round: number): Promise<OpenCall> {
  const path = place(`made-${round}`);
  await api.call(`POST /api/local/sessions/${session}/messages`, { content: `call Write ${path}` });
  const id = await waitForValue(async () =>
    (await api.call("GET /api/questions?status=open"))[0]?.id ?? null
  );
  return { session, path, id };
}
