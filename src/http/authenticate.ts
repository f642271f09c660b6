import { isIP } from "node:net";
import type { Authentication, Authority } from "../api/call/authority.ts";
import { ServiceError } from "../domain/call/error.ts";

/** Identifies the caller by the token of the header, else of the query (interface 5, contract 2.4). Throws `unauthenticated`. */
export async function authenticate(
  authority: Authority,
  request: Request,
  url: URL,
): Promise<Authentication> {
  const token = readToken(request, url);
  const found = token === null ? null : await authority.authenticate(token);
  if (found !== null) return found;
  // Clients of OpenAI's API have a key and no login.
  const advice = url.pathname.startsWith("/v1/") ? KEY : LOGIN;
  throw new ServiceError(
    "unauthenticated",
    token === null
      ? `Cannot authenticate: the request has no ${advice.first}`
      : `Cannot accept this token: it is expired, revoked or from another service. ${advice.again}`,
  );
}

const LOGIN = {
  first: "token. Log in with POST /api/auth/login and send the token as Authorization: Bearer.",
  again: "Log in again.",
};

const KEY = {
  first: "API key. Create a token with `svc ctl token create` and send it as Authorization: Bearer.",
  again: "Create another one with `svc ctl token create`.",
};

/** Reads the token of the header, else of the query. Returns null without one. */
export function readToken(request: Request, url: URL): string | null {
  const header = request.headers.get("authorization");
  if (header !== null) return /^bearer +(\S+)$/i.exec(header)?.[1] ?? "";
  return url.searchParams.get("token");
}

/** Removes the prefix of an IPv4 address, which a dual-stack socket shows as an IPv6 address. */
export function stripIpv4Prefix(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}

/** Returns the address of the client: the peer's address, or the address that trusted proxies report (contract 2.11). */
export function findClientAddress(
  socket: string,
  forwardedFor: string | null,
  trusted: readonly string[],
): string {
  const peer = stripIpv4Prefix(socket);
  if (forwardedFor === null || !trusted.includes(peer)) return peer;
  const hops = forwardedFor.split(",").map((hop) => hop.trim());
  return hops.findLast((hop) => !trusted.includes(hop) && isIP(hop) !== 0) ?? peer;
}

/**
 * Throws `forbidden` when the Host header names another host. A site could point its own name at this server and read responses from its
 * pages (contract 2.11, reliability AUT-11). That is impossible with addresses and localhost.
 */
export function checkHost(host: string, allowed: readonly string[], loopback: boolean): void {
  if (isOwnHost(host, allowed) || !loopback && allowed.length === 0) return;
  throw new ServiceError(
    "forbidden",
    `Cannot answer for host ${
      JSON.stringify(parseHostName(host).slice(0, 100))
    }: it is not allowed. Add it to server.allowed_hosts.`,
  );
}

/** Returns whether a Host header is localhost, an IP address or one of the allowed names. */
export function isOwnHost(host: string, allowed: readonly string[]): boolean {
  const name = parseHostName(host);
  return name === "localhost" || isIP(name) !== 0 || allowed.some((one) => one.toLowerCase() === name);
}

function parseHostName(host: string): string {
  return host.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1").toLowerCase();
}

/** Whether only this machine reaches a bind address. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host.startsWith("127.");
}
