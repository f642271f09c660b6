import { join } from "node:path";
import { Database, type Value } from "../../../src/store/db/database.ts";
import type { Client } from "../service/client.ts";
import { waitUntil } from "../wait.ts";
import { createTask } from "../service/runner.ts";

export async function createWorkers(api: Pick<Client, "call">, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push((await api.call("POST /api/workers", { name: `w${i}` })).id);
  return ids;
}

/** Creates a schedule that fires once a year and returns its id. */
export async function createSchedule(
  api: Pick<Client, "call">,
  worker_id: string,
  instruction: string,
  more: object = {},
): Promise<string> {
  const body = {
    message_id: "script",
    worker_id,
    instruction,
    type: "scheduled",
    cron: "0 0 1 1 *",
    ...more,
  };
  return (await api.call("POST /api/tasks", body)).id;
}

/** Gives a new worker a task and waits until its run exists. */
export async function startRun(
  api: Client,
  instruction: string,
): Promise<{ id: string; ended: () => Promise<boolean> }> {
  const [worker = ""] = await createWorkers(api, 1);
  const task = await createTask(api, worker, instruction);
  const get = () => api.call(`GET /api/tasks/${task}`);
  await waitUntil("the run exists", async () => (await get()).execution_id !== null);
  const id = (await get()).execution_id;
  return { id, ended: async () => ["completed", "failed"].includes((await get()).status) };
}

export interface Conversation {
  sessionId: string;
  acknowledged: string[];
  say: (content: string) => ReturnType<Client["send"]>;
}

/** Opens the only conversation of the service, or creates it with a worker. */
export async function openConversation(api: Client): Promise<Conversation> {
  const [worker] = await api.call("GET /api/workers");
  const { id: worker_id } = worker ?? await api.call("POST /api/workers", { name: "Ada" });
  const [session] = await api.call("GET /api/local/sessions");
  const { id: sessionId } = session ?? await api.call("POST /api/local/sessions", { worker_id });
  const acknowledged: string[] = [];
  const say = async (content: string) => {
    const reply = await api.send(`POST /api/local/sessions/${sessionId}/messages`, { content });
    if (reply.status === 202) acknowledged.push(reply.body.message_id);
    return reply;
  };
  return { sessionId, acknowledged, say };
}

/** Reads rows from the database in a data directory. */
export async function readRows<Row extends Record<string, Value>>(
  dataDir: string,
  sql: string,
  args: Value[] = [],
): Promise<Row[]> {
  await using db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  return await db.read<Row>(sql, args);
}

/** Reads the process marks of all runs from the database of a service that has ended. */
export async function readRunMarks(dataDir: string): Promise<Set<string>> {
  const rows = await readRows<{ run_id: string }>(dataDir, "select run_id from execution");
  return new Set(rows.map((row) => row.run_id));
}

/** Overwrites a part of a file with a byte value. */
export async function overwriteFile(path: string, at: number, bytes: number, value: number): Promise<void> {
  const file = await Deno.open(path, { write: true });
  await file.seek(at, Deno.SeekMode.Start);
  await file.write(new Uint8Array(bytes).fill(value));
  file.close();
}

export async function pause(ms = 20): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
