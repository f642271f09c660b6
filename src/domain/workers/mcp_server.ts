// The MCP servers of a worker: the tools that its runs get next to those of the service (contract 27).
import { z } from "zod";
import { readSecretReference } from "../account/secret.ts";
import { text } from "../call/field.ts";
import { hideReference, variableName, variableValue, WORKER_ENV_MAX } from "./worker_env.ts";

/** MCP servers of one worker. */
export const MCP_SERVERS_MAX = 20;
/** The program of an MCP server with its arguments. */
const MCP_WORDS_MAX = 64;
const MCP_WORD_MAX_BYTES = 4_000;
const MCP_URL_MAX_BYTES = 4_000;
const MCP_HEADERS_MAX = 32;
const MCP_HEADER_MAX_BYTES = 8_000;

const SERVER_NAME = /^[a-z][a-z0-9_]{0,30}$/;
/** The name of the service's own server. */
const OWN_NAME = "svc";

const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/;
// The engine and HTTP set these headers.
const FIXED_HEADERS =
  /^(host|connection|content-length|content-type|accept|transfer-encoding|expect|upgrade|te|trailer|mcp-.*)$/i;
// deno-lint-ignore no-control-regex -- control characters end a header
const CONTROL = /[\x00-\x08\x0a-\x1f\x7f]/;

/** Whether a text has a character that ends a header. */
export function hasControl(value: string): boolean {
  return CONTROL.test(value);
}

const serverName = z.string().regex(SERVER_NAME, {
  error: "must be at most 31 lower-case letters, digits and _, and start with a letter",
}).refine((name) => name !== OWN_NAME, { error: "is the name of the service's own tools" });

const word = text(MCP_WORD_MAX_BYTES).refine((value) => !value.includes("\0"), {
  error: "must not contain NUL",
}).refine((value) => readSecretReference(value) === null, {
  error: "cannot be a secret, because other processes see arguments. Use env",
});

const program = word.refine((value) => /^(\/.+|[^-/][^/]*)$/s.test(value), {
  error: "must be the name of a program on PATH, or an absolute path",
});

const commandWords = z.array(word).min(1).max(MCP_WORDS_MAX).superRefine(([first = ""], context) => {
  const fault = program.safeParse(first).error?.issues[0];
  if (fault !== undefined) context.addIssue({ code: "custom", path: [0], message: fault.message });
}).meta({ description: "program with its arguments", examples: [["npx", "-y", "@example/server"]] });

const serverUrl = text(MCP_URL_MAX_BYTES).refine((value) => {
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
}, { error: "must be a URL that starts with https:// or http://, without a user" });

const headerValue = text(MCP_HEADER_MAX_BYTES).refine((value) => !hasControl(value), {
  error: "must not contain control characters",
}).pipe(variableValue);

const headers = z.record(z.string(), headerValue)
  .refine((all) => Object.keys(all).length <= MCP_HEADERS_MAX, {
    error: `must be at most ${MCP_HEADERS_MAX} headers`,
  })
  .superRefine((all, context) => {
    for (const name of Object.keys(all)) {
      const message = !HEADER_NAME.test(name)
        ? "is not the name of a header"
        : FIXED_HEADERS.test(name)
        ? "is reserved: the engine sets it"
        : null;
      if (message !== null) context.addIssue({ code: "custom", path: [name], message });
    }
  });

// Names of variables are free here except for those that decide which code loads and how a run reaches the service.
const serverEnv = z.record(variableName, variableValue)
  .refine((env) => Object.keys(env).length <= WORKER_ENV_MAX, {
    error: `must be at most ${WORKER_ENV_MAX} variables`,
  })
  .superRefine((env, context) => {
    for (const name of Object.keys(env)) {
      if (/^SVC_/i.test(name)) {
        context.addIssue({ code: "custom", path: [name], message: "is reserved: the service sets it" });
      }
    }
  });

const commandServer = z.strictObject({
  command: commandWords,
  env: serverEnv.default({}).meta({ description: "more variables: text, or secret:<name>" }),
});

const urlServer = z.strictObject({
  url: serverUrl.meta({ description: "address of an MCP server over streamable HTTP" }),
  headers: headers.default({}).meta({ description: "headers of each request: text, or secret:<name>" }),
});

// Without the discriminating key, an error would name both forms.
const server = z.union([commandServer, urlServer]);
export type McpServer = z.output<typeof server>;

/** The MCP servers of a worker, by name. */
export type McpServers = Record<string, McpServer>;

const LIMIT = { error: `must be at most ${MCP_SERVERS_MAX} servers` };

export const mcpServersSchema = z.record(serverName, server)
  .refine((all) => Object.keys(all).length <= MCP_SERVERS_MAX, LIMIT)
  .meta({ description: "MCP servers whose tools its runs get, by name" });

/** A change of MCP servers. A server is replaced as a whole. */
export const mcpServersPatchSchema = z.record(serverName, server.nullable())
  .refine((all) => Object.keys(all).length <= 2 * MCP_SERVERS_MAX, LIMIT)
  .meta({ description: "MCP servers to set; null removes one, and others stay unchanged" });

/** A change of MCP servers: null removes one. */
export type McpPatch = Record<string, McpServer | null>;

/** Returns the values of a server that may be secrets, by the name of the variable or the header. */
export function getServerValues(server: McpServer): Record<string, string> {
  return "command" in server ? server.env : server.headers;
}

/** Returns the server with each value replaced. */
export function mapServerValues(server: McpServer, map: (value: string) => string): McpServer {
  const mapped = Object.fromEntries(
    Object.entries(getServerValues(server)).map(([name, value]) => [name, map(value)]),
  );
  return "command" in server ? { ...server, env: mapped } : { ...server, headers: mapped };
}

/** Returns a fault when an engine would replace a part of the address or of a header by something else. */
export function findReplacedText(server: McpServer, pattern: RegExp, shown: string): string | null {
  const texts = "url" in server ? [server.url, ...Object.values(server.headers)] : [];
  return texts.some((one) => pattern.test(one))
    ? `replaces ${shown} in the address and the headers of an MCP server`
    : null;
}

/** Lists the secrets that servers name. */
export function listServerSecrets(servers: McpServers | McpPatch): string[] {
  const values = Object.values(servers).flatMap((one) =>
    one === null ? [] : Object.values(getServerValues(one))
  );
  return [...new Set(values.flatMap((value) => readSecretReference(value) ?? []))];
}

/** Hides the names of secrets. */
export function hideServerSecrets(servers: McpServers): McpServers {
  return Object.fromEntries(
    Object.entries(servers).map(([name, one]) => [name, mapServerValues(one, hideReference)]),
  );
}
