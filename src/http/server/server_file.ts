import { replacePlain } from "../../base/plain_file.ts";

/** The file in which `ctl` finds the running service, and what that is called. */
export interface Announced {
  path: string;
  /** Another one at each start (contract 8.14). */
  instance: string;
}

/** The address of a port as a client on this machine reaches it: `http://host:port`. */
export function addressOf({ hostname, port }: Deno.NetAddr): string {
  const host = hostname === "0.0.0.0" ? "127.0.0.1" : hostname === "::" ? "[::1]" : hostname;
  return `http://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`;
}

/** Writes where `ctl` looks for the service (contract 2.10): whole, and with rights of its own, also where a killed server left one behind. */
export function announce({ path, instance }: Announced, url: string): void {
  replacePlain(path, JSON.stringify({ url, pid: Deno.pid, instance }) + "\n");
}
