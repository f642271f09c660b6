import { type Column, field, idField, timeField } from "../../terminal/column.ts";
import { type AnyCommand, command, type OptionSpec, toFields } from "../command.ts";
import { EXIT, Exit } from "../../terminal/exit.ts";
import { listCommand, pageOptions } from "../list.ts";

const COLUMNS: Column[] = [
  idField(),
  field("name"),
  field("url"),
  field("events"),
  field("enabled"),
  field("cursor"),
  field("disabled_reason"),
];
const DELIVERY_COLUMNS: Column[] = [
  idField(),
  field("seq"),
  field("kind"),
  field("attempt"),
  field("status"),
  field("error"),
  timeField("created_at"),
];
const WHICH = "id|name";
const URL_FLAG = "--url <url>";
const EVENTS = {
  flags: "--events <kinds>",
  about: "which events, such as execution.failed,task.*",
  type: "words",
} as const satisfies OptionSpec;

export const webhookCommands: AnyCommand[] = [
  listCommand({
    name: "list",
    about: "List webhooks, newest first",
    options: pageOptions(100),
    examples: ["webhook list"],
    endpoint: "GET /api/webhooks",
    columns: COLUMNS,
  }),
  command({
    name: "get",
    about: "Show a webhook",
    args: [WHICH],
    options: {},
    examples: ["webhook get ci"],
    async run({ client, out, args: [id_or_name = ""] }) {
      const { json, value } = await client.call("GET /api/webhooks/:id_or_name", { params: { id_or_name } });
      out.object(json, value);
    },
  }),
  command({
    name: "create",
    about: "Have events sent to an address, signed; the secret is shown once, here",
    options: {
      name: { flags: "-n, --name <name>", about: "its name; unique", type: "text", required: true },
      url: { flags: URL_FLAG, about: "where they go", type: "text", required: true },
      events: { ...EVENTS, required: true },
    },
    examples: ["webhook create -n ci --url https://example.org/hook --events execution.failed,task.*"],
    async run({ client, out, options: { name, url, events } }) {
      const { json, value } = await client.call("POST /api/webhooks", { body: { name, url, events } });
      out.object(json, value);
    },
  }),
  command({
    name: "update",
    about: "Change a webhook, or switch it on or off",
    args: [WHICH],
    options: {
      url: { flags: URL_FLAG, about: "where they go", type: "text" },
      events: EVENTS,
      enable: { flags: "--enable", about: "switch it on; it goes on where it was", type: "flag" },
      disable: { flags: "--disable", about: "switch it off", type: "flag" },
    },
    examples: ["webhook update ci --enable", "webhook update ci --events task.*"],
    async run({ client, out, options, args: [id_or_name = ""] }) {
      const { enable, disable, ...rest } = options;
      const enabled = enable ? { enabled: true } : disable ? { enabled: false } : {};
      const { json, value } = await client.call("PUT /api/webhooks/:id_or_name", {
        params: { id_or_name },
        body: { ...toFields(rest), ...enabled },
      });
      out.object(json, value);
    },
  }),
  command({
    name: "delete",
    about: "Delete a webhook",
    args: [WHICH],
    options: {},
    examples: ["webhook delete ci"],
    async run({ client, out, args: [id_or_name = ""] }) {
      const { json, value } = await client.call("DELETE /api/webhooks/:id_or_name", {
        params: { id_or_name },
      });
      out.object(json, value, id_or_name);
    },
  }),
  command({
    name: "test",
    about: "Send a test event now, and say how it went",
    args: [WHICH],
    options: {},
    examples: ["webhook test ci"],
    async run({ client, out, args: [id_or_name = ""] }) {
      const { json, value } = await client.call("POST /api/webhooks/:id_or_name/test", {
        params: { id_or_name },
      });
      out.object(json, value);
      if (value.error !== "") throw new Exit(EXIT.awaitedFailed, value.error);
    },
  }),
  command({
    name: "deliveries",
    about: "List the tries of a webhook, newest first",
    args: [WHICH],
    options: pageOptions(100),
    examples: ["webhook deliveries ci"],
    async run({ client, out, options, args: [id_or_name = ""] }) {
      const { json, value } = await client.call("GET /api/webhooks/:id_or_name/deliveries", {
        params: { id_or_name },
        query: toFields(options),
      });
      await out.list(json, value, DELIVERY_COLUMNS);
    },
  }),
  command({
    name: "replay",
    about: "Deliver everything behind an event again, with the same ids",
    args: [WHICH],
    options: {
      after: { flags: "--after <seq>", about: "the number of that event", type: "int", required: true },
    },
    examples: ["webhook replay ci --after 1200"],
    async run({ client, out, options: { after }, args: [id_or_name = ""] }) {
      const { json, value } = await client.call("POST /api/webhooks/:id_or_name/replay", {
        params: { id_or_name },
        body: { after },
      });
      out.object(json, value);
    },
  }),
];
