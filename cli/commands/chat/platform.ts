import { EXIT, Exit } from "../../terminal/exit.ts";
import { field, type Row, timeField, toColumns } from "../../terminal/column.ts";
import { confirm } from "../../terminal/prompt.ts";
import { type AnyCommand, command, option } from "../command.ts";
import { requestCommand, resource } from "../resource.ts";

const platform = resource("platform", { arg: "name", example: "phone" });
const id = (_row: Row, [name = ""]: string[]) => name;

export const group: AnyCommand[] = [
  platform.list("List platforms, their connections and undelivered messages", "GET /api/platforms", {
    columns: toColumns("name kind", field("state"), timeField("since"), "waiting error"),
    id: (row) => String(row.name),
  }),
  platform.get("GET /api/platforms/:name", { id }),
  platform.verb("test", "Check the credentials of a platform", "POST /api/platforms/:name/test", {
    id,
    after(value) {
      if (!value.ok) throw new Exit(EXIT.awaitedFailed, value.detail);
    },
  }),
  platform.verb(
    "senders",
    "List the people who are allowed to write on a platform",
    "GET /api/platforms/:name/senders",
    {
      columns: toColumns(field("id"), "name paired_by created_at"),
    },
  ),
  command({
    name: "pair",
    about: "Allow a sender to write, by the pairing code that the sender got",
    args: ["code"],
    options: { yes: option.flag("--yes", "skip the confirmation") },
    examples: ["platform pair K7PX-2MRD"],
    async run({ client, out, io, note, options, args: [code = ""] }) {
      const { value: found } = await client.call("POST /api/platforms/pair", { body: { code } });
      const { platform, sender, name } = found;
      // A sender chooses the name, so the question quotes it.
      if (options.yes) note(`allowing ${sender} (${JSON.stringify(name)}) to write on ${platform}`);
      else if (
        !await confirm(io, `Allow ${sender} (${JSON.stringify(name)}) to write on ${platform}?`, "--yes")
      ) {
        throw new Exit(EXIT.declined, "Canceled. Changed nothing.");
      }
      const { json, value } = await client.call("POST /api/platforms/pair", { body: { code, sender } });
      out.object(json, value, sender);
    },
  }),
  requestCommand({
    name: "revoke",
    about: "Stop a paired person from writing on a platform",
    endpoint: "DELETE /api/platforms/:name/senders/:sender",
    args: ["name", "sender"],
    examples: ["platform revoke phone 12345"],
    id: (_row, [_name, sender = ""]) => sender,
  }),
];
