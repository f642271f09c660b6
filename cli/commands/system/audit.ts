import { type AnyCommand, command, toFields } from "../command.ts";

const PAGE_SIZE = 100;

/** `svc ctl audit`: every change with its origin, as JSON lines, in a pipe as on a terminal (contract 9). */
export const auditCommand: AnyCommand = command({
  name: "audit",
  about: "Print who changed what, when, and from where, as JSON lines, oldest first",
  options: {
    after: { flags: "--after <seq>", about: "only what came behind this number", type: "int" },
    actor: {
      flags: "--actor <actors>",
      about: "by these, such as user:ada,token:ci",
      type: "text",
      multiple: true,
    },
    kind: {
      flags: "--kind <kinds>",
      completion: "event_kind",
      about: "of these kinds, such as user.created",
      type: "text",
      multiple: true,
    },
    from: { flags: "--from <ms>", about: "not before this time (Unix ms)", type: "int" },
    to: { flags: "--to <ms>", about: "not after this time (Unix ms)", type: "int" },
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
