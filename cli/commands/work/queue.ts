import { TASK_STATUSES, TASK_TYPES } from "../../../src/domain/call/vocabulary.ts";
import { toColumns } from "../../terminal/column.ts";
import { type AnyCommand, option, toFields } from "../command.ts";
import {
  filterOption,
  pageOptions,
  requestCommand,
  resource,
  SESSION_KEY,
  TEXT,
  WORKER_ID,
} from "../resource.ts";

export const group: AnyCommand[] = [
  resource("queue", { arg: "id", example: "" }).list(
    "List active tasks of all workers, or those with a status, newest first",
    "GET /api/queue",
    {
      columns: toColumns("id status type worker_id next_run_at created_at reason instruction"),
      options: {
        sessionKey: SESSION_KEY,
        workerId: WORKER_ID,
        status: filterOption("--status <statuses>", "status", TASK_STATUSES),
        type: filterOption("--type <types>", "type", TASK_TYPES),
        text: TEXT,
        ...pageOptions(100),
      },
      examples: ["queue list", "queue list --status running"],
    },
  ),
  requestCommand({
    name: "cancel",
    about: "Cancel all matching tasks. --expected has to be their number",
    endpoint: "POST /api/queue/cancel",
    options: {
      expected: option.int("--expected <n>", "expected number of tasks", { required: true }),
      workerId: WORKER_ID,
      sessionKey: SESSION_KEY,
      status: option.text("--status <status>", "filter by status", { choices: ["pending", "scheduled"] }),
      type: option.text("--type <type>", "filter by type", { choices: TASK_TYPES }),
    },
    examples: ["queue cancel --worker Ada --status pending --expected 12"],
    input: ({ expected, ...filter }) => ({ filter: toFields(filter), expected }),
    id: (row) => String(row.cancelled_tasks),
  }),
];
