import { describe, expect, it } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { waitUntil } from "../../harness/wait.ts";
import { type App, openApp, PASSWORD } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { fetchAs } from "../requests.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { buildBearer, createToken, createUser, logIn, WORD } from "../../harness/model/people.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const statusOf = async (app: App, route: string, headers: Record<string, string>, body?: unknown) =>
  (await app.send(route, body, headers)).status;

describe("users (contract 9)", () => {
  it("are created, changed, disabled and deleted; a generated password appears once and is stored as a hash", async () => {
    await using app = await openApp();
    const made = await app.send("POST /api/users", { name: "  Ada ", role: "operator" }, {
      "idempotency-key": "k",
    });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({ name: "Ada", role: "operator", disabled: false, origin: "local" });
    const { password, id } = made.body;
    const again = await app.send("POST /api/users", { name: "  Ada ", role: "operator" }, {
      "idempotency-key": "k",
    });
    expect(again.body.id).toBe(id);
    expect(again.body.password).toBeUndefined();
    const rows = JSON.stringify(await app.db.read("select * from user, idempotency"));
    expect(rows).not.toContain(password);
    const login = await logIn(app, "ADA", password);
    const own = buildBearer(login.access_token);
    expect((await app.send("GET /api/auth/whoami", undefined, own)).body).toMatchObject({
      subject: "user:Ada",
      name: "Ada",
      role: "operator",
      by: "login",
      user_id: id,
    });
    expect((await app.call("GET /api/users/ada")).last_login_at).toBeGreaterThan(0);
    expect(
      await app.call("PUT /api/users/Ada", {
        name: "Ada L",
        ...(await app.call("GET /api/users/Ada")),
        role: "viewer",
      }),
    )
      .toMatchObject({ name: "Ada", role: "viewer" });
    expect(await statusOf(app, "POST /api/workers", own, { name: "x" })).toBe(403);
    await app.call("PUT /api/users/Ada", { disabled: true });
    expect(await statusOf(app, "GET /api/workers", own)).toBe(401);
    expect(await statusOf(app, "POST /api/auth/refresh", {}, { refresh_token: login.refresh_token })).toBe(
      401,
    );
    expect((await app.send("POST /api/auth/login", { username: "Ada", password })).body.code).toBe(
      "invalid_credentials",
    );
    expect(await app.call("DELETE /api/users/Ada")).toEqual({ status: "deleted" });
    expect(await statusOf(app, "GET /api/users/Ada", {})).toBe(404);
  });

  it("a name that looks like the name of another user is refused, at creation, renaming and for the operator", async () => {
    await using app = await openApp();
    await app.call("POST /api/users", { name: "Peter", role: "admin", password: WORD });
    const bo = await app.call("POST /api/users", { name: "Bo", role: "viewer", password: WORD });
    const alike = ["аdmin", "ΑDMIN", "admın", "adrnin", "Реter", "Ｐeter", "𝐏eter"];
    for (const name of alike) {
      for (const role of ["admin", "viewer"]) {
        const made = await app.send("POST /api/users", { name, role, password: WORD });
        expect([name, made.status, made.body.detail]).toEqual([
          name,
          409,
          expect.stringContaining("looks like the name of another user"),
        ]);
      }
      expect((await app.send("PUT /api/users/Bo", { name })).status).toBe(409);
      // A lookup by a look-alike name returns no user.
      expect((await app.send(`GET /api/users/${encodeURIComponent(name)}`)).status).toBe(404);
    }
    expect((await app.send("PUT /api/users/Peter", { name: "PETER" })).status).toBe(200);
    await app.call("DELETE /api/users/PETER");
    expect(await app.call("PUT /api/users/Bo", { name: "Реter" })).toMatchObject({
      id: bo.id,
      name: "Реter",
    });
    const race = await Promise.all(
      ["Eve", "Еve", "ЕVЕ", "Ｅve"].map((name) =>
        app.send("POST /api/users", { name, role: "admin", password: WORD })
      ),
    );
    expect(race.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  });

  it("a name in the configuration that looks like the name of a user stops the start", async () => {
    await using dir = await createTempDir();
    const start = (username: string) => openApp({ dataDir: dir.path, config: { auth: { username } } });
    {
      await using app = await start("admin");
      await app.call("POST /api/users", { name: "Olga", role: "admin", password: WORD });
    }
    await expect(start("Оlgа")).rejects.toThrow(/auth\.username: another user has a name that looks like/);
    await using app = await start("root");
    expect((await app.call("GET /api/users")).map(({ name }: { name: string }) => name).sort()).toEqual([
      "Olga",
      "root",
    ]);
    expect(() => configSchema.parse({ auth: { username: "ro\u2800ot" } })).toThrow(/invisible/);
  });

  it("a start that is refused for the operator's name changes neither the password nor the logins", async () => {
    await using dir = await createTempDir();
    {
      await using app = await openApp({ dataDir: dir.path, config: { auth: { username: "admin" } } });
      await createUser(app, "Olga", "viewer");
      await logIn(app, "admin", PASSWORD);
    }
    await expect(
      openApp({ dataDir: dir.path, password: "another password", config: { auth: { username: "Оlgа" } } }),
    ).rejects.toThrow(/looks like/);
    await using app = await openApp({ dataDir: dir.path, config: { auth: { username: "admin" } } });
    expect(await app.db.readValue("select version from credential")).toBe(1);
    expect(await app.db.readValue("select count(*) from refresh_token where user_id = ''")).toBe(1);
    expect(await app.db.readValue("select count(*) from journal where kind = 'auth.password_changed'")).toBe(
      0,
    );
  });

  it("a start with the name of a user records the deletion and leaves no login of that user", async () => {
    await using dir = await createTempDir();
    const start = (username: string) => openApp({ dataDir: dir.path, config: { auth: { username } } });
    let id = "";
    {
      await using app = await start("admin");
      id = (await app.call("POST /api/users", { name: "Olga", role: "viewer", password: WORD })).id;
      await logIn(app, "Olga", WORD);
    }
    await using app = await start("OLGA");
    expect(await app.db.readValue("select count(*) from refresh_token where user_id = ?", [id])).toBe(0);
    expect(await app.db.read("select data from journal where kind = 'user.deleted'")).toEqual([
      { data: JSON.stringify({ user_id: id, name: "Olga" }) },
    ]);
  });

  it("an existing name in another case and an invisible name are refused; names are trimmed (contract 8.1)", async () => {
    await using app = await openApp();
    await app.call("POST /api/users", { name: "Ada", role: "viewer", password: WORD });
    const same = await app.send("POST /api/users", { name: "aDA", role: "viewer", password: WORD });
    expect([same.status, same.body.detail]).toEqual([
      409,
      'Cannot name a user "aDA": another user has this name. Case is ignored.',
    ]);
    expect((await app.send("POST /api/users", { name: "ADMIN", role: "viewer", password: WORD })).status)
      .toBe(409);
    for (const name of ["", " ", "a\u200bb", "a\u202eb", "a\u2066b", "\ufeffa", "a\nb", "x".repeat(201)]) {
      expect([name, (await app.send("POST /api/users", { name, role: "viewer" })).status]).toEqual([
        name,
        400,
      ]);
    }
    expect((await app.send("POST /api/users", { name: "x", role: "root" })).status).toBe(400);
    expect(
      (await app.send("POST /api/users", { name: "x", role: "viewer", password: "short" })).body.detail,
    )
      .toContain("at least 10 characters");
    expect((await app.call("GET /api/users")).map(({ name }: { name: string }) => name)).toEqual([
      "Ada",
      "admin",
    ]);
  });

  it("the configured operator stays an admin, and the last admin cannot be removed (contract 9)", async () => {
    await using app = await openApp();
    for (const change of [{ role: "viewer" }, { disabled: true }, { name: "root" }]) {
      const reply = await app.send("PUT /api/users/admin", change);
      expect([reply.status, reply.body.detail]).toEqual([
        409,
        expect.stringContaining("it is the operator of the configuration and stays an admin"),
      ]);
    }
    expect((await app.send("DELETE /api/users/admin")).status).toBe(409);
    expect((await app.send("PUT /api/users/admin/password", { password: WORD })).status).toBe(409);
    expect(await app.call("GET /api/users/admin")).toMatchObject({ role: "admin", origin: "operator" });
  });

  it("wrong current passwords count for a whole IPv6 network [AUT-4]", async () => {
    const clock = new TestClock("2026-01-05T08:00:10Z");
    await using app = await openApp({ clock, config: { server: { trusted_proxies: ["127.0.0.1"] } } });
    const ada = await createUser(app, "Ada", "operator");
    const guess = (host: number) =>
      app.send("PUT /api/users/Ada/password", { password: "another long word", current_password: "wrong" }, {
        ...ada.headers,
        "x-forwarded-for": `2001:db8::${host}`,
      });
    for (let host = 1; host <= 10; host++) expect((await guess(host)).status).toBe(400);
    expect((await guess(11)).status).toBe(429);
  });

  it("a user with the current password, or a caller with the scope, changes a password; other users' logins stay", async () => {
    await using app = await openApp();
    const ada = await createUser(app, "Ada", "operator");
    const eve = await createUser(app, "Eve", "operator");
    const route = "PUT /api/users/Ada/password";
    const fresh = { password: "another long word" };
    expect((await app.send(route, fresh, eve.headers)).body.required_scope).toBe("write:users");
    expect((await app.send(route, fresh, ada.headers)).body.detail).toContain(
      "current_password: is required",
    );
    const wrong = { ...fresh, current_password: "wrong wrong wrong" };
    expect((await app.send(route, wrong, ada.headers)).body.detail).toContain("current_password: is wrong");
    expect((await app.send(route, { ...fresh, current_password: WORD }, ada.headers)).status).toBe(200);
    expect(await statusOf(app, "GET /api/workers", ada.headers)).toBe(401);
    expect(await statusOf(app, "POST /api/auth/refresh", {}, { refresh_token: ada.refresh })).toBe(401);
    expect(await statusOf(app, "GET /api/workers", eve.headers)).toBe(200);
    expect((await app.send("POST /api/auth/login", { username: "admin", password: PASSWORD })).status).toBe(
      200,
    );
    await logIn(app, "Ada", fresh.password);
  });

  it("no caller exceeds its rights: a token with write:users creates no admin and takes none over", async () => {
    await using app = await openApp();
    const anna = await createUser(app, "Anna", "admin");
    const clerk = await createToken(app, "clerk", ["read:*", "write:users"], anna.headers);
    const calls: [string, unknown][] = [
      ["POST /api/users", { name: "x", role: "admin" }],
      ["PUT /api/users/Anna", { disabled: true }],
      ["PUT /api/users/Anna/password", { password: WORD }],
      ["DELETE /api/users/Anna", undefined],
    ];
    for (const [route, body] of calls) {
      const reply = await app.send(route, body, clerk.headers);
      expect([route, reply.status, reply.body.detail]).toEqual([
        route,
        403,
        expect.stringContaining("the role has more scopes than"),
      ]);
    }
    const viewer = await app.send(
      "POST /api/users",
      { name: "v", role: "viewer", password: WORD },
      clerk.headers,
    );
    expect(viewer.status).toBe(201);
    expect((await app.send("PUT /api/users/v", { role: "admin" }, clerk.headers)).status).toBe(403);
  });
});

describe("tokens (contract 9)", () => {
  it("appear once, are listed without their secret, work within their scopes, and are revoked immediately", async () => {
    await using app = await openApp();
    const ada = await createUser(app, "Ada", "operator");
    const sent = { name: "ci", scopes: ["read:tasks", "write:tasks"] };
    const made = await app.send("POST /api/tokens", sent, { ...ada.headers, "idempotency-key": "t" });
    expect(made.status).toBe(201);
    const { token, ...shown } = made.body;
    expect(shown.expires_at - shown.created_at).toBe(90 * DAY_MS);
    const again = await app.send("POST /api/tokens", sent, { ...ada.headers, "idempotency-key": "t" });
    expect(again.body).toEqual(made.body);
    expect(JSON.stringify(await app.db.read("select * from token, idempotency"))).not.toContain(token);
    expect(await statusOf(app, "GET /api/tasks?message_id=m", buildBearer(token))).toBe(200);
    expect((await app.send("GET /api/workers", undefined, buildBearer(token))).body.required_scope).toBe(
      "read:workers",
    );
    expect((await app.send("GET /api/auth/whoami", undefined, buildBearer(token))).body).toMatchObject({
      subject: "token:ci",
      name: "Ada",
      role: null,
      by: "token",
    });
    const readToken = async () => (await app.send("GET /api/tokens", undefined, ada.headers)).body[0];
    await waitUntil("the use is stored", async () => (await readToken()).last_used_at !== null);
    const listed = await readToken();
    expect(listed).toEqual({ ...shown, last_used_at: expect.any(Number) });
    expect((await app.send(`DELETE /api/tokens/${shown.id}`, undefined, ada.headers)).status).toBe(200);
    expect(await statusOf(app, "GET /api/tasks?message_id=m", buildBearer(token))).toBe(401);
  });

  it("never exceed the rights of their creator, also later ones", async () => {
    await using app = await openApp();
    const ada = await createUser(app, "Ada", "operator");
    for (const scope of ["write:workers", "*:*", "write:*", "*:tasks", "write:users"]) {
      const reply = await app.send("POST /api/tokens", { name: "x", scopes: [scope] }, ada.headers);
      expect([scope, reply.status, reply.body.detail]).toEqual([
        scope,
        403,
        `Cannot give a token the scope ${scope}: you do not hold it yourself`,
      ]);
    }
    const token = await createToken(app, "ci", ["read:*", "write:tasks"], ada.headers);
    const body = { message_id: "m", worker_id: "x", instruction: "x", type: "immediate" };
    expect(await statusOf(app, "POST /api/tasks", token.headers, body)).toBe(400);
    await app.call("PUT /api/users/Ada", { role: "viewer" });
    expect(await statusOf(app, "POST /api/tasks", token.headers, body)).toBe(403);
    expect(await statusOf(app, "GET /api/workers", token.headers)).toBe(200);
    await app.call("PUT /api/users/Ada", { disabled: true });
    expect(await statusOf(app, "GET /api/workers", token.headers)).toBe(401);
    await app.call("PUT /api/users/Ada", { disabled: false });
    expect(await statusOf(app, "GET /api/workers", token.headers)).toBe(401);
    const login = buildBearer((await logIn(app, "Ada")).access_token);
    const later = await createToken(app, "ci", ["read:*"], login);
    expect(await statusOf(app, "GET /api/workers", later.headers)).toBe(200);
    await app.call("DELETE /api/users/Ada");
    expect(await statusOf(app, "GET /api/workers", later.headers)).toBe(401);
  });

  it("expire at their time; a past time is refused; null means never", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock });
    const now = clock.now();
    const past = await app.send("POST /api/tokens", { name: "old", scopes: ["read:*"], expires_at: now });
    expect([past.status, past.body.detail]).toEqual([
      400,
      "expires_at: must be in the future, or null for no expiry",
    ]);
    const make = async (name: string, expires_at: number | null) =>
      buildBearer((await app.call("POST /api/tokens", { name, scopes: ["read:*"], expires_at })).token);
    const [soon, never] = [await make("soon", now + 5_000), await make("never", null)];
    clock.advance(4_000);
    expect(await statusOf(app, "GET /api/workers", soon)).toBe(200);
    clock.advance(1_000);
    expect(await statusOf(app, "GET /api/workers", soon)).toBe(401);
    clock.advance(1_000 * DAY_MS);
    expect(await statusOf(app, "GET /api/workers", never)).toBe(200);
  });

  it("belong to a user: other callers need write:tokens, and a token always needs it", async () => {
    await using app = await openApp();
    const ada = await createUser(app, "Ada", "operator");
    const eve = await createUser(app, "Eve", "viewer");
    const own = await createToken(app, "ada's", ["read:*"], ada.headers);
    expect((await app.send("GET /api/tokens", undefined, eve.headers)).body).toEqual([]);
    expect((await app.send("GET /api/tokens?user=Ada", undefined, eve.headers)).body).toEqual([]);
    expect(await statusOf(app, `DELETE /api/tokens/${own.id}`, eve.headers)).toBe(404);
    expect(await statusOf(app, "GET /api/tokens", own.headers)).toBe(403);
    expect(await statusOf(app, "POST /api/tokens", own.headers, { name: "x", scopes: ["read:*"] })).toBe(
      403,
    );
    expect((await app.call("GET /api/tokens?user=Ada")).map(({ name }: { name: string }) => name)).toEqual([
      "ada's",
    ]);
    const twice = await app.send("POST /api/tokens", { name: "ADA'S", scopes: ["read:*"] }, eve.headers);
    expect(twice.status).toBe(409);
    const clerk = await createToken(app, "clerk", ["write:tokens", "read:tasks"]);
    expect(
      (await app.send("POST /api/tokens", { name: "y", scopes: ["read:tasks"] }, clerk.headers)).status,
    ).toBe(201);
    expect((await app.send("POST /api/tokens", { name: "z", scopes: ["read:*"] }, clerk.headers)).status)
      .toBe(403);
    expect(await statusOf(app, `DELETE /api/tokens/${own.id}`, clerk.headers)).toBe(200);
  });

  it("of ctl are valid only for the service that they name (contract 8.14)", async () => {
    await using app = await openApp();
    const { signToken } = await import("../../../src/base/token.ts");
    const { key, instance } = app.server.parts.authority;
    const claims = { typ: "access" as const, sub: "operator:admin", scope: "*:*", ver: 0 };
    const sign = async (more: object) =>
      buildBearer(await signToken(key, { ...claims, ...more }, 60, Date.now()));
    expect(await statusOf(app, "GET /api/workers", await sign({ instance }))).toBe(200);
    expect(await statusOf(app, "GET /api/workers", await sign({}))).toBe(401);
    expect(await statusOf(app, "GET /api/workers", await sign({ instance: crypto.randomUUID() }))).toBe(401);
    const file = `${app.dataDir}/server.json`;
    expect(JSON.parse(await Deno.readTextFile(file))).toMatchObject({ url: app.url, instance });
    expect(((await Deno.stat(file)).mode ?? 0) & 0o777).toBe(0o600);
  });
});

