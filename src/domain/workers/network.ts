/** Ports that a box reaches outside: HTTPS and HTTP (contract-3 21). */
export const OUTSIDE_PORTS: readonly number[] = [443, 80];

/** Returns whether a list of hosts has a name: the exact name, or a name below `*.name`. */
export function isHostListed(hosts: readonly string[], name: string): boolean {
  return hosts.some((host) => host.startsWith("*.") ? name.endsWith(host.slice(1)) : host === name);
}

/** Reads a host name as a client wrote it. Returns null for text that is no host name. */
export function parseHostName(text: string): string | null {
  const name = text.toLowerCase().replace(/\.$/, "");
  return name.length <= 253 && /^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/.test(name) ? name : null;
}
