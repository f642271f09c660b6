import { describe, expect, it } from "vitest";
import { type App, openApp } from "../../harness/service/app.ts";
import {
  buildBearer,
  createToken,
  createUser,
  logIn,
  type TestCaller,
  WORD,
} from "../../harness/model/people.ts";

const put = (app: App, body: unknown) => app.call("PUT /api/users/Ada", body);

async function findStatus(app: App, { headers }: Pick<TestCaller, "headers">): Promise<number> {
  return (await app.send("GET /api/workers", undefined, headers)).status;
}

async function refresh(app: App, refresh_token: string): Promise<number> {
  return (await app.send("POST /api/auth/refresh", { refresh_token }, { authorization: "" })).status;
}

/** Disables and enables a user. */
async function toggle(app: App): Promise<void> {
  await put(app, { disabled: true });
  await put(app, { disabled: false });
}

describe("a user who is disabled and enabled again [USR-2]", () => {
  it("has no older login, refresh token, named token or console code, and can log in again", async () => {
    await using app = await openApp();
    const ada = await createUser(app, "Ada", "admin");
    const other = await createUser(app, "Bob", "admin");
    const token = await createToken(app, "ci", ["read:*"], ada.headers);
    const endless = await app.call(
      "POST /api/tokens",
      { name: "endless", scopes: ["*:*"], expires_at: null },
      ada.headers,
    );
    const bobs = await createToken(app, "bobs", ["read:*"], other.headers);
    const { code } = await app.call("POST /api/auth/console", {}, ada.headers);
    await toggle(app);
    expect(await findStatus(app, ada)).toBe(401);
    expect(await findStatus(app, token)).toBe(401);
    expect(await findStatus(app, { headers: buildBearer(endless.token) })).toBe(401);
    expect(await refresh(app, ada.refresh)).toBe(401);
    const { publicUrl } = app.server.api.auth.getCookieScope();
    const entered = await app.send(
      "POST /api/auth/login",
      { code, browser: true },
      { authorization: "", origin: publicUrl, host: new URL(publicUrl).host },
    );
    expect(entered.status).toBe(401);
    expect(await findStatus(app, bobs)).toBe(200);
    expect(await refresh(app, other.refresh)).toBe(200);
    const again = await logIn(app, "Ada");
    expect(await findStatus(app, { headers: buildBearer(again.access_token) })).toBe(200);
    // The name of a deleted token is free.
    await createToken(app, "ci", ["read:*"], buildBearer(again.access_token));
  });

  it("has no open stream, even if no check ran in between", async () => {
    await using app = await openApp();
    const ada = await createUser(app, "Ada", "admin");
    const token = await createToken(app, "ci", ["read:*"], ada.headers);
    const streams = await Promise.all(
      [ada, token].map(({ headers }) => fetch(`${app.url}/api/events`, { headers })),
    );
    await toggle(app);
    for (const stream of streams) expect(await stream.text()).toContain('data: {"reason":"revoked"}');
  });

  it("has no token of a request that was in progress", async () => {
    await using app = await openApp();
    const ada = await createUser(app, "Ada", "admin");
    const { db } = app;
    const write = db.writeOr.bind(db);
    // Disables the user between the check of the login and the write of the new token.
    Object.assign(db, {
      writeOr: async (...args: Parameters<typeof write>) => {
        Object.assign(db, { writeOr: write });
        await put(app, { disabled: true });
        return await write(...args);
      },
    });
    const late = await app.send("POST /api/tokens", { name: "late", scopes: ["read:*"] }, ada.headers);
    expect(late.status).toBeGreaterThanOrEqual(400);
    await put(app, { disabled: false });
    expect(await app.call("GET /api/tokens")).toEqual([]);
  });

  it("keeps its tokens after a change of role, with the scopes of the role", async () => {
    await using app = await openApp();
    const ada = await createUser(app, "Ada", "admin");
    const token = await createToken(app, "ci", ["*:*"], ada.headers);
    await put(app, { role: "viewer" });
    for (const { headers } of [ada, token]) {
      expect(await findStatus(app, { headers })).toBe(200);
      expect((await app.send("POST /api/workers", { name: "x" }, headers)).status).toBe(403);
    }
    await put(app, { name: "Ada", role: "viewer", disabled: false });
    expect(await findStatus(app, token)).toBe(200);
  });

  it("gets no access token after another program disabled the user in the database", async () => {
    await using app = await openApp({ inMemory: true });
    const ada = await createUser(app, "Ada", "admin");
    expect(await refresh(app, ada.refresh)).toBe(200);
    await app.db.write([{ sql: "update user set disabled = 1 where id = ?", args: [ada.id] }]);
    expect(await refresh(app, ada.refresh)).toBe(401);
  });

  it("has no login from before a change of the password", async () => {
    await using app = await openApp();
    const ada = await createUser(app, "Ada", "viewer");
    await app.call("PUT /api/users/Ada/password", { password: `${WORD}, and another` });
    await toggle(app);
    await app.call("PUT /api/users/Ada/password", { password: WORD });
    expect([await findStatus(app, ada), await refresh(app, ada.refresh)]).toEqual([401, 401]);
  });
});

describe("a runner that is deleted [USR-2]", () => {
  it("has no valid token after a new runner gets its name", async () => {
    await using app = await openApp();
    const old = await app.call("POST /api/runners", { name: "r1" });
    const claim = async (token: string) =>
      (await app.send("POST /api/runners/claim", {}, buildBearer(token))).status;
    expect(await claim(old.token)).not.toBe(401);
    await app.call("DELETE /api/runners/r1");
    const fresh = await app.call("POST /api/runners", { name: "r1" });
    expect([await claim(old.token), await claim(fresh.token) === 401]).toEqual([401, false]);
  });
});