describe("the audit (contract 9)", () => {
  it("names caller, change, time and address, as a list and as JSON lines; events can be filtered by actor", async () => {
    await using app = await openApp();
    const ada = await createUser(app, "Ada", "operator");
    const from = { "user-agent": "Mozilla/5.0 (test)" };
    await app.call("PUT /api/memory/entry", { scope: "global", key: "k", value: "v" }, {
      ...ada.headers,
      ...from,
    });
    await app.send("POST /api/auth/login", { username: "Ada", password: "wrong wrong wrong" }, from);
    const all = await app.call("GET /api/audit?actor=user:Ada&kind=memory.saved");
    expect(all).toEqual([
      expect.objectContaining({
        kind: "memory.saved",
        actor: "user:Ada",
        address: "127.0.0.1",
        user_agent: "Mozilla/5.0 (test)",
        at: expect.any(Number),
      }),
    ]);
    const lines = await fetchAs(app, "GET /api/audit", { headers: { accept: "application/x-ndjson" } });
    expect(lines.headers.get("content-type")).toBe("application/x-ndjson");
    const entries = (await lines.text()).trim().split("\n").map((line) => JSON.parse(line));
    expect(entries.map(({ kind, actor }) => [kind, actor])).toEqual([
      ["user.created", "user:admin"],
      ["auth.login", "user:Ada"],
      ["memory.saved", "user:Ada"],
      ["auth.refused", "system"],
    ]);
    expect(entries.every(({ address }) => address === "127.0.0.1")).toBe(true);
    const page = await app.send("GET /api/audit?page_size=3");
    expect(page.body).toHaveLength(3);
    expect(page.headers.get("link")).toContain(`after=${page.body[2].seq}`);
    const events = await app.call("GET /api/events?actor=user:Ada", undefined, {
      accept: "application/json",
    });
    expect(events.map(({ kind }: { kind: string }) => kind)).toEqual(["auth.login", "memory.saved"]);
    expect((await app.send("GET /api/audit", undefined, ada.headers)).status).toBe(200);
  });
});

