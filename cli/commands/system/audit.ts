import { type AnyCommand, command, option, toFields } from "../command.ts";
import { ACTOR, AFTER } from "./events.ts";

const PAGE_SIZE = 100;

/** `svc ctl audit`: prints every change as a JSON line, in a pipe and on a terminal (contract 9). */
export const group: AnyCommand = command({
  name: "audit",
  about: "Print every change with its actor and origin as JSON lines, oldest first",
  options: {
    after: AFTER,
    actor: ACTOR,
    kind: option.text("--kind <kinds>", "filter by event kind, e.g. user.created", {
      completion: "event_kind",
      multiple: true,
    }),
    from: option.int("--from <ms>", "at or after this time (Unix ms)"),
    to: option.int("--to <ms>", "at or before this time (Unix ms)"),
  },
  examples: ["audit > audit.jsonl", "audit --actor user:ada --from 1767225600000"],
  async run({ client, out, options }) {
    let after: number | undefined = options.after;
    while (true) {
      const query = { ...toFields(options), page_size: PAGE_SIZE, ...(after === undefined ? {} : { after }) };
      const { value, headers } = await client.call("GET /api/audit", { query });
      for (const entry of value) out.line(out.format === "ids" ? String(entry.seq) : JSON.stringify(entry));
      const last = value.at(-1);
      if (headers.get("link") === null || last === undefined) return;
      after = last.seq;
    }
  },
});
