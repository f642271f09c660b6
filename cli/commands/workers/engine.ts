import { type Row, toColumns } from "../../terminal/column.ts";
import type { AnyCommand } from "../command.ts";
import { resource } from "../resource.ts";

const engine = resource("engine", { arg: "name", example: "claude" });
const id = (row: Row) => String(row.name);
const WINDOWS = { name: "windows", value: (row: Row) => row.windows, show: formatWindows };

export const group: AnyCommand[] = [
  engine.list("List engines and whether each is usable", "GET /api/engines", {
    columns: toColumns(
      "name kind usable default permissions gateway version",
      WINDOWS,
      "limited_until fallback detail",
    ),
    id,
  }),
  engine.get("GET /api/engines/:name", { id }),
  engine.verb("lift", "Use a rate-limited engine again now", "POST /api/engines/:name/lift", { id }),
];

function formatWindows(row: Row): string {
  const windows = row.windows as { name: string; utilization: number }[];
  return windows.map(({ name, utilization }) => `${name} ${Math.round(utilization * 100)} %`).join(", ");
}
