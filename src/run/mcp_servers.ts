// Prepares the MCP servers of a worker for a run.
import { exists, isWithin } from "../base/paths.ts";
import {
  getServerValues,
  mapServerValues,
  type McpServer,
  type McpServers,
} from "../domain/workers/mcp_server.ts";
import { isHostListed, OUTSIDE_PORTS } from "../domain/workers/network.ts";
import type { RunServer } from "../engine/protocol/adapter.ts";
import type { Box } from "../engine/process/box.ts";
import { findProgram, SpawnError } from "../engine/process/process.ts";
import { findProgramFiles } from "../engine/process/program_files.ts";

/** MCP servers whose secrets are replaced by their values. */
export interface ResolvedServers {
  servers: McpServers;
  /** The values of the secrets. */
  secrets: string[];
}

export const NO_SERVERS: ResolvedServers = { servers: {}, secrets: [] };

/** Moves the values of servers to variables of the run, because arguments and files must not have them. */
export function placeServerValues(
  servers: McpServers,
): { servers: RunServer[]; env: Record<string, string> } {
  const env: Record<string, string> = {};
  const place = (value: string) => {
    const name = `SVC_MCP_${Object.keys(env).length + 1}`;
    env[name] = value;
    return name;
  };
  const placed = Object.entries(servers).sort().map(([name, server]): RunServer => ({
    name,
    ...mapServerValues(server, place),
  }));
  return { servers: placed, env };
}

// An engine would continue without the tools of a server that it cannot start.
/**
 * Returns the box of a run with the programs of its MCP servers. Throws SpawnError with `failure: setup` for a server that the run cannot
 * start or reach.
 */
export function addServerPrograms(servers: readonly RunServer[], box: Box | null, path: string): Box | null {
  return servers.reduce<Box | null>((found, server) => {
    try {
      if ("url" in server) return checkHost(server.url, found);
      return addProgram(server.command, found, path);
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error);
      throw new SpawnError(`the MCP server ${server.name} cannot be used: ${words}`, "setup");
    }
  }, box);
}

function checkHost(url: string, box: Box | null): Box | null {
  if (box === null || box.network === "host") return box;
  const { hostname, port } = new URL(url);
  if (port !== "" && !OUTSIDE_PORTS.includes(Number(port))) {
    throw new Error(`its box reaches no port but ${OUTSIDE_PORTS.join(" and ")}.`);
  }
  if (!isHostListed(box.network.hosts, hostname)) {
    throw new Error(`its box cannot reach ${hostname}. Add it to the network of the worker's box.`);
  }
  return box;
}

// The operator names the program, so it is visible like the engine's.
function addProgram([program = "", ...args]: readonly string[], box: Box | null, path: string): Box | null {
  const command = findProgram(program, path);
  if (box === null) return null;
  const { read, links } = isWithin(command, box.workDir)
    ? { read: [], links: [] }
    : findProgramFiles(command, path);
  const added = { ...box, read: [...box.read, ...read], links: [...box.links, ...links] };
  const missing = args.find((word) => word.startsWith("/") && exists(word) && !isVisible(word, added));
  if (missing !== undefined) {
    throw new Error(`its box does not show ${missing}. Add it to isolation.box.read of the worker.`);
  }
  return added;
}

const SYSTEM_DIRS = ["/usr", "/opt", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc", "/dev"];

function isVisible(path: string, { workDir, stateDir, home, read, readOnly, write }: Box): boolean {
  const shown = [...SYSTEM_DIRS, workDir, stateDir ?? workDir, home, ...read, ...readOnly, ...write];
  return [path, Deno.realPathSync(path)].some((one) => shown.some((folder) => isWithin(one, folder)));
}

/** Returns the values of all servers, by the name of the variable or header. */
export function listServerValues(servers: McpServers): [name: string, value: string][] {
  return Object.values(servers).flatMap((server: McpServer) => Object.entries(getServerValues(server)));
}
