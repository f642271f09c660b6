import { type Column, field, idField, statusField, timeField } from "../../terminal/column.ts";
import { type AnyCommand, command, toFields } from "../command.ts";
import { listCommand, pageOptions } from "../list.ts";
import { saveToken } from "../../client/token_file.ts";

const COLUMNS: Column[] = [
  idField(),
  field("name"),
  field("labels"),
  statusField("state"),
  field("running"),
  field("max_runs"),
  field("engines"),
  field("version"),
  timeField("last_seen_at"),
];

const WHO = "id|name";

export const runnerCommands: AnyCommand[] = [
  command({
    name: "add",
    about: "Add a machine that runs workers, and print its token, once",
    args: ["name"],
    options: {
      labels: {
        flags: "--labels <labels>",
        about: "what it has, comma-separated, such as macos,gpu; workers ask for it with --runs-on",
        type: "words",
      },
      allowAdmin: {
        flags: "--allow-admin",
        about: "it may run workers that hold *:*, so whoever owns it may do everything",
        type: "flag",
      },
      tokenFile: {
        flags: "--token-file <path>",
        about: "write the token to this new file, which only you may read, and do not show it",
        type: "text",
      },
    },
    examples: ["runner add mac1 --labels macos,gpu", "runner add mac2 --token-file mac2.token"],
    async run({ client, out, io, args: [name = ""], options: { tokenFile, ...rest } }) {
      const add = () => client.call("POST /api/runners", { body: { name, ...toFields(rest) } });
      const { json, value } = await saveToken(io, tokenFile, add);
      out.object(json, value);
    },
  }),
  listCommand({
    name: "list",
    about: "List the other machines that run workers, newest first",
    options: pageOptions(100),
    examples: ["runner list"],
    endpoint: "GET /api/runners",
    columns: COLUMNS,
  }),
  command({
    name: "get",
    about: "Show a runner",
    args: [WHO],
    options: {},
    examples: ["runner get mac1"],
    async run({ client, out, args: [who = ""] }) {
      const params = { id_or_name: who };
      const { json, value } = await client.call("GET /api/runners/:id_or_name", { params });
      out.object(json, value);
    },
  }),
  command({
    name: "drain",
    about: "Give a runner no more runs; those that it has may end",
    args: [WHO],
    options: { undo: { flags: "--undo", about: "give it runs again", type: "flag" } },
    examples: ["runner drain mac1", "runner drain mac1 --undo"],
    async run({ client, out, args: [who = ""], options: { undo } }) {
      const { json, value } = await client.call("POST /api/runners/:id_or_name/drain", {
        params: { id_or_name: who },
        body: { draining: undo !== true },
      });
      out.object(json, value);
    },
  }),
  command({
    name: "remove",
    about: "Remove a runner: its token counts no longer, and its runs are lost when their leases are over",
    args: [WHO],
    options: {},
    examples: ["runner remove mac1"],
    async run({ client, out, args: [who = ""] }) {
      const { json, value } = await client.call("DELETE /api/runners/:id_or_name", {
        params: { id_or_name: who },
      });
      out.object(json, value, who);
    },
  }),
];
