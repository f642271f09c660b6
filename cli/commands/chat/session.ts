import { ACTIVE_TASK_STATUSES } from "../../../src/domain/call/vocabulary.ts";
import { ServiceError } from "../../../src/domain/call/error.ts";
import type { Client } from "../../client/client.ts";
import { EXIT, Exit } from "../../terminal/exit.ts";
import { field, toColumns } from "../../terminal/column.ts";
import { confirm } from "../../terminal/prompt.ts";
import { type AnyCommand, command, option } from "../command.ts";
import { pageOptions, requestCommand, resource, WORKER_ID } from "../resource.ts";

const KEY = option.text("--session-key <key>", "conversation, e.g. local:<session id>", {
  completion: "session_key",
  required: true,
});

export const group: AnyCommand[] = [
  resource("session", { arg: "key", example: "" }).list(
    "List the workers that keep context of a conversation",
    "GET /api/contexts",
    {
      columns: toColumns("worker_id worker_name engine", field("session_id"), "active_tasks updated_at"),
      id: (row) => String(row.worker_id),
      options: { sessionKey: KEY, ...pageOptions(100) },
      examples: ["session list --session-key local:$session"],
    },
  ),
  requestCommand({
    name: "approvals",
    about: "List the tool calls that a conversation allows without a question",
    endpoint: "GET /api/approvals",
    columns: toColumns("worker_name engine tool path arguments allowed_by created_at"),
    options: { sessionKey: KEY, ...pageOptions(100) },
    examples: ["session approvals --session-key local:$session"],
  }),
  command({
    name: "clear",
    about: "Cancel all active work of a conversation and delete its contexts",
    options: {
      sessionKey: KEY,
      force: option.flag("--force", "skip the confirmation for several workers"),
      yes: option.flag("--yes", "same as --force"),
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
          throw new Exit(EXIT.declined, "Canceled. Cleared nothing.");
        }
      }
      const { json, value } = await client.call("DELETE /api/contexts", { query });
      out.object(json, value, options.sessionKey);
    },
  }),
  command({
    name: "clear-worker",
    about: "Delete one worker's context of a conversation",
    options: { sessionKey: KEY, workerId: { ...WORKER_ID, about: "worker", required: true } },
    examples: ["session clear-worker --session-key local:$session --worker Ada"],
    async run({ client, out, options: { workerId, sessionKey } }) {
      const { json, value } = await client.call("DELETE /api/contexts/:worker_id", {
        params: { worker_id: workerId },
        query: { session_key: sessionKey },
      });
      out.object(json, value, workerId);
    },
  }),
];

/** Returns the names of the workers that have context or active tasks of a conversation (contract 8.15). */
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

// A caller may clear a conversation without the right to see its tasks.
function ignoreForbidden(error: unknown): null {
  if (error instanceof ServiceError && error.code === "forbidden") return null;
  throw error;
}
