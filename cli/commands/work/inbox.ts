import { field, idField, timeField } from "../../terminal/column.ts";
import { listCommand } from "../list.ts";

export const inboxCommand = listCommand({
  name: "inbox",
  about:
    "List what needs a person: questions, failures, undelivered replies, limits, budgets that hold work, paused schedules and workers",
  endpoint: "GET /api/inbox",
  columns: [
    field("kind"),
    timeField("at"),
    field("worker_name"),
    idField("question_id"),
    idField("execution_id"),
    idField("message_id"),
    idField("task_id"),
    idField("budget_id"),
    field("title"),
    field("detail"),
  ],
  id: (row) =>
    String(
      row.question_id || row.execution_id || row.task_id || row.budget_id || row.message_id ||
        row.worker_id || row.engine,
    ),
  options: {
    since: {
      flags: "--since <time>",
      about: "failures from then on, such as -7d; 24 hours when left out",
      type: "time",
    },
  },
  examples: ["inbox", "inbox --since -7d"],
});
