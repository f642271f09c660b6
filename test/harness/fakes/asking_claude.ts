import { join } from "node:path";
import { type App, type AppOptions, openApp } from "../service/app.ts";
import type { Json } from "../service/client.ts";
import { FAKE_OPEN_CLAUDE } from "../service/open_world.ts";
import { waitForValue } from "../wait.ts";

interface AskingOptions extends Partial<AppOptions> {
  engine?: Json;
  more?: Json;
}

/** Writes the program of an engine that asks before each tool call. Returns its configuration. */
export async function writeAskingClaude(dataDir: string) {
  const command = join(dataDir, "claude");
  await Deno.writeTextFile(command, `#!/bin/sh\nexec ${Deno.execPath()} run -A ${FAKE_OPEN_CLAUDE} "$@"\n`, {
    mode: 0o755,
  });
  return { command, permissions: "ask", warm: { max: 0 } };
}

/** Starts a service whose Claude Code asks before each tool call, with one worker and one conversation. */
export async function openAskingService({ engine = {}, more = {}, ...options }: AskingOptions = {}) {
  const dataDir = options.dataDir ?? await Deno.makeTempDir({ prefix: "svc-test-" });
  const claude = { ...await writeAskingClaude(dataDir), ...engine };
  const config = { limits: { stop_grace: "300ms" }, engines: { default: "claude", claude }, ...more };
  const app = await openApp({ ...options, dataDir, config });
  const [known] = await app.call("GET /api/workers");
  const worker = known ?? await app.call("POST /api/workers", { name: "Ada" });
  const session = (await app.call("GET /api/local/sessions"))[0] ??
    await app.call("POST /api/local/sessions", { worker_id: worker.id });
  return {
    app,
    worker,
    session,
    sessionKey: `local:${session.id}`,
    /** Sends a message whose run asks for these calls, such as `Write /a`. */
    call: (calls: string) =>
      app.call(`POST /api/local/sessions/${session.id}/messages`, {
        content: calls.split(";").map((one) => `call ${one.trim()}`).join("; "),
      }),
    path: (name: string) => join(dataDir, name),
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      if (options.dataDir === undefined) await Deno.remove(dataDir, { recursive: true });
    },
  };
}

/** Waits for `count` open questions about tool calls; the oldest first. */
export async function waitForCalls(app: App, count = 1): Promise<Json[]> {
  return await waitForValue(async () => {
    const open: Json[] = await app.call("GET /api/questions?status=open");
    return open.length < count ? null : open.reverse();
  });
}

/** How often a call ran: the fake appends one character for each. */
export async function countRuns(path: string): Promise<number> {
  return (await Deno.readTextFile(path).catch(() => "")).length;
}
