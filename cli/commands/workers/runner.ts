import { statusField, toColumns } from "../../terminal/column.ts";
import { type AnyCommand, command, option, toFields } from "../command.ts";
import { pageOptions, resource } from "../resource.ts";
import { saveToken, TOKEN_FILE } from "../../client/token_file.ts";

const runner = resource("runner", { arg: "id|name", ref: "runner", example: "mac1" });

export const group: AnyCommand[] = [
  command({
    name: "add",
    about: "Add a runner and print its token once",
    args: ["name"],
    options: {
      labels: option.words("--labels <labels>", "comma-separated labels that workers select with --runs-on"),
      allowAdmin: option.flag(
        "--allow-admin",
        "run workers with the scope *:*; gives the runner full access",
      ),
      secrets: option.flag("--secrets", "send it the stored secrets that workers name in their variables"),
      tokenFile: TOKEN_FILE,
    },
    examples: ["runner add mac1 --labels macos,gpu", "runner add mac2 --token-file mac2.token"],
    async run({ client, out, io, args: [name = ""], options: { tokenFile, ...rest } }) {
      const add = () => client.call("POST /api/runners", { body: { name, ...toFields(rest) } });
      const { json, value } = await saveToken(io, tokenFile, add);
      out.object(json, value);
    },
  }),
  runner.list("List runners, newest first", "GET /api/runners", {
    options: pageOptions(100),
    columns: toColumns(
      "id name labels",
      statusField("state"),
      "running max_runs engines version last_seen_at",
    ),
  }),
  runner.get("GET /api/runners/:id_or_name"),
  runner.verb(
    "drain",
    "Stop sending runs to a runner. Active runs finish",
    "POST /api/runners/:id_or_name/drain",
    {
      options: { undo: option.flag("--undo", "send runs again") },
      examples: ["runner drain mac1", "runner drain mac1 --undo"],
      input: ({ undo }) => ({ draining: undo !== true }),
    },
  ),
  runner.delete(
    "Remove a runner and its token. Its runs are lost when their leases expire",
    "DELETE /api/runners/:id_or_name",
    { name: "remove", loss: "Its token stops working and its active runs are lost." },
  ),
];
