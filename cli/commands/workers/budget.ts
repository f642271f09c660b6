import { BUDGET_ACTIONS, BUDGET_PERIODS, BUDGET_UNITS } from "../../../src/domain/vocabulary.ts";
import { type Column, field, idField, statusField, timeField } from "../../terminal/column.ts";
import { type AnyCommand, command, type OptionSpec, toFields } from "../command.ts";
import { parseDuration } from "../duration.ts";
import { usageError } from "../../terminal/exit.ts";
import { listCommand, pageOptions } from "../list.ts";

const COLUMNS: Column[] = [
  idField(),
  field("name"),
  field("target"),
  { name: "used", value: (row) => Number(Number(row.used).toFixed(4)) },
  { name: "reserved", value: (row) => Number(Number(row.reserved).toFixed(4)) },
  field("limit"),
  field("unit"),
  field("period"),
  field("action"),
  statusField("state"),
  timeField("resets_at"),
  timeField("lifted_until"),
];

const OPTIONS = {
  name: { flags: "-n, --name <name>", about: "its name; unique", type: "text" },
  target: {
    flags: "--target <what>",
    about: "global, department:<name>, worker:<name>, session:<key> or engine:<name>",
    type: "text",
  },
  unit: { flags: "--unit <unit>", about: "what is counted", type: "text", choices: BUDGET_UNITS },
  limit: { flags: "--limit <number>", about: "so much of it at most; 0 lets nothing start", type: "text" },
  period: { flags: "--period <period>", about: "within this time", type: "text", choices: BUDGET_PERIODS },
  soft: { flags: "--soft <percent>", about: "said once at this part of the limit", type: "int" },
  action: {
    flags: "--action <action>",
    about: "hold: nothing new starts; stop: what runs is ended, too",
    type: "text",
    choices: BUDGET_ACTIONS,
  },
} as const satisfies Record<string, OptionSpec>;

const WHO = "id|name";
const REFS = { [WHO]: "budget" } as const;

export const budgetCommands: AnyCommand[] = [
  listCommand({
    name: "list",
    about: "List budgets with what is used of them, newest first",
    options: {
      target: { flags: "--target <what>", about: "only of this target, with ids", type: "text" },
      ...pageOptions(100),
    },
    examples: ["budget list", "budget list --target global"],
    endpoint: "GET /api/budgets",
    columns: COLUMNS,
  }),
  command({
    name: "get",
    about: "Show a budget with what is used of it",
    args: [WHO],
    refs: REFS,
    options: {},
    examples: ["budget get Month"],
    async run({ client, out, args: [id = ""] }) {
      const { json, value } = await client.call("GET /api/budgets/:id", { params: { id } });
      out.object(json, value);
    },
  }),
  command({
    name: "create",
    about: "Create a budget; it counts at once, with what was used before",
    options: {
      ...OPTIONS,
      name: { ...OPTIONS.name, required: true },
      target: { ...OPTIONS.target, default: "global" },
      unit: { ...OPTIONS.unit, required: true },
      limit: { ...OPTIONS.limit, required: true },
      period: { ...OPTIONS.period, required: true },
      soft: { ...OPTIONS.soft, default: 80 },
      action: { ...OPTIONS.action, default: "hold" },
    },
    examples: [
      "budget create --name Month --unit usd --limit 50 --period month",
      "budget create -n Ada --target worker:Ada --unit tokens --limit 2000000 --period 24h --action stop",
    ],
    async run({ client, out, options }) {
      const body = { ...toFields(options), limit: parseNumber(options.limit) };
      const { json, value } = await client.call("POST /api/budgets", { body });
      out.object(json, value);
    },
  }),
  command({
    name: "update",
    about: "Change a budget; what is not named stays as it is",
    args: [WHO],
    refs: REFS,
    options: OPTIONS,
    examples: ["budget update Month --limit 80"],
    async run({ client, out, args: [id = ""], options }) {
      const { limit, ...rest } = options;
      const body = { ...toFields(rest), ...(limit === undefined ? {} : { limit: parseNumber(limit) }) };
      const { json, value } = await client.call("PUT /api/budgets/:id", { params: { id }, body });
      out.object(json, value);
    },
  }),
  command({
    name: "delete",
    about: "Delete a budget; what it held goes on",
    args: [WHO],
    refs: REFS,
    options: {},
    examples: ["budget delete Month"],
    async run({ client, out, args: [id = ""] }) {
      const { json, value } = await client.call("DELETE /api/budgets/:id", { params: { id } });
      out.object(json, value, id);
    },
  }),
  command({
    name: "lift",
    about: "Put a budget out of force for a while; --for 0s puts it into force again",
    args: [WHO],
    refs: REFS,
    options: {
      for: { flags: "--for <duration>", about: "such as 30m or 12h", type: "text", default: "1h" },
    },
    examples: ["budget lift Month --for 2h"],
    async run({ client, out, args: [id = ""], options }) {
      const body = { for_ms: parseDuration(options.for, "--for", 3_600_000) };
      const { json, value } = await client.call("POST /api/budgets/:id/lift", { params: { id }, body });
      out.object(json, value);
    },
  }),
];

function parseNumber(text: string): number {
  const number = Number(text);
  if (text.trim() !== "" && Number.isFinite(number)) return number;
  throw usageError(`--limit: ${JSON.stringify(text)} is not a number`);
}
