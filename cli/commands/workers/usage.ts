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
    since: option.time("--since <time>", "usage since this time, e.g. -7d; the last 30 days by default"),
  },
  examples: ["usage", "usage --by day --since -7d"],
});
