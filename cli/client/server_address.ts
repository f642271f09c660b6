import { join } from "node:path";
import type { ClientConfig } from "../../src/config/file.ts";
import { ServiceError } from "../../src/domain/error.ts";
import { usageError } from "../terminal/exit.ts";
import { readLogins } from "./login_file.ts";
import type { Io } from "../terminal/io.ts";

/**
 * Where the server is: SVC_URL, else the context that `context use` chose, else what the server that holds the data directory has written there, else what the
 * configuration says; in a run only SVC_URL (contract 8.14). Throws a usage error or ServiceError `unavailable`.
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
      "Cannot find the service: this is an agent's run and its SVC_URL is missing",
    );
  }
  const { current } = await readLogins(io);
  if (current !== "") return current;
  const { host, port, dataDir } = await configuration();
  const announced = readServerFile(dataDir)?.url ?? null;
  // Because of a file that a killed server left, no token may be sent to another program on its port.
  if (announced !== null && (port === 0 || isLocked(join(dataDir, "svc.lock")))) return announced;
  if (port === 0) {
    throw new ServiceError(
      "unavailable",
      `Cannot find the service: no server runs on the data directory ${dataDir}; start it with: svc serve`,
    );
  }
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}

/** An address as a person gave it, in `SVC_URL` unless another name is given. Throws a usage error. */
export function parseUrl(given: string, name = "SVC_URL"): string {
  // A name and password in it would take the place of our token.
  const { username, search, hash } = URL.parse(given) ?? { username: "x" };
  if (!/^https?:\/\//.test(given) || username || search || hash || /\/api\/*$/.test(given)) {
    const shown = JSON.stringify(given.replace(/\/\/.*@/, "//…@"));
    throw usageError(
      `${name}: ${shown} is not an address such as http://127.0.0.1:8080, without /api behind it`,
    );
  }
  return given.replace(/\/+$/, "");
}

/** The running service of a data directory: where it is, and which start of it (contract 8.14). */
interface RunningService {
  url: string;
  instance: string;
}

/** What the server left in its data directory; null when there is none, or none that can be read. */
export function readServerFile(dataDir: string): RunningService | null {
  try {
    const { url, instance = "" } = JSON.parse(Deno.readTextFileSync(join(dataDir, "server.json")));
    return typeof url === "string" && typeof instance === "string" ? { url, instance } : null;
  } catch {
    return null;
  }
}

/** Whether a living process holds the lock. It is never tried here: a server that starts at that moment would be refused. */
export function isLocked(path: string): boolean {
  try {
    const { ino } = Deno.statSync(path);
    const locks = Deno.readTextFileSync("/proc/locks");
    return ino !== null &&
      locks.split("\n").some((line) => line.includes("FLOCK") && line.includes(`:${ino} `));
  } catch {
    // No such file, or no such list: macOS. There the configuration counts.
    return false;
  }
}
