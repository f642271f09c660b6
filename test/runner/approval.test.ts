import { join } from "node:path";
import { expect, it } from "vitest";
import { countRuns, waitForCalls, writeAskingClaude } from "../harness/fakes/asking_claude.ts";
import { openApp } from "../harness/service/app.ts";
import { createRemoteWorker, startRunner, waitUntilOnline } from "../harness/service/runner.ts";
import { waitForValue } from "../harness/wait.ts";

it("a tool call of a run on a runner waits for the answer, runs after Allow and not after Deny [APV-1]", async () => {
  await using app = await openApp();
  const root = join(app.dataDir, "r1");
  await Deno.mkdir(root);
  const { token } = await app.call("POST /api/runners", { name: "r1", labels: ["x"] });
  const engines = { default: "claude", claude: await writeAskingClaude(root) };
  await using _runner = await startRunner({
    ...{ token, url: app.url, root },
    config: `engines: ${JSON.stringify(engines)}\n`,
  });
  await waitUntilOnline(app, "r1");
  const worker = await createRemoteWorker(app, "claude");
  const { id: session } = await app.call("POST /api/local/sessions", { worker_id: worker });
  const ask = async (path: string, answer: string) => {
    await app.call(`POST /api/local/sessions/${session}/messages`, { content: `call Write ${path}` });
    const [call] = await waitForCalls(app);
    expect(call).toMatchObject({ tool: "Write", worker_id: worker, session_key: `local:${session}` });
    expect(await countRuns(path)).toBe(0);
    await app.call(`POST /api/questions/${call?.id}/answer`, { answer });
    return await waitForValue(async () => {
      const [latest] = await app.call(`GET /api/executions?worker_id=${worker}`);
      return ["completed", "failed"].includes(latest.status) ? latest : null;
    });
  };
  const [allowed, denied] = ["allowed", "denied"].map((name) => join(root, name)) as [string, string];
  expect(await ask(allowed, "Allow")).toMatchObject({ status: "completed" });
  expect(await countRuns(allowed)).toBe(1);
  expect((await ask(denied, "Deny")).result).toContain("not allowed");
  expect(await countRuns(denied)).toBe(0);
});
