import type { Client } from "../../client/client.ts";
import { field, timeField } from "../../terminal/column.ts";
import { type AnyCommand, command, type OptionSpec } from "../command.ts";

const SCOPE = {
  flags: "--scope <scope>",
  completion: "memory_scope",
  about: "global, or a session key such as local:<session id>",
  type: "text",
  required: true,
} as const satisfies OptionSpec;
const KEY = {
  flags: "--key <key>",
  completion: "memory_key",
  about: "the entry",
  type: "text",
  required: true,
} as const satisfies OptionSpec;

const COLUMNS = [field("key"), field("value"), timeField("updated_at")];

export const memoryCommands: AnyCommand[] = [
  command({
    name: "get",
    about: "Show an entry, or all entries of a scope",
    options: {
      scope: SCOPE,
      key: { flags: "--key <key>", completion: "memory_key", about: "only this entry", type: "text" },
    },
    examples: ["memory get --scope global", "memory get --scope global --key tone"],
    async run({ client, out, options: { scope, key } }) {
      if (key === undefined) {
        const { json, entries } = await readAll(client, scope);
        return await out.list(json, entries, COLUMNS, (row) => String(row.key));
      }
      const { json, value } = await client.call("GET /api/memory/entry", { query: { scope, key } });
      // In a pipe the bare value, so that $(…) gets just that (contract 6).
      if (out.format === "tsv") out.line(value.value);
      else out.object(json, value, value.key);
    },
  }),
  command({
    name: "save",
    about: "Save or replace an entry",
    options: {
      scope: SCOPE,
      key: KEY,
      value: {
        flags: "--value <text>",
        about: "what to remember",
        type: "text",
        required: true,
        allowEmpty: true,
      },
    },
    examples: ["memory save --scope global --key tone --value 'friendly, short'"],
    async run({ client, out, options }) {
      const { json, value } = await client.call("PUT /api/memory/entry", { body: options });
      out.object(json, value, value.key);
    },
  }),
  command({
    name: "delete",
    about: "Delete an entry",
    options: { scope: SCOPE, key: KEY },
    examples: ["memory delete --scope global --key tone"],
    async run({ client, out, options }) {
      const { json, value } = await client.call("DELETE /api/memory/entry", { query: options });
      out.object(json, value, options.key);
    },
  }),
];

// All entries of a scope are wanted, however many pages that takes (interface 4.2, memory get).
async function readAll(client: Client, scope: string) {
  const pages: string[] = [];
  const entries = [];
  let cursor: string | undefined;
  do {
    const query = { scope, page_size: 100, cursor };
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
