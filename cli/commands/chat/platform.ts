import { type Column, field, timeField } from "../../terminal/column.ts";
import { type AnyCommand, command } from "../command.ts";
import { EXIT, Exit } from "../../terminal/exit.ts";
import { listCommand } from "../list.ts";
import { confirm } from "../../terminal/prompt.ts";

const COLUMNS: Column[] = [
  field("name"),
  field("kind"),
  field("state"),
  timeField("since"),
  field("waiting"),
  field("error"),
];
const SENDER_COLUMNS: Column[] = [field("id"), field("name"), field("paired_by"), timeField("created_at")];
const YES = { flags: "--yes", about: "do not ask", type: "flag" } as const;

export const platformCommands: AnyCommand[] = [
  listCommand({
    name: "list",
    about: "List the platforms, their connections and what waits for them",
    options: {},
    examples: ["platform list"],
    endpoint: "GET /api/platforms",
    columns: COLUMNS,
    id: (row) => String(row.name),
  }),
  command({
    name: "get",
    about: "Show a platform",
    args: ["name"],
    options: {},
    examples: ["platform get phone"],
    async run({ client, out, args: [name = ""] }) {
      const { json, value } = await client.call("GET /api/platforms/:name", { params: { name } });
      out.object(json, value, name);
    },
  }),
  command({
    name: "test",
    about: "Ask a platform whether its key counts",
    args: ["name"],
    options: {},
    examples: ["platform test phone"],
    async run({ client, out, args: [name = ""] }) {
      const { json, value } = await client.call("POST /api/platforms/:name/test", {
        params: { name },
      });
      out.object(json, value, name);
      if (!value.ok) throw new Exit(EXIT.awaitedFailed, value.detail);
    },
  }),
  command({
    name: "senders",
    about: "List who was paired on a platform",
    args: ["name"],
    options: {},
    examples: ["platform senders phone"],
    async run({ client, out, args: [name = ""] }) {
      const { json, value } = await client.call("GET /api/platforms/:name/senders", { params: { name } });
      await out.list(json, value, SENDER_COLUMNS);
    },
  }),
  command({
    name: "pair",
    about: "Let the person in who was given this code; shows who it is and asks",
    args: ["code"],
    options: { yes: YES },
    examples: ["platform pair K7PX-2MRD"],
    async run({ client, out, io, note, options, args: [code = ""] }) {
      const { value: found } = await client.call("POST /api/platforms/pair", { body: { code } });
      const { platform, sender, name } = found;
      // Anybody can choose any name, so it is shown as what it is.
      const question = `Let ${sender} speak on ${platform}? They call themselves ${JSON.stringify(name)}.`;
      if (options.yes) note(question.replace(/^Let (.*) speak on (.*?)\? /, "$1 may speak on $2. "));
      else if (!await confirm(io, question)) throw new Exit(EXIT.declined, "nobody was let in");
      const { json, value } = await client.call("POST /api/platforms/pair", { body: { code, sender } });
      out.object(json, value, sender);
    },
  }),
  command({
    name: "revoke",
    about: "Take the right to speak from somebody who was paired",
    args: ["name", "sender"],
    options: {},
    examples: ["platform revoke phone 12345"],
    async run({ client, out, args: [name = "", sender = ""] }) {
      const { json, value } = await client.call("DELETE /api/platforms/:name/senders/:sender", {
        params: { name, sender },
      });
      out.object(json, value, sender);
    },
  }),
];
