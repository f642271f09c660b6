import { dirname } from "node:path";
import { replacePlain } from "../../base/files/plain_file.ts";

/** The file in which `ctl` finds the running service. */
export interface ServerFile {
  path: string;
  /** Changes at each start (contract 8.14). */
  instance: string;
}

/** Formats the address of a port as `http://host:port` for clients on this machine. */
export function formatAddress({ hostname, port }: Deno.NetAddr): string {
  const host = hostname === "0.0.0.0" ? "127.0.0.1" : hostname === "::" ? "[::1]" : hostname;
  return `http://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`;
}

/** Writes the file atomically and with mode 0600, also over the file of a killed server. */
export function writeServerFile({ path, instance }: ServerFile, url: string): void {
  replacePlain({ root: dirname(path), path }, JSON.stringify({ url, pid: Deno.pid, instance }) + "\n");
}
