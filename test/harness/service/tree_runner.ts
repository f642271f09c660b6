// Runners for workers with a repository, on this machine.
import { join } from "node:path";
import { waitForValue } from "../wait.ts";
import type { App } from "./app.ts";
import type { Json } from "./client.ts";
import { type RunnerProcess, startRunner, waitUntilOnline } from "./runner.ts";
import { createScriptTask, type openTreeApp } from "./tree_app.ts";

type TreeWorld = Awaited<ReturnType<typeof openTreeApp>>;

/** Starts a runner with the label `x` whose agents are shell scripts. */
export async function startTreeRunner(
  { app }: { app: App },
  name = "r1",
  config: Record<string, unknown> = {},
): Promise<RunnerProcess> {
  const { token } = await app.call("POST /api/runners", { name, labels: ["x"] });
  const settings = {
    engines: { default: "shell", shell: { kind: "command", command: "/bin/sh", shell: [] } },
    ...config,
  };
  const lines = Object.entries(settings).map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`).join("");
  const root = join(app.dataDir, "..", `${app.dataDir.split("/").at(-1)}-${name}`, "root");
  const runner = await startRunner({ token, url: app.url, root, config: lines });
  await waitUntilOnline(app, name);
  return runner;
}

/** Runs a script of the worker in a conversation on a runner, and returns the ended execution. */
export async function runAway(
  { app, ada }: Pick<TreeWorld, "app" | "ada">,
  script: string,
  { conversation = "one", ...more }: Record<string, unknown> & { conversation?: string } = {},
): Promise<Json> {
  const task = await createScriptTask(app, ada.id, { script, conversation, more });
  return await waitUntilTaskEnded(app, task.id);
}

/** Resolves with the last execution of a task that has ended. */
export async function waitUntilTaskEnded(app: Pick<App, "call">, taskId: string): Promise<Json> {
  const task = await waitForValue(async () => {
    const found = await app.call(`GET /api/tasks/${taskId}`);
    return ["completed", "failed", "cancelled"].includes(found.status) ? found : null;
  }, 60_000);
  return await app.call(`GET /api/executions/${task.execution_id}`);
}
