import { ACTIVE_TASK_STATUSES } from "../../../src/domain/vocabulary.ts";
import { ServiceError } from "../../../src/domain/error.ts";
import type { Client } from "../../client/client.ts";
import { field, idField, timeField } from "../../terminal/column.ts";
import { type AnyCommand, command, type OptionSpec, toFields } from "../command.ts";
import { EXIT, Exit } from "../../terminal/exit.ts";
import { listCommand, pageOptions } from "../list.ts";
import { confirm } from "../../terminal/prompt.ts";

const KEY = {
  flags: "--session-key <key>",
  completion: "session_key",
  about: "the conversation, such as local:<session id>",
  type: "text",
  required: true,
} as const satisfies OptionSpec;

const COLUMNS = [
  idField("worker_id"),
  field("worker_name"),
  field("engine"),
  field("session_id"),
  field("active_tasks"),
  timeField("updated_at"),
];

export const sessionCommands: AnyCommand[] = [
  listCommand({
    name: "list",
    about: "List the workers that remember something of a conversation",
    endpoint: "GET /api/contexts",
    columns: COLUMNS,
    id: (row) => String(row.worker_id),
    options: { sessionKey: KEY, ...pageOptions(100) },
    examples: ["session list --session-key local:$session"],
  }),
  command({
    name: "clear",
    about: "Cancel all active work of a conversation and forget all of its contexts",
    options: {
      sessionKey: KEY,
      force: { flags: "--force", about: "do not ask when several workers are linked", type: "flag" },
      yes: { flags: "--yes", about: "the same as --force", type: "flag" },
    },
    examples: ["session clear --session-key local:$session --force"],
    async run({ client, out, options, io }) {
      const query = { session_key: options.sessionKey };
      if (!options.force && !options.yes) {
        const names = await findLinkedWorkers(client, options.sessionKey);
        if (
          names.length > 1 &&
          !await confirm(io, `${names.length} workers are linked (${names.join(", ")}). Clear them all?`)
        ) {
          throw new Exit(EXIT.declined, "nothing was cleared");
        }
      }
      const { json, value } = await client.call("DELETE /api/contexts", { query });
      out.object(json, value, options.sessionKey);
    },
  }),
  command({
    name: "clear-worker",
    about: "Let one worker forget a conversation",
    options: {
      sessionKey: KEY,
      workerId: {
        flags: "--worker-id <id>",
        completion: "worker",
        ref: "worker",
        about: "who is to forget",
        type: "text",
        required: true,
      },
    },
    examples: ["session clear-worker --session-key local:$session --worker-id $id"],
    async run({ client, out, options }) {
      const { workerId, ...fields } = options;
      const { json, value } = await client.call("DELETE /api/contexts/:worker_id", {
        params: { worker_id: workerId },
        query: toFields(fields),
      });
      out.object(json, value, workerId);
    },
  }),
];

/** The names of the workers that remember a conversation, or have active tasks of it (contract 8.15). */
async function findLinkedWorkers(client: Client, sessionKey: string): Promise<string[]> {
  const query = { session_key: sessionKey, page_size: 100 };
  const contexts = (await client.call("GET /api/contexts", { query })).value;
  const names = new Map(contexts.map(({ worker_id, worker_name }) => [worker_id, worker_name]));
  const active = await client.call("GET /api/tasks", {
    query: { ...query, status: ACTIVE_TASK_STATUSES.join(",") },
  }).catch(ignoreForbidden);
  const others = [...new Set((active?.value ?? []).map(({ worker_id }) => worker_id))].filter((id) =>
    !names.has(id)
  );
  if (others.length === 0) return [...names.values()];
  const workers = await client.call("GET /api/workers", { query: { id: others.join(",") } }).catch(
    ignoreForbidden,
  );
  const known = new Map((workers?.value ?? []).map(({ id, name }) => [id, name]));
  return [...names.values(), ...others.map((id) => known.get(id) ?? id)];
}

// Whoever may clear a conversation need not be allowed to see its tasks.
function ignoreForbidden(error: unknown): null {
  if (error instanceof ServiceError && error.code === "forbidden") return null;
  throw error;
}
