import { durationMs } from "../../../src/base/duration.ts";
import { type Column, field, idField, timeField } from "../../terminal/column.ts";
import { type AnyCommand, command } from "../command.ts";
import { usageError } from "../../terminal/exit.ts";
import { listCommand, pageOptions } from "../list.ts";
import { saveToken } from "../../client/token_file.ts";

const COLUMNS: Column[] = [
  idField(),
  field("name"),
  field("user_name"),
  field("scopes"),
  {
    ...timeField("expires_at"),
    show: (row) =>
      row.expires_at === null ? "never" : new Date(Number(row.expires_at)).toISOString().slice(0, 10),
  },
  timeField("last_used_at"),
];

export const tokenCommands: AnyCommand[] = [
  listCommand({
    name: "list",
    about: "List tokens, newest first: your own, or those that you may see",
    options: {
      user: { flags: "--user <id|name>", about: "only of this user", type: "text" },
      ...pageOptions(100),
    },
    examples: ["token list", "token list --user ada"],
    endpoint: "GET /api/tokens",
    columns: COLUMNS,
  }),
  command({
    name: "create",
    about: "Make a token for a program. It is shown once, here",
    options: {
      name: { flags: "-n, --name <name>", about: "its name; unique", type: "text", required: true },
      scopes: {
        flags: "--scopes <scopes>",
        completion: "scope",
        about: "what it may, such as read:tasks,write:tasks; within what you may",
        type: "words",
        required: true,
      },
      expiresIn: {
        flags: "--expires-in <duration>",
        about: "such as 12h or 30d, or never",
        type: "text",
        default: "90d",
      },
      tokenFile: {
        flags: "--token-file <path>",
        about: "write it to this new file, which only you may read, and do not show it",
        type: "text",
      },
    },
    examples: [
      "token create --name ci --scopes read:tasks,write:tasks",
      "token create -n ci --scopes read:* --expires-in never --token-file ci.token",
    ],
    async run({ client, out, io, options: { name, scopes, expiresIn, tokenFile } }) {
      const expires_at = parseExpiry(expiresIn);
      const body = { name, scopes, ...(expires_at === undefined ? {} : { expires_at }) };
      const make = () => client.call("POST /api/tokens", { body });
      const { json, value } = await saveToken(io, tokenFile, make);
      out.object(json, value);
    },
  }),
  command({
    name: "delete",
    about: "Revoke a token; it counts no longer at once",
    args: ["id"],
    options: {},
    examples: ["token delete 01a1fd23-4a4c-746f-99ac-8860e2641168"],
    async run({ client, out, args: [id = ""] }) {
      const { json, value } = await client.call("DELETE /api/tokens/:id", { params: { id } });
      out.object(json, value, id);
    },
  }),
];

function parseExpiry(given: string | undefined): number | null | undefined {
  if (given === undefined) return undefined;
  if (given === "never") return null;
  const ms = durationMs(given);
  if (ms === null) {
    throw usageError(
      `--expires-in: ${JSON.stringify(given)} is not a duration such as 12h or 30d, nor never`,
    );
  }
  return Date.now() + ms;
}
