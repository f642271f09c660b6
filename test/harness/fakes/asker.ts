import { join } from "node:path";
import { expect } from "vitest";
import type { App } from "../service/app.ts";
import { runToken } from "../service/run.ts";
import { waitForValue } from "../wait.ts";
import type { Json } from "../service/client.ts";

/** A worker's run that can ask questions and ends when the test calls end(). The app needs buildFakeEngines(). */
export interface AskingRun {
  workerId: string;
  /** The conversation's session; "" for a script's task. */
  sessionId: string;
  sessionKey: string;
  messageId: string;
  executionId: string;
  taskId: string;
  headers: { authorization: string };
  /** Asks a question as the agent. */
  ask: (body?: Record<string, unknown>) => Promise<Json>;
  /** Ends the agent's turn; resolves when its outcome is stored. */
  end: () => Promise<void>;
}

interface AskerOptions {
  name?: string;
  scopes?: string[];
  /** Creates a script's task, without a conversation. */
  script?: boolean;
}

/** Starts a run of a new worker that lasts until end() is called. */
export async function startAskingRun(app: App, options: AskerOptions = {}): Promise<AskingRun> {
  const { name = "Agent", scopes = [], script = false } = options;
  const worker = await app.call("POST /api/workers", { name, scopes });
  const file = join(app.dataDir, `end-${worker.id}`);
  const content = `until ${file}`;
  const session = script ? null : await app.call("POST /api/local/sessions", { worker_id: worker.id });
  if (session === null) {
    const message_id = `script-${worker.id}`;
    await app.call("POST /api/tasks", {
      message_id,
      worker_id: worker.id,
      instruction: content,
      type: "immediate",
    });
  } else await app.call(`POST /api/local/sessions/${session.id}/messages`, { content });
  const execution = await waitForRun(app, worker.id);
  const headers = { authorization: `Bearer ${await runToken(app, execution, scopes)}` };
  return {
    workerId: worker.id,
    sessionId: session?.id ?? "",
    sessionKey: execution.session_key,
    messageId: execution.message_id,
    executionId: execution.id,
    taskId: execution.task_id,
    headers,
    ask: async (body = {}) => {
      const asked = { message_id: execution.message_id, text: "Which colour?", ...body };
      const reply = await app.send("POST /api/questions", asked, headers);
      expect(reply.status, JSON.stringify(reply.body)).toBe(201);
      return reply.body;
    },
    end: async () => {
      await Deno.writeTextFile(file, "");
      const isEnded = "select 1 as one from execution where id = ? and status in ('completed', 'failed')";
      await waitForValue(() => app.db.first(isEnded, [execution.id]));
    },
  };
}

interface RunningExecution {
  id: string;
  worker_id: string;
  task_id: string;
  message_id: string;
  session_key: string;
  attempt: number;
  [column: string]: string | number;
}

/** Returns a worker's run as soon as its engine has started. */
export async function waitForRun(app: App, workerId: string): Promise<RunningExecution> {
  return await waitForValue(() =>
    app.db.first<RunningExecution>(
      "select * from execution where worker_id = ? and status = 'running' order by id desc limit 1",
      [workerId],
    )
  );
}
