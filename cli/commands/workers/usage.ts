import { USAGE_GROUPS } from "../../../src/domain/vocabulary.ts";
import { field } from "../../terminal/column.ts";
import { listCommand } from "../list.ts";

export const usageCommand = listCommand({
  name: "usage",
  about: "Show what runs used, by worker, department, engine, day or conversation",
  endpoint: "GET /api/usage",
  columns: [
    field("key"),
    field("name"),
    field("executions"),
    field("failed"),
    field("minutes"),
    field("input_tokens"),
    field("output_tokens"),
    field("cost_usd"),
  ],
  id: (row) => String(row.key),
  options: {
    by: {
      flags: "--by <what>",
      about: "added up by this",
      type: "text",
      choices: USAGE_GROUPS,
      default: "worker",
    },
    since: {
      flags: "--since <time>",
      about: "from then on, such as -7d; 30 days when left out",
      type: "time",
    },
  },
  examples: ["usage", "usage --by day --since -7d"],
});
