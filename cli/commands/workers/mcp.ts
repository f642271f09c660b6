import type { Api } from "../../../src/http/app.ts";
import { toColumns } from "../../terminal/column.ts";
import { EXIT, Exit, usageError } from "../../terminal/exit.ts";
import { type AnyCommand, command, option } from "../command.ts";
import { confirmLoss, YES } from "../resource.ts";

type Server = Api["GET /api/workers/:id"]["response"]["mcp"][string];

const REFS = { worker: "worker" } as const;

export const group: AnyCommand[] = [
  command({
    name: "list",
    about: "List the MCP servers of a worker",
    args: ["worker"],
    refs: REFS,
    examples: ["mcp list Ada"],
    async run({ client, out, args: [id = ""] }) {
      const { mcp } = (await client.call("GET /api/workers/:id", { params: { id } })).value;
      const rows = Object.entries(mcp).map(([name, server]) => ({ name, ...server }));
      const shown = rows.map((row) => ({ name: row.name, ...describeServer(row) }));
      await out.list(
        JSON.stringify(rows),
        shown,
        toColumns("name kind target secrets"),
        ({ name }) => `${name}`,
      );
    },
  }),
  command({
    name: "add",
    about: "Give a worker an MCP server, or replace the one of this name",
    args: ["worker", "name", "[command...]"],
    refs: REFS,
    options: {
      url: option.text("--url <url>", "address of a server over HTTP, instead of a command"),
      env: option.list("--env <name=value>", "variable of the command, or name=secret:<secret>"),
      header: option.list("--header <name=value>", "header for --url, or name=secret:<secret>"),
    },
    examples: [
      "mcp add Ada files -- mcp-server-filesystem /srv/files",
      "mcp add Ada tracker --env TRACKER_TOKEN=secret:tracker-token -- npx -y @example/tracker",
      "mcp add Ada docs --url https://mcp.example.org/mcp --header Authorization=secret:docs-header",
    ],
    async run({ client, out, args: [id = "", name = "", ...words], options: { url, env, header } }) {
      const server = buildServer(words, url, { env, header });
      const { json, value } = await client.call("PUT /api/workers/:id", {
        params: { id },
        body: { mcp: { [name]: server } },
      });
      out.object(json, value, id);
    },
  }),
  command({
    name: "remove",
    about: "Remove an MCP server from a worker",
    args: ["worker", "name"],
    refs: REFS,
    options: { yes: YES },
    examples: ["mcp remove Ada files"],
    async run(context) {
      const { client, out, args: [id = "", name = ""], typed: [worker], options: { yes } } = context;
      const { mcp } = (await client.call("GET /api/workers/:id", { params: { id } })).value;
      if (!Object.hasOwn(mcp, name)) {
        const known = Object.keys(mcp).join(", ") || "none";
        throw new Exit(
          EXIT.notFound,
          `Cannot remove: ${worker} has no MCP server ${name}. Its servers: ${known}.`,
        );
      }
      if (!yes) await confirmLoss(context, `Remove the MCP server ${name} from ${worker}?`);
      const { json, value } = await client.call("PUT /api/workers/:id", {
        params: { id },
        body: { mcp: { [name]: null } },
      });
      out.object(json, value, id);
    },
  }),
];

function describeServer(server: Server) {
  const values = "command" in server ? server.env : server.headers;
  const secrets = Object.entries(values).filter(([, value]) => value.startsWith("secret:"))
    .map(([name]) => name).join(",");
  return "command" in server
    ? { kind: "command", target: server.command.join(" "), secrets }
    : { kind: "url", target: server.url, secrets };
}

function buildServer(
  words: string[],
  url: string | undefined,
  { env, header }: { env: string[] | undefined; header: string[] | undefined },
): Server {
  if (url === undefined) {
    if (words.length === 0) throw usageError("a server needs a command after --, or --url");
    if (header !== undefined) throw usageError("--header needs --url. A command has --env");
    return { command: words, env: parsePairs(env, "--env") };
  }
  if (words.length > 0) throw usageError("--url cannot be used with a command");
  if (env !== undefined) throw usageError("--env needs a command. A server with --url has --header");
  return { url, headers: parsePairs(header, "--header") };
}

function parsePairs(given: string[] | undefined, flag: string): Record<string, string> {
  return Object.fromEntries((given ?? []).map((one): [string, string] => {
    const at = one.indexOf("=");
    // Does not repeat the text, which may be a value.
    if (at < 1) throw usageError(`${flag} must have the form NAME=VALUE or NAME=secret:<secret>`);
    return [one.slice(0, at), one.slice(at + 1)];
  }));
}
