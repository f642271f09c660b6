import { signToken } from "../../../src/base/token.ts";
import type { App } from "./app.ts";
import { waitForValue } from "../wait.ts";

/** A worker's run in progress, and its agent's token. */
export interface ActiveRun {
  workerId: string;
  sessionId: string;
  sessionKey: string;
  messageId: string;
  executionId: string;
  taskId: string;
  token: string;
  headers: { authorization: string };
}

/** Starts a run that lasts until the test ends it. The app needs buildFakeEngines(). */
export async function startRun(
  app: App,
  scopes: string[] = [],
  name = "Agent",
  engine = "",
): Promise<ActiveRun> {
  const worker = await app.call("POST /api/workers", { name, scopes, engine });
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  const { message_id } = await app.call(`POST /api/local/sessions/${session.id}/messages`, {
    content: "sleep 60",
  });
  // Filters by worker because other runs may start, too.
  const execution = await waitForValue(() =>
    app.db.first<{ id: string; task_id: string; attempt: number }>(
      "select id, task_id, attempt from execution where message_id = ? and status = 'running'",
      [message_id],
    )
  );
  const token = await runToken(app, { ...execution, worker_id: worker.id }, scopes);
  return {
    workerId: worker.id,
    sessionId: session.id,
    sessionKey: `local:${session.id}`,
    messageId: message_id,
    executionId: execution.id,
    taskId: execution.task_id,
    token,
    headers: { authorization: `Bearer ${token}` },
  };
}

/** Signs the token of a run's agent. */
export function runToken(
  app: App,
  execution: { id: string; worker_id: string; attempt: number },
  scopes: string[],
): Promise<string> {
  const { authority, clock } = app.server.parts;
  const claims = {
    typ: "run" as const,
    sub: `worker:${execution.worker_id}`,
    scope: scopes.join(" "),
    ver: 1,
    execution_id: execution.id,
    attempt: execution.attempt,
  };
  return signToken(authority.key, claims, 86_400, clock.now());
}
