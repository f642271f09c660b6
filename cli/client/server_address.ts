import { join } from "node:path";
import type { ClientConfig } from "../../src/config/file.ts";
import { ServiceError } from "../../src/domain/call/error.ts";
import { usageError } from "../terminal/exit.ts";
import { readLogins } from "./login_file.ts";
import type { Io } from "../terminal/io.ts";

/**
 * Finds the address of the server: SVC_URL, the selected context, the server file of the data directory, or the
 * configuration. A run has only SVC_URL (contract 8.14). Throws a usage error or `unavailable`.
 */
export async function findServerUrl(
  io: Io,
  configuration: () => Promise<ClientConfig>,
): Promise<string> {
  const { env } = io;
  if (env.SVC_URL) return parseUrl(env.SVC_URL);
  if (env.SVC_RUN_ID) {
    throw new ServiceError(
      "unavailable",
      "Cannot find the service: SVC_URL is missing in this agent's run",
    );
  }
  const { current } = await readLogins(io);
  if (current !== "") return current;
  const { host, port, dataDir } = await configuration();
  const announced = readServerFile(dataDir)?.url ?? null;
  // After a kill the file is stale, and another program on the port must not get a token.
  if (announced !== null && (port === 0 || isLocked(join(dataDir, "svc.lock")))) return announced;
  if (port === 0) {
    throw new ServiceError(
      "unavailable",
      `Cannot find the service: no server uses the data directory ${dataDir}. Start it with \`svc serve\`.`,
    );
  }
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}

/** Checks an address from a user. `name` is its source. Throws a usage error. */
export function parseUrl(given: string, name = "SVC_URL"): string {
  // A user name in the address would replace our token.
  const { username, search, hash } = URL.parse(given) ?? { username: "x" };
  if (!/^https?:\/\//.test(given) || username || search || hash || /\/api\/*$/.test(given)) {
    const shown = JSON.stringify(given.replace(/\/\/.*@/, "//…@"));
    throw usageError(
      `${name}: ${shown} must be an address such as http://127.0.0.1:8080 (without /api)`,
    );
  }
  return given.replace(/\/+$/, "");
}

/** A running service: its address, and the ID of its start (contract 8.14). */
interface RunningService {
  url: string;
  instance: string;
}

/** Reads the file that the server wrote into its data directory. Returns null without a valid one. */
export function readServerFile(dataDir: string): RunningService | null {
  try {
    const { url, instance = "" } = JSON.parse(Deno.readTextFileSync(join(dataDir, "server.json")));
    return typeof url === "string" && typeof instance === "string" ? { url, instance } : null;
  } catch {
    return null;
  }
}

/**
 * Whether the process that a lock file names holds its lock. Does not take the lock, because a server that starts would fail, and does
 * not read `/proc/locks`, because that takes the kernel some 10 ms.
 */
export function isLocked(path: string): boolean {
  try {
    const { ino } = Deno.statSync(path);
    const files = `/proc/${Number.parseInt(Deno.readTextFileSync(path), 10)}/fdinfo`;
    for (const { name } of Deno.readDirSync(files)) {
      const info = Deno.readTextFileSync(`${files}/${name}`);
      if (info.includes("FLOCK") && info.includes(`:${ino} `)) return true;
    }
  } catch {
    // macOS has no list of locks. The configuration decides there.
  }
  return false;
}
