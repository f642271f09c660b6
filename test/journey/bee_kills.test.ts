import { join } from "node:path";
import { expect, it } from "vitest";
import { client, PASS_HASH } from "../harness/client.ts";
import { startServer, tempDir } from "../harness/process.ts";
import { random } from "../harness/schedule.ts";

const KILLS = Number(Deno.env.get("SVC_TEST_KILLS") ?? 4);
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);

// Waits for a moment, then gives tasks to two workers and a schedule to one of them.
const BEE = `#!/bin/sh
cat > /dev/null
sleep 0.$(($$ % 4))
echo '{"reply": "on it", "tasks": [{"worker": "Ada", "instruction": "a"}, {"worker": "Grace", "instruction": "g"},
  {"worker": "Grace", "instruction": "weekly", "type": "scheduled", "cron": "0 0 1 1 *"}]}'
`;

it(
  `${KILLS} kills while a coordinator thinks: each message is routed exactly once (contract 4.4; seed ${SEED})`,
  async () => {
    await using folder = await tempDir();
    const dataDir = join(folder.path, "data");
    const bee = join(folder.path, "bee.sh");
    await Deno.mkdir(dataDir);
    await Deno.writeTextFile(bee, BEE, { mode: 0o755 });
    const env = {
      SVC_AUTH__PASSWORD_HASH: PASS_HASH,
      SVC_BEE__ENGINE: "thinker",
      // Every kill may use up an attempt of the message that is being routed.
      SVC_BEE__MAX_ATTEMPTS: "50",
      SVC_ENGINES__THINKER__KIND: "command",
      SVC_ENGINES__THINKER__COMMAND: bee,
    };
    const chance = random(SEED);
    let server = await startServer({ dataDir, env });
    let own = await client(server.url);
    for (const name of ["Ada", "Grace"]) await own.call("POST /api/workers", { name });
    const sessions: string[] = [];
    for (let i = 0; i < 3; i++) sessions.push((await own.call("POST /api/local/sessions")).id);
    const sent: string[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      for (const session of sessions) {
        const answer = await own.call(`POST /api/local/sessions/${session}/messages`, {
          content: `message ${kill}`,
        });
        sent.push(answer.message_id);
      }
      await new Promise((resolve) => setTimeout(resolve, chance() * 600));
      await server.end("SIGKILL");
      server = await startServer({ dataDir, env });
      own = await client(server.url);
    }
    for (const id of sent) {
      const trace = await routed(own, id);
      expect(trace.message.status, id).toBe("bee_processed");
      // Several messages may have been merged into one, which is also routed once.
      expect(trace.tasks.map((task: { instruction: string }) => task.instruction).sort(), id).toEqual([
        "a",
        "g",
        "weekly",
      ]);
      expect(trace.routing.filter((run: { status: string }) => run.status === "completed"), id).toHaveLength(
        1,
      );
      expect(trace.routing.filter((run: { status: string }) => run.status === "running"), id).toEqual([]);
      expect(trace.replies.filter((reply: { content: string }) => reply.content === "on it"), id)
        .toHaveLength(1);
    }
    expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
  },
  180_000 + KILLS * 5_000,
);

async function routed(own: Awaited<ReturnType<typeof client>>, id: string) {
  for (let tries = 0; tries < 600; tries++) {
    const trace = await own.call(`GET /api/messages/${id}/trace`);
    const open = trace.tasks.some((task: { status: string }) => ["pending", "running"].includes(task.status));
    if (["bee_processed", "failed"].includes(trace.message.status) && !open) return trace;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`message ${id} was not routed`);
}
