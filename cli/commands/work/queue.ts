import { ACTIVE_TASK_STATUSES, TASK_TYPES } from "../../../src/domain/vocabulary.ts";
import { field, idField, statusField, timeField } from "../../terminal/column.ts";
import { type AnyCommand, command, type OptionSpec, toFields } from "../command.ts";
import { listCommand, pageOptions } from "../list.ts";

const SESSION_KEY = {
  flags: "--session-key <key>",
  completion: "session_key",
  about: "of this conversation",
  type: "text",
} as const satisfies OptionSpec;
const WORKER_ID = {
  flags: "--worker-id <id>",
  completion: "worker",
  ref: "worker",
  about: "of this worker",
  type: "text",
} as const satisfies OptionSpec;

export const queueCommands: AnyCommand[] = [
  listCommand({
    name: "list",
    about: "List the active tasks of all workers and conversations, newest first",
    endpoint: "GET /api/queue",
    columns: [
      idField(),
      statusField(),
      field("type"),
      idField("worker_id"),
      timeField("next_run_at"),
      timeField("created_at"),
      field("reason"),
      field("instruction"),
    ],
    options: {
      sessionKey: SESSION_KEY,
      workerId: WORKER_ID,
      status: {
        flags: "--status <statuses>",
        about: "in one of these",
        type: "text",
        choices: ACTIVE_TASK_STATUSES,
        multiple: true,
      },
      type: {
        flags: "--type <types>",
        about: "of one of these",
        type: "text",
        choices: TASK_TYPES,
        multiple: true,
      },
      ...pageOptions(100),
    },
    examples: ["queue list", "queue list --status running"],
  }),
  command({
    name: "cancel",
    about: "Cancel all waiting and scheduled tasks that match, if there are as many as expected",
    options: {
      expected: { flags: "--expected <n>", about: "how many there are", type: "int", required: true },
      workerId: WORKER_ID,
      sessionKey: SESSION_KEY,
      status: {
        flags: "--status <status>",
        about: "in this status",
        type: "text",
        choices: ["pending", "scheduled"],
      },
      type: { flags: "--type <type>", about: "of this type", type: "text", choices: TASK_TYPES },
    },
    examples: ["queue cancel --worker-id $id --status pending --expected 12"],
    async run({ client, out, options }) {
      const { expected, ...filter } = options;
      const body = { filter: toFields(filter), expected };
      const { json, value } = await client.call("POST /api/queue/cancel", { body });
      out.object(json, value, String(value.cancelled_tasks));
    },
  }),
];