describe("passwords in a query (contract 9)", () => {
  it("are refused with a message that names the body", async () => {
    await using app = await openApp();
    for (const route of ["POST /api/auth/login", "POST /api/auth/refresh", "GET /api/workers"]) {
      const reply = await app.send(
        `${route}?username=admin&password=${encodeURIComponent(PASSWORD)}`,
        route.startsWith("POST") ? {} : undefined,
      );
      expect([route, reply.status, reply.body.detail]).toEqual([
        route,
        400,
        expect.stringContaining("password: must be in the body and never in an address"),
      ]);
      expect(JSON.stringify(reply.body)).not.toContain(PASSWORD);
    }
  });
});

it("a user with the operator's configured name is deleted at the start, with every login and token (contract 9)", async () => {
  await using folder = await createTempDir();
  const first = await openApp({ dataDir: folder.path });
  const ada = await createUser(first, "Ada", "viewer");
  const token = await createToken(first, "ada's", ["read:*"], ada.headers);
  await first.stop();
  await using app = await openApp({ dataDir: folder.path, config: { auth: { username: "Ada" } } });
  expect(await app.call("GET /api/users")).toEqual([
    expect.objectContaining({ name: "Ada", role: "admin", origin: "operator" }),
  ]);
  await app.call("POST /api/auth/login", { username: "Ada", password: PASSWORD });
  const before = await app.send("POST /api/auth/login", { username: "Ada", password: WORD });
  expect(before.status).toBe(401);
  for (const { headers } of [ada, token]) {
    expect((await app.send("GET /api/workers", undefined, headers)).status).toBe(401);
  }
  const refreshed = await app.send("POST /api/auth/refresh", { refresh_token: ada.refresh });
  expect(refreshed.status).toBe(401);
});
