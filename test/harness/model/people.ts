import type { App } from "../service/app.ts";
import type { Json } from "../service/client.ts";

/** A caller, with the header of its requests. */
export interface TestCaller {
  id: string;
  token: string;
  headers: { authorization: string };
}

export function buildBearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` };
}

/** The password of every user in tests. */
export const WORD = "a long enough word";

/** Creates a user of this role who is logged in. The login comes first because scrypt is slow. */
export async function createUser(
  app: App,
  name: string,
  role: string,
): Promise<TestCaller & { refresh: string }> {
  const user = await app.call("POST /api/users", { name, role, password: WORD });
  const login = await logIn(app, name);
  return {
    id: user.id,
    token: login.access_token,
    refresh: login.refresh_token,
    headers: buildBearer(login.access_token),
  };
}

export async function logIn(app: App, username: string, password = WORD): Promise<Json> {
  return await app.call("POST /api/auth/login", { username, password });
}

/** Deletes every refresh token, as a change of the password does. */
export async function endSessions(app: App): Promise<void> {
  await app.db.write([{ sql: "delete from refresh_token", args: [] }]);
}

/** A subscription that nothing is sent to, with the keys of RFC 8291. */
export const SUBSCRIPTION = {
  endpoint: "https://127.0.0.1:1/push",
  keys: {
    p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    auth: "BTBZMqHH6r4Tts7J_aSIgg",
  },
};

/** Creates a named token as the given caller. */
export async function createToken(
  app: App,
  name: string,
  scopes: string[],
  owner: Record<string, string> = {},
): Promise<TestCaller> {
  const { id, token } = await app.call("POST /api/tokens", { name, scopes }, owner);
  return { id, token, headers: buildBearer(token) };
}
