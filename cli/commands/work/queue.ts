import { ACTIVE_TASK_STATUSES, TASK_TYPES } from "../../../src/domain/call/vocabulary.ts";
import { toColumns } from "../../terminal/column.ts";
import { type AnyCommand, command, option, toFields } from "../command.ts";
import { pageOptions, resource, SESSION_KEY, WORKER_ID } from "../resource.ts";

const MULTIPLE = { multiple: true } as const;

export const group: AnyCommand[] = [
  resource("queue", { arg: "id", example: "" }).list(
    "List active tasks of all workers, newest first",
    "GET /api/queue",
    {
      columns: toColumns(
        ...["id", "status", "type", "worker_id", "next_run_at", "created_at", "reason", "instruction"],
      ),
      options: {
        sessionKey: SESSION_KEY,
        workerId: WORKER_ID,
        status: option.text("--status <statuses>", "filter by status", {
          choices: ACTIVE_TASK_STATUSES,
          ...MULTIPLE,
        }),
        type: option.text("--type <types>", "filter by type", { choices: TASK_TYPES, ...MULTIPLE }),
        ...pageOptions(100),
      },
      examples: ["queue list", "queue list --status running"],
    },
  ),
  command({
    name: "cancel",
    about: "Cancel all matching tasks if their number is as expected",
    options: {
      expected: option.int("--expected <n>", "expected number of tasks", { required: true }),
      workerId: WORKER_ID,
      sessionKey: SESSION_KEY,
      status: option.text("--status <status>", "filter by status", { choices: ["pending", "scheduled"] }),
      type: option.text("--type <type>", "filter by type", { choices: TASK_TYPES }),
    },
    examples: ["queue cancel --worker-id $id --status pending --expected 12"],
    async run({ client, out, options: { expected, ...filter } }) {
      const body = { filter: toFields(filter), expected };
      const { json, value } = await client.call("POST /api/queue/cancel", { body });
      out.object(json, value, String(value.cancelled_tasks));
    },
  }),
];
