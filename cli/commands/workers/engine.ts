import { field, type Row, timeField } from "../../terminal/column.ts";
import { type AnyCommand, command } from "../command.ts";
import { listCommand } from "../list.ts";

export const engineCommands: AnyCommand[] = [
  listCommand({
    name: "list",
    about: "List all engines and whether they can be used",
    endpoint: "GET /api/engines",
    columns: [
      field("name"),
      field("kind"),
      field("usable"),
      field("default"),
      field("version"),
      { name: "windows", value: (row) => row.windows, show: (row) => formatWindows(row) },
      timeField("limited_until"),
      field("detail"),
    ],
    id: (row) => String(row.name),
    options: {},
    examples: ["engine list"],
  }),
  command({
    name: "get",
    about: "Show an engine",
    args: ["name"],
    options: {},
    examples: ["engine get claude"],
    async run({ client, out, args: [name = ""] }) {
      const { json, value } = await client.call("GET /api/engines/:name", { params: { name } });
      out.object(json, value, value.name);
    },
  }),
  command({
    name: "lift",
    about: "Let an engine go on that waits for its provider",
    args: ["name"],
    options: {},
    examples: ["engine lift claude"],
    async run({ client, out, args: [name = ""] }) {
      const { json, value } = await client.call("POST /api/engines/:name/lift", { params: { name } });
      out.object(json, value, value.name);
    },
  }),
];

function formatWindows(row: Row): string {
  const windows = row.windows as { name: string; utilization: number }[];
  return windows.map(({ name, utilization }) => `${name} ${Math.round(utilization * 100)} %`).join(", ");
}
