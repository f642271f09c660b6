import { field, toColumns } from "../../terminal/column.ts";
import { EXIT, Exit } from "../../terminal/exit.ts";
import { type AnyCommand, option, toFields } from "../command.ts";
import { pageOptions, resource } from "../resource.ts";

const webhook = resource("webhook", { arg: "id|name", ref: "webhook", example: "ci" });

const URL_OPTION = option.text("--url <url>", "address that receives the events");
const EVENTS = option.words("--events <kinds>", "comma-separated event kinds, e.g. execution.failed,task.*");

export const group: AnyCommand[] = [
  webhook.list("List webhooks, newest first", "GET /api/webhooks", {
    options: pageOptions(100),
    columns: toColumns("id name url events enabled cursor disabled_reason"),
  }),
  webhook.get("GET /api/webhooks/:id_or_name"),
  webhook.create("Create a signed webhook and print its secret once", "POST /api/webhooks", {
    options: {
      name: option.text("-n, --name <name>", "unique name", { required: true }),
      url: { ...URL_OPTION, required: true },
      events: { ...EVENTS, required: true },
    },
    examples: ["webhook create -n ci --url https://example.org/hook --events execution.failed,task.*"],
  }),
  webhook.verb("update", "Change, enable or disable a webhook", "PUT /api/webhooks/:id_or_name", {
    options: {
      url: URL_OPTION,
      events: EVENTS,
      enable: option.flag("--enable", "enable and continue after the last delivered event"),
      disable: option.flag("--disable", "disable"),
    },
    examples: ["webhook update ci --enable", "webhook update ci --events task.*"],
    input: ({ enable, disable, ...rest }) => ({
      ...toFields(rest),
      ...(enable ? { enabled: true } : disable ? { enabled: false } : {}),
    }),
  }),
  webhook.delete("Delete a webhook", "DELETE /api/webhooks/:id_or_name", {
    loss: "Its secret and its delivery history are lost.",
  }),
  webhook.verb("test", "Send a test event and show the result", "POST /api/webhooks/:id_or_name/test", {
    after(value) {
      if (value.error !== "") throw new Exit(EXIT.awaitedFailed, value.error);
    },
  }),
  webhook.verb(
    "deliveries",
    "List delivery attempts of a webhook, newest first",
    "GET /api/webhooks/:id_or_name/deliveries",
    {
      options: pageOptions(100),
      columns: toColumns("id seq kind attempt", field("status"), "error created_at"),
    },
  ),
  webhook.verb(
    "replay",
    "Deliver all events after a sequence number again, with the same IDs",
    "POST /api/webhooks/:id_or_name/replay",
    {
      options: { after: option.int("--after <seq>", "sequence number of the event", { required: true }) },
      examples: ["webhook replay ci --after 1200"],
    },
  ),
];
