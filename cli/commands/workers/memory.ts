import type { Client } from "../../client/client.ts";
import { usageError } from "../../terminal/exit.ts";
import { toColumns } from "../../terminal/column.ts";
import { type AnyCommand, command, option } from "../command.ts";
import { confirmLoss, requestCommand, YES } from "../resource.ts";

const SCOPE = option.text("--scope <scope>", "global, or a session key such as local:<session id>", {
  completion: "memory_scope",
  required: true,
});
const KEY = option.text("--key <key>", "key of the entry", { completion: "memory_key", required: true });

export const group: AnyCommand[] = [
  command({
    name: "get",
    about: "Show an entry, or all entries of a scope",
    options: {
      scope: SCOPE,
      key: option.text("--key <key>", "show only this entry", { completion: "memory_key" }),
      text: option.text("--text <text>", "show only entries with this text in the key or the value"),
    },
    examples: ["memory get --scope global", "memory get --scope global --key tone"],
    async run({ client, out, options: { scope, key, text } }) {
      if (key !== undefined && text !== undefined) {
        throw usageError("--key and --text cannot be used together");
      }
      if (key === undefined) {
        const { json, entries } = await readAll(client, scope, text);
        return await out.list(
          json,
          entries,
          toColumns("key value updated_at"),
          (row) => String(row.key),
        );
      }
      const { json, value } = await client.call("GET /api/memory/entry", { query: { scope, key } });
      // A pipe gets the bare value, for $(…) (contract 6).
      if (out.format === "tsv") out.line(value.value);
      else out.object(json, value, value.key);
    },
  }),
  requestCommand({
    name: "save",
    about: "Create or replace an entry",
    endpoint: "PUT /api/memory/entry",
    options: {
      scope: SCOPE,
      key: KEY,
      value: option.text("--value <text>", "text to remember", { required: true, allowEmpty: true }),
    },
    examples: ["memory save --scope global --key tone --value 'friendly, short'"],
    id: (row) => String(row.key),
  }),
  command({
    name: "delete",
    about: "Delete an entry",
    options: { scope: SCOPE, key: KEY, yes: YES },
    examples: ["memory delete --scope global --key tone"],
    async run({ client, out, options: { yes, ...query }, io }) {
      if (!yes) await confirmLoss({ io }, `Delete the memory entry ${query.key} of ${query.scope}?`);
      const { json, value } = await client.call("DELETE /api/memory/entry", { query });
      out.object(json, value, query.key);
    },
  }),
];

// Reads every page of a scope (interface 4.2, memory get).
async function readAll(client: Client, scope: string, text: string | undefined) {
  const pages: string[] = [];
  const entries = [];
  let cursor: string | undefined;
  do {
    const query = { scope, text, page_size: 100, cursor };
    const { json, value, headers } = await client.call("GET /api/memory", { query });
    pages.push(json.slice(1, -1));
    entries.push(...value);
    const link = /<([^>]+)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
    cursor = link === undefined
      ? undefined
      : new URLSearchParams(link.split("?")[1]).get("cursor") ?? undefined;
  } while (cursor !== undefined);
  return { json: `[${pages.filter((page) => page !== "").join(",")}]`, entries };
}
