import { toColumns } from "../../terminal/column.ts";
import { type AnyCommand, type Context, option, toFields } from "../command.ts";
import { requestCommand, WORKER_ID } from "../resource.ts";

const KINDS = ["messages", "results", "memory"] as const;

/** `svc ctl search <words>`. */
export const group: AnyCommand = requestCommand({
  name: "search",
  about: "Search messages, results of runs and memory, newest first",
  endpoint: "GET /api/search",
  args: ["words..."],
  options: {
    in: option.text("--in <kinds>", "only messages, results or memory", { choices: KINDS, multiple: true }),
    workerId: WORKER_ID,
    sessionKey: option.text("--session, --session-key <key>", "filter by conversation", {
      completion: "session_key",
    }),
    since: option.time("--since <time>", "at or after this time, e.g. 2026-11-01 or 24h"),
    cursor: option.text(
      "--cursor <id>",
      "continue after this place, which the previous page prints on stderr",
    ),
  },
  columns: toColumns("at kind id session_key worker_id excerpt"),
  examples: ["search invoice", "search nightly build --in results --since 7d", "search deploy --json"],
  input: (options, { args }) => ({ q: args.join(" "), ...toFields(options) }),
  after: printWarning,
});

function printWarning(_value: unknown, { note }: Context, headers: Headers): void {
  const words = /^299 \S+ "(.*)"$/.exec(headers.get("warning") ?? "")?.[1];
  if (words !== undefined) note(`svc: ${words}`);
}
