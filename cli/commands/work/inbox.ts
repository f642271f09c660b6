import { timeField, toColumns } from "../../terminal/column.ts";
import { option } from "../command.ts";
import { requestCommand } from "../resource.ts";

const IDS = ["question_id", "execution_id", "task_id", "budget_id", "message_id", "worker_id", "engine"];

export const group = requestCommand({
  name: "inbox",
  about: "List everything that needs a person, such as questions and failures",
  endpoint: "GET /api/inbox",
  columns: toColumns(
    "kind",
    timeField("at"),
    "worker_name question_id execution_id message_id task_id budget_id title detail",
  ),
  id: (row) => String(row[IDS.find((name) => row[name]) ?? "engine"]),
  options: {
    since: option.time("--since <time>", "failures since this time, e.g. -7d; the last 24 hours by default"),
  },
  examples: ["inbox", "inbox --since -7d"],
});
