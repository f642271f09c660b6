import { expect } from "vitest";
import { StreamClient } from "../stream.ts";

/** Any JSON value of a response. */
// deno-lint-ignore no-explicit-any
export type Json = any;

/** A client of a server process, with its own login. */
export interface Client {
  url: string;
  token: string;
  refreshToken: string;
  /** Sends a request and returns the response. */
  send: (
    route: string,
    body?: unknown,
    headers?: Record<string, string>,
  ) => Promise<{ status: number; body: Json }>;
  /** Sends a request that must succeed and returns its body. */
  call: (route: string, body?: unknown, headers?: Record<string, string>) => Promise<Json>;
  text: (path: string) => Promise<string>;
  upload: (path: string, form: FormData) => Promise<Json>;
  stream: (sessionId: string, headers?: Record<string, string>) => Promise<StreamClient>;
}

/** Hash of the password "pass" at the lowest cost, so that starts and logins are fast. */
export const PASS_HASH =
  "$scrypt$ln=4,r=8,p=1$Rh9+DIrCwhVX9c5Hxd0/ww$hwMS5CClpaTsqFF3iCxwY2pANWcKGlKeeAWEtJnzvEo";

/** Logs in as admin with this password. */
export async function openClient(url: string, password = "pass"): Promise<Client> {
  const login = await fetch(`${url}/api/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: "admin", password }),
  });
  const { access_token: token, refresh_token: refreshToken } = await login.json();
  const authorization = `Bearer ${token}`;
  const send: Client["send"] = async (route, body, headers = {}) => {
    const [method = "GET", path = ""] = route.split(/ (.*)/);
    const response = await fetch(url + path, {
      method,
      headers: { authorization, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? null : JSON.parse(text) };
  };
  return {
    url,
    token,
    refreshToken,
    send,
    call: async (route, body, headers) => {
      const reply = await send(route, body, headers);
      expect(reply.status, JSON.stringify(reply.body)).toBeLessThan(300);
      return reply.body;
    },
    text: async (path) => await (await fetch(url + path, { headers: { authorization } })).text(),
    upload: async (path, form) => {
      const response = await fetch(url + path, { method: "POST", headers: { authorization }, body: form });
      return await response.json();
    },
    stream: (id, headers = {}) =>
      StreamClient.open(`${url}/api/local/sessions/${id}/stream`, { authorization, ...headers }),
  };
}

/** Requests `url` and returns only the status. */
export async function fetchStatus(url: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { headers });
  await response.body?.cancel();
  return response.status;
}

/** Resolves when no work is waiting or in progress. Throws after `stuckMs` without progress. */
export async function waitUntilQuiet(api: Client, stuckMs = 60_000): Promise<void> {
  let least = Infinity;
  let leastAt = performance.now();
  while (performance.now() - leastAt < stuckMs) {
    // Messages first: one that is routed between the two requests has its task in the second.
    const unrouted = await api.call("GET /api/messages/inbound?status=received,feeding&page_size=1");
    const { tasks, executions } = await api.call("GET /api/system/overview");
    const open = tasks.pending + tasks.running + executions.pending + executions.running + unrouted.length;
    if (open === 0) return;
    if (open < least) [least, leastAt] = [open, performance.now()];
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("it did not come to rest");
}
