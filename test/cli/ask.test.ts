import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { createTask } from "../harness/service/runner.ts";
import type { Json } from "../harness/service/client.ts";

vi.setConfig({ testTimeout: 180_000 });

/** Runs a command of `svc` in a worker's shell and returns the execution. */
async function runInShell(
  app: App,
  worker: Json,
  command: string,
  meanwhile?: () => Promise<void>,
): Promise<Json> {
  const task = await createTask(app, worker.id, `svc ${command}; echo "exit $?"`);
  await meanwhile?.();
  await app.call(`GET /api/tasks/${task}/wait?timeout_ms=60000`);
  const { execution_id } = await app.call(`GET /api/tasks/${task}`);
  return await app.call(`GET /api/executions/${execution_id}`);
}

describe("svc ctl ask (contract 12)", () => {
  it("prints the ID and asks the agent to end its turn; --wait prints the reply, or returns exit 8 or 124", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const asked = await runInShell(
      app,
      worker,
      "ctl ask 'Which colour?' --option Red --option Blue --timeout 1h 2>err.txt",
    );
    const [question] = await app.call("GET /api/questions");
    expect(question).toMatchObject({
      options: ["Red", "Blue"],
      worker_id: worker.id,
      session_key: "cli:script",
      message_id: "script",
    });
    expect(question.expires_at - question.created_at).toBe(3_600_000);
    expect(asked.result).toBe(`${question.id}\nexit 0`);
    const said = () => Deno.readTextFile(join(worker.work_dir, "err.txt"));
    expect(await said()).toBe("Question sent. End your turn now. The answer will arrive as a new task.\n");
    // The same worker runs a new task. The fake engine has no session for it.
    await app.call(`POST /api/questions/${question.id}/cancel`, {});

    const waited = await runInShell(app, worker, "ctl ask 'And now?' --wait 60s 2>err.txt", async () => {
      await app.until("question.opened", 2, 60_000);
      const [open] = await app.call("GET /api/questions?status=open");
      await app.call(`POST /api/questions/${open.id}/answer`, { answer: "Now" });
    });
    expect(waited.result).toBe("Now\nexit 0");
    expect((await app.call("GET /api/questions"))[0].seen_at).not.toBeNull();

    const expired = await runInShell(app, worker, "ctl ask 'Quick?' --timeout 1s --wait 30s 2>err.txt");
    expect(expired.result).toBe("exit 8");
    expect(await said()).toMatch(/question \S+ is expired/);
    const late = await runInShell(app, worker, "ctl ask 'Slow?' --wait 1s 2>err.txt");
    expect(late.result).toBe("exit 124");
    expect(await said()).toMatch(
      /No answer yet\. End your turn now\. The answer will arrive as a new task\./,
    );
    const long = await runInShell(app, worker, "ctl ask 'Long?' --wait 91s 2>err.txt");
    expect(long.result).toBe("exit 2");
    const own = await runInShell(app, worker, `ctl question answer ${question.id} Red 2>err.txt`);
    expect(own.result).toBe("exit 4");
  });
});
