import type { Api } from "../../../src/http/app.ts";
import { notFound } from "../../../src/domain/call/error.ts";
import { INBOX_KINDS } from "../../../src/domain/call/vocabulary.ts";
import { timeField, toColumns } from "../../terminal/column.ts";
import { usageError } from "../../terminal/exit.ts";
import { type AnyCommand, command, option } from "../command.ts";
import { requestCommand } from "../resource.ts";

type InboxItem = Api["GET /api/inbox"]["response"][number];

const SINCE = option.time(
  "--since <time>",
  "failures since this time, e.g. -7d; the last 24 hours by default",
);

export const group: AnyCommand[] = [
  requestCommand({
    name: "list",
    isDefault: true,
    about: "List everything that needs a person, such as questions and failures",
    endpoint: "GET /api/inbox",
    columns: toColumns("id kind", timeField("at"), "worker_name title detail"),
    options: { since: SINCE },
    examples: ["inbox", "inbox list --since -7d"],
  }),
  command({
    name: "dismiss",
    about: "Dismiss failures, or snooze any item with --until",
    args: ["[id]"],
    options: {
      kind: option.text("--kind <kind>", "all items of this kind, instead of an ID", {
        choices: INBOX_KINDS,
      }),
      until: option.time("--until <time>", "hide until this time, e.g. +2h"),
      since: SINCE,
    },
    examples: [
      "inbox dismiss --kind run_failed",
      "inbox dismiss --kind worker_paused --until +2h",
    ],
    async run({ client, out, args: [ref], options: { kind, until, since } }) {
      if ((ref === undefined) === (kind === undefined)) {
        throw usageError("inbox dismiss needs an ID or --kind. Run `svc ctl inbox` for the items.");
      }
      const { value } = await client.call("GET /api/inbox", { query: { since } });
      const items = value.filter((item) => ref === undefined ? item.kind === kind : matchItem(item, ref));
      if (ref !== undefined && items.length === 0) throw notFound("inbox item", ref);
      if (ref !== undefined && items.length > 1) {
        throw usageError(`${JSON.stringify(ref)} matches several items. Use a whole ID.`);
      }
      for (const { kind, id } of items) {
        const body = until === undefined ? {} : { until };
        const { json, value } = await client.call("POST /api/inbox/:kind/:id/dismiss", {
          params: { kind, id },
          body,
        });
        out.object(json, value);
      }
    },
  }),
];

function matchItem({ id }: InboxItem, ref: string): boolean {
  const ending = ref.replace(/^…/, "").toLowerCase();
  return id === ref || ending.length >= 6 && id.endsWith(ending);
}
