import { invalid } from "../../domain/call/error.ts";
import {
  hideServerSecrets,
  listServerSecrets,
  MCP_SERVERS_MAX,
  type McpPatch,
  type McpServer,
  type McpServers,
} from "../../domain/workers/mcp_server.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { checkNamedSecrets, requireScope, seesSecretNames } from "./worker_env.ts";

interface McpChange {
  /** Null for a new worker. */
  workerId: string | null;
  engine: string;
  runs_on: readonly string[];
  before: McpServers;
  patch: McpPatch;
  /** Prefix of field names in errors. */
  path?: string;
}

/** Returns the differences between the stored servers and those of a request, in which null removes a server. */
export function findMcpPatch(call: Call, before: McpServers, wanted: McpPatch): McpPatch {
  // A client may send back what GET returned.
  const shown = seesSecretNames(call) ? before : hideServerSecrets(before);
  const isEqual = (one: McpServer | null, other: McpServer | undefined) =>
    JSON.stringify(one) === JSON.stringify(other ?? null);
  return Object.fromEntries(
    Object.entries(wanted).filter(([name, server]) =>
      !isEqual(server, before[name]) && !isEqual(server, shown[name])
    ),
  );
}

/** Returns the patch that turns `before` into `wanted`. */
export function buildMcpPatch(before: McpServers, wanted: McpServers): McpPatch {
  const set = Object.entries(wanted).filter(([name, server]) =>
    JSON.stringify(before[name]) !== JSON.stringify(server)
  );
  const removed = Object.keys(before).filter((name) => wanted[name] === undefined);
  return { ...Object.fromEntries(removed.map((name) => [name, null])), ...Object.fromEntries(set) };
}

/** Returns the servers after a change. */
export function applyMcpPatch(before: McpServers, patch: McpPatch): McpServers {
  return Object.fromEntries(
    Object.entries({ ...before, ...patch }).filter((entry): entry is [string, McpServer] =>
      entry[1] !== null
    ),
  );
}

/**
 * Checks the MCP servers of a worker after a change. Throws `forbidden` for a caller who cannot set them (all runs), and
 * `invalid_request` for servers that the worker's engine cannot use, and for a secret that the worker may not use.
 */
export async function checkMcp(
  { db, engines }: Deps<"db" | "engines">,
  call: Call,
  { workerId, engine, runs_on, before, patch, path = "" }: McpChange,
): Promise<void> {
  const servers = applyMcpPatch(before, patch);
  const field = `${path}mcp`;
  if (Object.keys(patch).length > 0) requireScope(call, "write:commands", field);
  if (Object.keys(servers).length > MCP_SERVERS_MAX) {
    throw invalid(field, `must be at most ${MCP_SERVERS_MAX} servers`);
  }
  // Runners have their own engines, which are checked at the run.
  const fault = runs_on.length > 0 ? null : engines.find(engine)?.findServerFault(servers) ?? null;
  if (fault !== null) throw invalid(field, `cannot be given to its runs: ${fault}`);
  await checkNamedSecrets({ db }, call, { workerId, named: listServerSecrets(patch), field });
}
