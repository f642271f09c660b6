import { type AnyCommand, command, noteMore, type OptionSpec, pageOptions } from "../command.ts";
import { EXIT, Exit } from "../exit.ts";
import { field, timeField } from "../output.ts";
import { confirm } from "../prompt.ts";

const KEY = {
  flags: "--session-key <key>",
  about: "the conversation, such as local:<session id>",
  type: "text",
  required: true,
} as const satisfies OptionSpec;

const COLUMNS = [
  field("worker_id"),
  field("worker_name"),
  field("engine"),
  field("session_id"),
  field("active_tasks"),
  timeField("updated_at"),
];

export const sessionCommands: AnyCommand[] = [
  command({
    name: "list",
    about: "List the workers that remember something of a conversation",
    options: { sessionKey: KEY, ...pageOptions(100) },
    examples: ["session list --session-key local:$session"],
    async run(context) {
      const { sessionKey, page, pageSize } = context.options;
      const query = { session_key: sessionKey, page, page_size: pageSize };
      const { json, value, headers } = await context.client.call("GET /api/contexts", { query });
      await context.out.list(json, value, COLUMNS, (row) => String(row.worker_id));
      noteMore(context, value.length, headers, page);
    },
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
      workerId: { flags: "--worker-id <id>", about: "who is to forget", type: "text", required: true },
    },
    examples: ["session clear-worker --session-key local:$session --worker-id $id"],
    async run({ client, out, options }) {
      const { json, value } = await client.call("DELETE /api/contexts/:worker_id", {
        params: { worker_id: options.workerId },
        query: { session_key: options.sessionKey },
      });
      out.object(json, value, options.workerId);
    },
  }),
];
