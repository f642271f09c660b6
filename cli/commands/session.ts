import { field, idField, timeField } from "../column.ts";
import { type AnyCommand, command, fieldsOf, type OptionSpec } from "../command.ts";
import { EXIT, Exit } from "../exit.ts";
import { listCommand, pageOptions } from "../list.ts";
import { confirm } from "../prompt.ts";

const KEY = {
  flags: "--session-key <key>",
  offers: "session_key",
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
        const { value } = await client.call("GET /api/contexts", { query });
        const names = value.map((context) => context.worker_name).join(", ");
        if (
          value.length > 1 &&
          !await confirm(io, `${value.length} workers are linked (${names}). Clear them all?`)
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
        offers: "worker",
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
        query: fieldsOf(fields),
      });
      out.object(json, value, workerId);
    },
  }),
];
