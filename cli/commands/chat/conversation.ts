import { toColumns } from "../../terminal/column.ts";
import { type AnyCommand, option } from "../command.ts";
import { pageOptions, resource, SESSION_KEY } from "../resource.ts";

export const group: AnyCommand[] = [
  resource("conversation", { arg: "key", example: "" }).list(
    "List conversations of all platforms, latest first",
    "GET /api/conversations",
    {
      columns: toColumns("session_key name updated_at active_tasks role text"),
      options: {
        sessionKey: SESSION_KEY,
        platform: option.text("--platform <names>", "filter by platform", { multiple: true }),
        ...pageOptions(100),
      },
      examples: ["conversation list", "conversation list --platform local"],
    },
  ),
];
