import { parseDurationMs } from "../../../src/base/duration.ts";
import { saveToken, TOKEN_FILE } from "../../client/token_file.ts";
import { timeField, toColumns } from "../../terminal/column.ts";
import { usageError } from "../../terminal/exit.ts";
import { type AnyCommand, command, option } from "../command.ts";
import { pageOptions, resource } from "../resource.ts";

const token = resource("token", { arg: "id", ref: "token", example: "01a1fd23-4a4c-746f-99ac-8860e2641168" });

const EXPIRES_AT = {
  ...timeField("expires_at"),
  show: (row: Record<string, unknown>) =>
    row.expires_at === null ? "never" : new Date(Number(row.expires_at)).toISOString().slice(0, 10),
};

export const group: AnyCommand[] = [
  token.list("List the tokens that you may see, newest first", "GET /api/tokens", {
    options: { user: option.text("--user <id|name>", "filter by user"), ...pageOptions(100) },
    examples: ["token list", "token list --user ada"],
    columns: toColumns("id name user_name scopes", EXPIRES_AT, "last_used_at"),
  }),
  command({
    name: "create",
    about: "Create a token for a program and print it once",
    options: {
      name: option.text("-n, --name <name>", "unique name", { required: true }),
      scopes: option.words("--scopes <scopes>", "comma-separated scopes, e.g. read:tasks,write:tasks", {
        completion: "scope",
        required: true,
      }),
      expiresIn: option.text("--expires-in <duration>", "lifetime, e.g. 12h, 30d or never", {
        default: "90d",
      }),
      tokenFile: TOKEN_FILE,
    },
    examples: [
      "token create --name ci --scopes read:tasks,write:tasks",
      "token create -n ci --scopes read:* --expires-in never --token-file ci.token",
    ],
    async run({ client, out, io, options: { name, scopes, expiresIn, tokenFile } }) {
      const expires_at = parseExpiry(expiresIn);
      const body = { name, scopes, ...(expires_at === undefined ? {} : { expires_at }) };
      const { json, value } = await saveToken(io, tokenFile, () => client.call("POST /api/tokens", { body }));
      out.object(json, value);
    },
  }),
  token.delete("Revoke a token immediately", "DELETE /api/tokens/:id", {
    loss: "Programs with this token lose access immediately.",
  }),
];

function parseExpiry(given: string | undefined): number | null | undefined {
  if (given === undefined) return undefined;
  if (given === "never") return null;
  const ms = parseDurationMs(given);
  if (ms === null) {
    throw usageError(`--expires-in: ${JSON.stringify(given)} is not a duration such as 12h or 30d, or never`);
  }
  return Date.now() + ms;
}
