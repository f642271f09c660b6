import { field, timeField } from "../column.ts";
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
];
