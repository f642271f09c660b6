// A service and a repository of skills on loopback.
import { type App, type AppOptions, openApp } from "./app.ts";
import type { Json } from "./client.ts";
import { startGitServer } from "./git_server.ts";
import { createTempDir } from "./process.ts";

/** Runs its instruction as a shell script. */
export const SHELL_ENGINES = { default: "shell", shell: { kind: "command", command: "/bin/sh", shell: [] } };

/** Formats a SKILL.md. */
export function formatSkill(name: string, body = "Weigh it twice.", more = ""): string {
  return `---\nname: ${name}\ndescription: How to weigh ${name}\n${more}---\n\n${body}\n`;
}

/** The files of two skills in the folders `weigh` and `price`. */
export const SKILL_FILES = {
  "weigh/SKILL.md": formatSkill("weigh-parcels"),
  "weigh/scripts/run.sh": "echo weighed\n",
  "price/SKILL.md": formatSkill("price-parcels"),
};

interface SkillAppOptions {
  files?: Record<string, string>;
  config?: AppOptions["config"];
}

/** Opens a service and a git server with skills at `ref`. */
export async function openSkillApp({ files = SKILL_FILES, config = {} }: SkillAppOptions = {}) {
  const folder = await createTempDir();
  const forge = await startGitServer({ dir: folder.path });
  const ref = await forge.commit("main", files);
  const app = await openApp({ config: { engines: SHELL_ENGINES, ...config } });
  return {
    app,
    forge,
    /** The commit with the files. */
    ref,
    folder: folder.path,
    weigh: { url: forge.url, ref, path: "weigh" },
    price: { url: forge.url, ref, path: "price" },
    create: (skills: object[], fields: object = {}) =>
      app.send("POST /api/workers", { name: `Ada ${crypto.randomUUID().slice(0, 8)}`, skills, ...fields }),
    run: (worker: Json, instruction: string) => runTask(app, worker, instruction),
    listKept: () => listKept(app),
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await forge[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

async function runTask(app: App, { id: worker_id }: Json, instruction: string): Promise<Json> {
  const task = { worker_id, type: "immediate", instruction, message_id: crypto.randomUUID() };
  const { id } = await app.call("POST /api/tasks", task);
  await app.settle(60_000);
  const { execution_id } = await app.call(`GET /api/tasks/${id}`);
  return await app.call(`GET /api/executions/${execution_id}`);
}

/** Lists what the data directory has of skills. */
async function listKept({ dataDir }: App): Promise<string[]> {
  try {
    return (await Array.fromAsync(Deno.readDir(`${dataDir}/skills`))).map(({ name }) => name).sort();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
