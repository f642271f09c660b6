import { expect, it, vi } from "vitest";
import { createTempDir } from "../../harness/service/process.ts";
import type { Client } from "../../harness/service/client.ts";
import { runScenario } from "../../harness/model/scenario.ts";
import { pause } from "../../harness/model/workload.ts";

const KILLS = Number(Deno.env.get("SVC_TEST_KILLS") ?? 2);
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);

// Waits for a moment, then gives tasks to two workers and a schedule to one of them.
const BEE = `#!/bin/sh
cat > /dev/null
sleep 0.$(($$ % 4))
echo '{"reply": "on it", "tasks": [{"worker": "Ada", "instruction": "a"}, {"worker": "Grace", "instruction": "g"},
  {"worker": "Grace", "instruction": "weekly", "type": "scheduled", "cron": "0 0 1 1 *"}]}'
`;

vi.setConfig({ testTimeout: 180_000 + KILLS * 5_000 });

it(`${KILLS} kills while a coordinator thinks: each message is routed exactly once (contract 4.4; seed ${SEED})`, async () => {
  await using folder = await createTempDir();
  const bee = `${folder.path}/bee.sh`;
  await Deno.writeTextFile(bee, BEE, { mode: 0o755 });
  await runScenario<{ sessions: string[]; sent: string[] }>({
    seed: SEED,
    env: {
      SVC_BEE__ENGINE: "thinker",
      // Every kill may use up an attempt of the message that is being routed.
      SVC_BEE__MAX_ATTEMPTS: "50",
      SVC_ENGINES__THINKER__KIND: "command",
      SVC_ENGINES__THINKER__COMMAND: bee,
    },
    rounds: KILLS,
    fault: { kind: "kill after the action", afterMs: ({ chance }) => chance() * 600 },
    setup: async ({ api }) => {
      for (const name of ["Ada", "Grace"]) await api.call("POST /api/workers", { name });
      const sessions: string[] = [];
      for (let i = 0; i < 3; i++) sessions.push((await api.call("POST /api/local/sessions")).id);
      return { sessions, sent: [] };
    },
    action: async ({ api }, { sessions, sent }, round) => {
      for (const session of sessions) {
        const body = { content: `message ${round}` };
        sent.push((await api.call(`POST /api/local/sessions/${session}/messages`, body)).message_id);
      }
    },
    check: async ({ api }, { sent }) => {
      for (const id of sent) await checkRouted(api, id);
    },
  });
});

async function checkRouted(api: Client, id: string): Promise<void> {
  const { message, tasks, routing, replies } = await waitUntilRouted(api, id);
  expect(message.status, id).toBe("bee_processed");
  // Several messages may have been merged into one, which is also routed once.
  expect(tasks.map((task: { instruction: string }) => task.instruction).sort(), id).toEqual([
    "a",
    "g",
    "weekly",
  ]);
  const withStatus = (status: string) => routing.filter((run: { status: string }) => run.status === status);
  expect(withStatus("completed"), id).toHaveLength(1);
  expect(withStatus("running"), id).toEqual([]);
  expect(replies.filter((reply: { content: string }) => reply.content === "on it"), id).toHaveLength(1);
}

async function waitUntilRouted(own: Client, id: string) {
  for (let tries = 0; tries < 600; tries++) {
    const trace = await own.call(`GET /api/messages/${id}/trace`);
    const open = trace.tasks.some((task: { status: string }) => ["pending", "running"].includes(task.status));
    if (["bee_processed", "failed"].includes(trace.message.status) && !open) return trace;
    await pause(50);
  }
  throw new Error(`message ${id} was not routed`);
}
