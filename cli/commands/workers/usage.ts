import { USAGE_GROUPS } from "../../../src/domain/call/vocabulary.ts";
import { toColumns } from "../../terminal/column.ts";
import { option } from "../command.ts";
import { requestCommand } from "../resource.ts";

export const group = requestCommand({
  name: "usage",
  about: "Show usage by worker, department, engine, day or conversation",
  endpoint: "GET /api/usage",
  columns: toColumns("key name executions failed minutes input_tokens output_tokens cost_usd"),
  id: (row) => String(row.key),
  options: {
    by: option.text("--by <group>", "group by", { choices: USAGE_GROUPS, default: "worker" }),
    days: option.int("--days <n>", "usage of the last calendar days, today included", { default: 30 }),
    since: option.time("--since <time>", "usage since this time instead, e.g. -12h"),
  },
  examples: ["usage", "usage --days 7", "usage --by engine --since -12h"],
});
