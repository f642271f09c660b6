import { field, idField, timeField } from "../../terminal/column.ts";
import type { AnyCommand } from "../command.ts";
import { listCommand, pageOptions } from "../list.ts";

export const conversationCommands: AnyCommand[] = [
  listCommand({
    name: "list",
    about: "List the conversations of all platforms, the latest first",
    endpoint: "GET /api/conversations",
    columns: [
      idField("session_key"),
      field("name"),
      timeField("updated_at"),
      field("active_tasks"),
      field("role"),
      field("text"),
    ],
    options: {
      sessionKey: {
        flags: "--session-key <key>",
        completion: "session_key",
        about: "this conversation",
        type: "text",
      },
      platform: { flags: "--platform <names>", about: "of these platforms", type: "text", multiple: true },
      ...pageOptions(100),
    },
    examples: ["conversation list", "conversation list --platform local"],
  }),
];
