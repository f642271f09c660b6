// The MCP servers of a worker, in the form that every agent can start.
import { join } from "node:path";
import { quoteShellWord } from "../base/shell.ts";
import type { McpServers } from "../domain/workers/mcp_server.ts";
import type { EngineRun } from "./engine.ts";
import type { EngineConfig } from "./config.ts";
import type { Adapter, EngineFile, WorkerServer } from "./protocol/adapter.ts";
import { getInputDir } from "./run_dir.ts";

/** Returns the servers for an adapter. */
export function buildWorkerServers(
  { servers, runDir }: Pick<EngineRun, "servers" | "runDir">,
): WorkerServer[] {
  return servers.map((server) =>
    "url" in server ? server : { name: server.name, program: getScriptPath(runDir, server.name) }
  );
}

/**
 * Builds the script of each server with a command. Agents expand variables in the words of a command and show them to other processes,
 * and pass on different variables. In a script the words stay as they are, and values come from variables of the run.
 */
export function buildServerScripts(
  { servers, runDir, env }: Pick<EngineRun, "servers" | "runDir" | "env">,
): EngineFile[] {
  return servers.flatMap((server) => {
    if ("url" in server) return [];
    const lines = [
      // Agents may replace these.
      ...["PATH", "HOME", "SVC_RUN_ID"].map((name) => `export ${name}=${quoteShellWord(env[name] ?? "")}`),
      ...Object.entries(server.env).map(([name, from]) => `export ${name}="$${from}"`),
      `exec ${server.command.map(quoteShellWord).join(" ")}`,
    ];
    const content = `#!/bin/sh\n${lines.join("\n")}\n`;
    return [{ path: getScriptPath(runDir, server.name), content: () => content, executable: true }];
  });
}

function getScriptPath(runDir: string, name: string): string {
  return join(getInputDir(runDir), `mcp-${name}`);
}

/** Returns why a program without MCP cannot have these servers, or null. */
export function findProgramServerFault(engine: string, servers: McpServers): string | null {
  return Object.keys(servers).length === 0 ? null : `the engine ${engine} has no MCP servers`;
}

/** Returns why an agent cannot have these servers, or null. */
export function findAgentServerFault(
  engine: string,
  { adapter: { findServerFault }, config }: { adapter: Adapter; config: EngineConfig },
  servers: McpServers,
): string | null {
  for (const [name, server] of Object.entries(servers)) {
    const fault = findServerFault?.(server, config) ?? null;
    if (fault !== null) return `the engine ${engine} ${fault}, as ${name} needs`;
  }
  return null;
}
