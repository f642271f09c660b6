import type { App } from "../service/app.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

/** Somebody who may call: the header that makes a request theirs. */
export interface Somebody {
  id: string;
  token: string;
  headers: { authorization: string };
}

/** The header of a token. */
export function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` };
}

/** The password of everybody in tests. */
export const WORD = "a long enough word";

/** A user of this role who has logged in. The login comes first, for scrypt takes its time. */
export async function someUser(
  app: App,
  name: string,
  role: string,
): Promise<Somebody & { refresh: string }> {
  const user = await app.call("POST /api/users", { name, role, password: WORD });
  const login = await logIn(app, name);
  return {
    id: user.id,
    token: login.access_token,
    refresh: login.refresh_token,
    headers: bearer(login.access_token),
  };
}

/** Logs in with a name and the password of tests. */
export async function logIn(app: App, username: string, password = WORD): Promise<Json> {
  return await app.call("POST /api/auth/login", { username, password });
}

/** A named token of whoever sends it. */
export async function someToken(
  app: App,
  name: string,
  scopes: string[],
  owner: Record<string, string> = {},
): Promise<Somebody> {
  const { id, token } = await app.call("POST /api/tokens", { name, scopes }, owner);
  return { id, token, headers: bearer(token) };
}
