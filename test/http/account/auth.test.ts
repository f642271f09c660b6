import { describe, expect, it } from "vitest";
import { type App, openApp, PASSWORD } from "../../harness/service/app.ts";
import { buildBearer } from "../../harness/model/people.ts";
import { TestClock } from "../../harness/clock.ts";
import { hashPassword } from "../../../src/api/account/password.ts";

const LOGIN = "POST /api/auth/login";
const right = { username: "admin", password: PASSWORD };

const statusOf = async (app: App, token: string) =>
  (await app.send("GET /api/workers", undefined, buildBearer(token))).status;
const refreshStatus = async (app: App, refresh_token: string) =>
  (await app.send("POST /api/auth/refresh", { refresh_token })).status;

describe("authentication (interface 5, contract 2)", () => {
  it("login returns both tokens, the lifetime in seconds and the type", async () => {
    await using app = await openApp();
    const reply = await app.send(LOGIN, right, { authorization: "" });
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({
      access_token: expect.stringMatching(/^eyJ/),
      refresh_token: expect.stringMatching(/^[\w-]{43}$/),
      expires_in: 900,
      token_type: "Bearer",
    });
  });

  it("takes the token from the header or the query, and the header comes first [AUT-9]", async () => {
    await using app = await openApp();
    const { access_token: token } = await app.call(LOGIN, right);
    const none = { authorization: "" };
    const url = `${app.url}/api/workers`;
    expect((await drained(fetch(`${url}?token=${token}`))).status).toBe(200);
    expect((await drained(fetch(url, { headers: { authorization: `Bearer ${token}` } }))).status).toBe(200);
    expect((await drained(fetch(`${url}?token=${token}`, { headers: { authorization: "Bearer x" } }))).status)
      .toBe(401);
    expect((await drained(fetch(url))).status).toBe(401);
    expect((await app.send("GET /api/workers", undefined, none)).body).toMatchObject({
      code: "unauthenticated",
    });
  });

  it("refresh returns a new access token and no refresh token; logout revokes the refresh token", async () => {
    await using app = await openApp();
    const { refresh_token } = await app.call(LOGIN, right);
    const refreshed = await app.call("POST /api/auth/refresh", { refresh_token });
    expect(refreshed).toEqual({ access_token: expect.any(String), expires_in: 900, token_type: "Bearer" });
    expect(await statusOf(app, refreshed.access_token)).toBe(
      200,
    );
    expect((await app.send("POST /api/auth/logout", { refresh_token })).status).toBe(204);
    expect(await refreshStatus(app, refresh_token)).toBe(401);
    expect((await app.send("POST /api/auth/logout", { refresh_token })).status).toBe(204);
  });

  it("a login in progress during a password change returns no valid token", async () => {
    await using app = await openApp();
    const { refresh_token } = await app.call(LOGIN, right);
    // A password change ends with raiseVersion(), here while logIn() still checks the old password.
    const pending = [app.call(LOGIN, right), app.call("POST /api/auth/refresh", { refresh_token })];
    await app.db.read("select 1");
    app.server.parts.authority.raiseVersion(2);
    const given = (await Promise.allSettled(pending)).flatMap((one) =>
      one.status === "fulfilled" ? [one.value] : []
    );
    expect(given).not.toEqual([]);
    for (const { access_token } of given) {
      expect(await statusOf(app, access_token)).toBe(401);
    }
  });

  it("lets tokens expire", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock });
    const { access_token, refresh_token } = await app.call(LOGIN, right);
    clock.advance(15 * 60_000 - 1_000);
    expect(await statusOf(app, access_token)).toBe(200);
    clock.advance(2_000);
    expect(await statusOf(app, access_token)).toBe(401);
    clock.advance(29 * 86_400_000);
    expect(await refreshStatus(app, refresh_token)).toBe(200);
    clock.advance(86_400_000);
    expect(await refreshStatus(app, refresh_token)).toBe(401);
  });

  it("a wrong name and a wrong password get the same response [AUT-3]", async () => {
    await using app = await openApp();
    const name = await app.send(LOGIN, { username: "nobody", password: PASSWORD });
    const word = await app.send(LOGIN, { username: "admin", password: "wrong" });
    expect(name.status).toBe(401);
    expect({ ...name.body, request_id: "" }).toEqual({ ...word.body, request_id: "" });
    expect(name.body.code).toBe("invalid_credentials");
  });

  it("counts attempts before checking them, so that parallel logins get no more [AUT-4]", async () => {
    const clock = new TestClock("2026-01-05T08:00:10Z");
    await using app = await openApp({ clock });
    const replies = await Promise.all(
      Array.from({ length: 40 }, () => app.send(LOGIN, { username: "admin", password: "wrong" })),
    );
    expect(replies.filter((reply) => reply.status === 401).length).toBeLessThanOrEqual(10);
    expect(replies.every((reply) => reply.status === 401 || reply.status === 429)).toBe(true);
  });

  it("a changed password invalidates all older tokens [AUT-6, AUT-7]", async () => {
    await using app = await openApp({ password: "first" });
    const login = await app.call(LOGIN, { username: "admin", password: "first" });
    expect(await statusOf(app, login.access_token)).toBe(200);
    await app.stop();
    await using later = await openApp({ dataDir: app.dataDir, password: "second" });
    expect(await statusOf(later, login.access_token)).toBe(
      401,
    );
    expect(await refreshStatus(later, login.refresh_token)).toBe(
      401,
    );
    expect((await later.send(LOGIN, { username: "admin", password: "first" })).status).toBe(401);
    expect((await later.send(LOGIN, { username: "admin", password: "second" })).status).toBe(200);
  });

  it("a restart does not wait for the password hash, and neither do requests without the operator's password [AUT-7]", async () => {
    await using app = await openApp({ password: "first" });
    const login = await app.call(LOGIN, { username: "admin", password: "first" });
    const scopes = ["read:workers", "write:system"];
    const { token } = await app.call("POST /api/tokens", { name: "deploy", scopes });
    await app.db.write([{
      sql: "update credential set password_hash = ?",
      args: [await hashPassword("first", { ln: 18, r: 8, p: 1 })],
    }]);
    await app.stop();
    await using later = await openApp({ dataDir: app.dataDir, password: "second" });
    const order: string[] = [];
    const first = (what: string, reply: ReturnType<typeof later.send>) =>
      reply.then(({ status }) => void order.push(`${what} ${status}`));
    const none = { authorization: "" };
    const stolen = { include_key: true, password: "first" };
    // Sends all requests before the first one waits.
    await Promise.all([
      first("old login", later.send("GET /api/workers", undefined, buildBearer(login.access_token))),
      first("refresh", later.send("POST /api/auth/refresh", { refresh_token: login.refresh_token }, none)),
      first("old password", later.send(LOGIN, { username: "admin", password: "first" }, none)),
      first("new password", later.send(LOGIN, { username: "admin", password: "second" }, none)),
      first("key", later.send("POST /api/system/backup", stolen, buildBearer(token))),
      first("token", later.send("GET /api/workers", undefined, buildBearer(token))),
      later.server.parts.authority.getOperatorVersion().then(() => void order.push("compared")),
    ]);
    expect(order.indexOf("token 200")).toBe(0);
    const compared = order.indexOf("compared");
    const waited = ["old login 401", "refresh 401", "old password 401", "new password 200", "key 400"];
    for (const one of waited) expect([one, order.indexOf(one) > 0], order.join(", ")).toEqual([one, true]);
    expect(order.indexOf("old password 401")).toBeGreaterThan(compared);
  });

  it("a changed password that cannot be stored allows no login until it is stored [AUT-7]", async () => {
    await using app = await openApp({ password: "first" });
    const login = await app.call(LOGIN, { username: "admin", password: "first" });
    const broken =
      "create trigger broken before update on credential begin select raise(abort, 'broken'); end";
    await app.db.write([{ sql: broken, args: [] }]);
    await app.stop();
    const clock = new TestClock();
    await using later = await openApp({ dataDir: app.dataDir, password: "second", clock });
    // Eight requests take longer than both hashes, so the first attempt to store the password has failed.
    for (let i = 0; i < 8; i++) {
      const old = later.send("GET /api/workers", undefined, buildBearer(login.access_token));
      expect(await whileTimePasses(clock, old)).toMatchObject({ status: 503, body: { code: "unavailable" } });
    }
    await later.db.write([{ sql: "drop trigger broken", args: [] }]);
    const again = () => whileTimePasses(clock, later.send(LOGIN, { username: "admin", password: "second" }));
    let { status } = await again();
    while (status === 503) ({ status } = await again());
    expect(status).toBe(200);
    expect(await statusOf(later, login.access_token)).toBe(
      401,
    );
  });

  it("tokens stay valid after a restart with the same password", async () => {
    await using app = await openApp({ password: "same" });
    const login = await app.call(LOGIN, { username: "admin", password: "same" });
    await app.stop();
    await using later = await openApp({ dataDir: app.dataDir, password: "same" });
    expect(await statusOf(later, login.access_token)).toBe(
      200,
    );
    expect(await refreshStatus(later, login.refresh_token)).toBe(
      200,
    );
  });

  it("the first start without a password generates one and stores only its hash (contract 2) [AUT-8]", async () => {
    await using app = await openApp({ config: { auth: { password_hash: "" } } });
    const password = app.server.generatedPassword ?? "";
    expect(password).toMatch(/^[a-z2-9]{24}$/);
    expect((await app.send(LOGIN, { username: "admin", password })).status).toBe(200);
    const dump = JSON.stringify(await app.db.read("select * from credential"));
    expect(dump).not.toContain(password);
  });

  it("sends no CORS headers unless an origin is allowed (contract 2)", async () => {
    await using closed = await openApp();
    const origin = { origin: "https://app.example.org" };
    expect(
      (await closed.send("GET /api/workers", undefined, origin)).headers.get("access-control-allow-origin"),
    ).toBeNull();
    await using open = await openApp({
      config: { server: { allowed_origins: ["https://app.example.org"] } },
    });
    const allowed = await open.send("GET /api/workers", undefined, origin);
    expect(allowed.headers.get("access-control-allow-origin")).toBe("https://app.example.org");
    const foreign = await open.send("GET /api/workers", undefined, { origin: "https://evil.example" });
    expect(foreign.headers.get("access-control-allow-origin")).toBeNull();
  });
});

async function drained(request: Promise<Response>): Promise<Response> {
  const response = await request;
  await response.body?.cancel();
  return response;
}

/** Advances the clock by a second every 50 ms until `work` resolves. */
async function whileTimePasses<T>(clock: TestClock, work: Promise<T>): Promise<T> {
  const timer = setInterval(() => clock.advance(1_000), 50);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}
