import { type Row, toColumns } from "../../terminal/column.ts";
import type { AnyCommand } from "../command.ts";
import { resource } from "../resource.ts";

const launcher = resource("launcher", { arg: "name", example: "gpu" });

const id = (row: Row) => String(row.name);

export const group: AnyCommand[] = [
  launcher.list("List the launchers of the configuration", "GET /api/launchers", {
    columns: toColumns("name labels open running max paused failures retry_at last_error"),
    id,
  }),
  launcher.verb(
    "resume",
    "Resume a launcher that failed starts have paused",
    "POST /api/launchers/:name/resume",
    {
      id,
    },
  ),
];
