import { join } from "node:path";
import { type App, openApp, type TestSettings } from "./app.ts";
import { listWorkerProcesses } from "../model/marked.ts";

export const FAKE_OPEN_CLAUDE = new URL("../fakes/fake_open_claude.ts", import.meta.url).pathname;

/** Starts a service whose Claude Code stays open, and one conversation; `warm` null omits the setting. */
export async function openWarmService(
  warm: object | null = {},
  engine: object = {},
  memoryBytes = 0,
  settings: TestSettings = {},
) {
  const dataDir = await Deno.makeTempDir({ prefix: "svc-test-" });
  const command = join(dataDir, "claude");
  await Deno.writeTextFile(command, `#!/bin/sh\nexec ${Deno.execPath()} run -A ${FAKE_OPEN_CLAUDE} "$@"\n`, {
    mode: 0o755,
  });
  const claude = { command, permissions: "full", ...(warm === null ? {} : { warm }), ...engine };
  const engines = { default: "claude", claude, other: { ...claude, kind: "claude" } };
  const config = { limits: { stop_grace: "300ms" }, ...settings, engines };
  const app = await openApp({ dataDir, config, memoryBytes });
  const worker = await app.call("POST /api/workers", { name: "Ada" });
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  const send = (content: string, to = session) =>
    app.call(`POST /api/local/sessions/${to.id}/messages`, { content });
  const last = async () => (await app.call("GET /api/executions"))[0];
  const say = async (content: string, to = session) => {
    await send(content, to);
    await app.settle();
    return await last();
  };
  const end = async () => {
    await app[Symbol.asyncDispose]();
    await Deno.remove(dataDir, { recursive: true });
  };
  return { app, worker, session, send, say, last, [Symbol.asyncDispose]: end };
}

/** Returns the process of a run that printed it. */
export const readPid = ({ result }: { result: string }) => Number(result.split(" ")[0]);

/** Returns whether no process of a worker runs. */
export async function hasNoProcess(app: App, worker: string): Promise<boolean> {
  await app.settle();
  return listWorkerProcesses(worker).length === 0;
}
