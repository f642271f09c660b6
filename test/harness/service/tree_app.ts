// A service with a worker whose agents are shell scripts in worktrees of a repository on loopback.
import { join } from "node:path";
import { type App, type AppOptions, openApp } from "./app.ts";
import type { Json } from "./client.ts";
import { startGitServer } from "./git_server.ts";
import { createTempDir } from "./process.ts";

/** Runs its instruction as a shell script. */
const SHELL_ENGINES = { default: "shell", shell: { kind: "command", command: "/bin/sh", shell: [] } };

interface TreeAppOptions {
  repo?: Record<string, unknown>;
  worker?: Record<string, unknown>;
  config?: AppOptions["config"];
  password?: string;
}

/** Opens a service and a git server, and creates the worker Ada. */
export async function openTreeApp({ repo = {}, worker = {}, config = {}, password }: TreeAppOptions = {}) {
  const folder = await createTempDir();
  const forge = await startGitServer({ dir: folder.path, ...(password === undefined ? {} : { password }) });
  const app = await openApp({ config: { engines: SHELL_ENGINES, ...config } });
  if (password !== undefined) await app.call("PUT /api/secrets/forge", { value: password, workers: [] });
  const ada = await app.call("POST /api/workers", {
    name: "Ada",
    repo: { url: forge.url, ...(password === undefined ? {} : { credentials: "secret:forge" }), ...repo },
    ...worker,
  });
  return {
    app,
    forge,
    ada,
    /** Runs a script in a conversation, and returns the ended execution. */
    run: (script: string, conversation = "one", more: Record<string, unknown> = {}) =>
      runScript(app, ada.id, { script, conversation, more }),
    readLog: async (execution: Json) => String(await app.call(`GET /api/executions/${execution.id}/logs`)),
    findTree: async (execution: Json) =>
      (await app.call(`GET /api/workers/${ada.id}/trees`)).find(({ id }: Json) => id === execution.tree_id),
    getMirror: () => join(app.dataDir, "trees", ada.id, "mirror.git"),
    getWorktree: ({ tree_id }: Json) => join(app.dataDir, "trees", ada.id, "work", tree_id.slice(-8)),
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await forge[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

async function runScript(
  app: App,
  workerId: string,
  { script, conversation, more }: { script: string; conversation: string; more: Record<string, unknown> },
): Promise<Json> {
  const task = await createScriptTask(app, workerId, { script, conversation, more });
  await app.settle(60_000);
  const { execution_id } = await app.call(`GET /api/tasks/${task.id}`);
  return await app.call(`GET /api/executions/${execution_id}`);
}

/** Creates the task of a script in a conversation. */
export async function createScriptTask(
  app: App,
  workerId: string,
  { script, conversation, more = {} }: {
    script: string;
    conversation: string;
    more?: Record<string, unknown>;
  },
): Promise<Json> {
  const task = { message_id: conversation, worker_id: workerId, instruction: script, type: "immediate" };
  return await app.call("POST /api/tasks", { ...task, ...more });
}
