import { BUDGET_ACTIONS, BUDGET_PERIODS, BUDGET_UNITS } from "../../../src/domain/call/vocabulary.ts";
import type { Client } from "../../client/client.ts";
import { resolveRef } from "../../client/resource_ref.ts";
import { type Row, statusField, timeField, toColumns } from "../../terminal/column.ts";
import { type AnyCommand, option, toFields } from "../command.ts";
import { parseDuration } from "../duration.ts";
import { usageError } from "../../terminal/exit.ts";
import { pageOptions, resource } from "../resource.ts";

const budget = resource("budget", { arg: "id|name", ref: "budget", example: "Month" });

const COLUMNS = toColumns(
  "id name target",
  roundedColumn("used"),
  roundedColumn("reserved"),
  "limit unit period action",
  statusField("state"),
  timeField("resets_at"),
  roundedColumn("forecast"),
  timeField("runs_out_at"),
  timeField("lifted_until"),
);

const NAME = option.text("-n, --name <name>", "unique name");
const TARGET = option.text(
  "--target <target>",
  "global, department:<name>, worker:<name>, session:<key> or engine:<name>",
);
const UNIT = option.text("--unit <unit>", "unit of the limit", { choices: BUDGET_UNITS });
const LIMIT = option.text("--limit <number>", "limit per period; 0 blocks every run");
const PERIOD = option.text("--period <period>", "period after which the usage resets", {
  choices: BUDGET_PERIODS,
});
const SOFT = option.int("--soft <percent>", "send one notice at this percentage of the limit");
const ACTION = option.text("--action <action>", "hold: start no new runs; stop: also end active runs", {
  choices: BUDGET_ACTIONS,
});

export const group: AnyCommand[] = [
  budget.list("List budgets and their usage, newest first", "GET /api/budgets", {
    options: {
      target: option.text("--target <target>", "filter by target, e.g. worker:<id|name>"),
      ...pageOptions(100),
    },
    examples: ["budget list", "budget list --target worker:Ada"],
    input: async ({ target, ...rest }, { client }) => ({
      ...toFields(rest),
      ...(target === undefined ? {} : { target: await resolveTarget(client, target) }),
    }),
    columns: COLUMNS,
  }),
  budget.get("GET /api/budgets/:id"),
  budget.create("Create a budget. Earlier usage in the period is included", "POST /api/budgets", {
    options: {
      name: { ...NAME, required: true },
      target: { ...TARGET, default: "global" },
      unit: { ...UNIT, required: true },
      limit: { ...LIMIT, required: true },
      period: { ...PERIOD, required: true },
      soft: { ...SOFT, default: 80 },
      action: { ...ACTION, default: "hold" },
    },
    examples: [
      "budget create --name Month --unit usd --limit 50 --period month",
      "budget create -n Ada --target worker:Ada --unit tokens --limit 2000000 --period 24h --action stop",
    ],
    input: (options) => ({ ...toFields(options), limit: parseLimit(options.limit) }),
  }),
  budget.verb("update", "Change the given fields of a budget", "PUT /api/budgets/:id", {
    options: {
      name: NAME,
      target: TARGET,
      unit: UNIT,
      limit: LIMIT,
      period: PERIOD,
      soft: SOFT,
      action: ACTION,
    },
    examples: ["budget update Month --limit 80"],
    input: ({ limit, ...rest }) => ({
      ...toFields(rest),
      ...(limit === undefined ? {} : { limit: parseLimit(limit) }),
    }),
  }),
  budget.delete("Delete a budget. Work that it blocked continues", "DELETE /api/budgets/:id", {
    loss: "Work that it blocks starts immediately.",
  }),
  budget.verb(
    "lift",
    "Suspend a budget for a while; --for 0s ends the suspension",
    "POST /api/budgets/:id/lift",
    {
      options: {
        for: option.text("--for <duration>", "how long, e.g. 30m or 12h", { default: "1h" }),
      },
      examples: ["budget lift Month --for 2h"],
      input: (options) => ({ for_ms: parseDuration(options.for, "--for", 3_600_000) }),
    },
  ),
];

// Budgets store the IDs of their targets.
async function resolveTarget(client: Client, target: string): Promise<string> {
  const [, kind, ref = ""] = /^(worker|department):(.+)$/s.exec(target) ?? [];
  if (kind === "worker") return `worker:${await resolveRef(client, "worker", ref)}`;
  if (kind !== "department") return target;
  const params = { id_or_name: await resolveRef(client, "department", ref) };
  return `department:${(await client.call("GET /api/departments/:id_or_name", { params })).value.id}`;
}

function roundedColumn(name: string) {
  return { name, value: (row: Row) => row[name] === null ? "" : Number(Number(row[name]).toFixed(4)) };
}

function parseLimit(text: string): number {
  const number = Number(text);
  if (text.trim() !== "" && Number.isFinite(number)) return number;
  throw usageError(`--limit: ${JSON.stringify(text)} is not a number`);
}
