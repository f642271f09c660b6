import { join } from "node:path";
import { expect, it } from "vitest";
import { digest } from "../../src/base/digest.ts";
import { keyBytes, signToken } from "../../src/base/token.ts";
import { Database } from "../../src/store/database.ts";
import { migrate, MIGRATIONS } from "../../src/store/migrate.ts";
import { openApp, PASSWORD, PASSWORD_HASH } from "../harness/app.ts";
import { bearer } from "../harness/people.ts";
import { tempDir } from "../harness/process.ts";

const KEY = "a key from before there were users, long enough";
const REFRESH = "a refresh token from before there were users";

it(
  "after an upgrade the password and the logins from before go on, and the operator is a user (contract 9)",
  async () => {
    await using folder = await tempDir();
    const people = MIGRATIONS.findIndex(({ name }) => name.endsWith("_people"));
    const db = await Database.open(`file:${join(folder.path, "svc.db")}`);
    await migrate(db, 1, MIGRATIONS.slice(0, people));
    const now = Date.now();
    await db.write([
      {
        sql: `insert into credential (username, password_hash, source, version, updated_at)
        values ('root', ?, 'operator', 3, ?)`,
        args: [PASSWORD_HASH, now],
      },
      {
        sql: `insert into refresh_token (id, token_hash, username, version, created_at, expires_at)
        values ('01a1fd23-4a4c-746f-99ac-8860e2641168', ?, 'root', 3, ?, ?)`,
        args: [digest(REFRESH), now, now + 60_000],
      },
    ]);
    await db.close();
    const auth = { username: "root", password_hash: "", jwt_secret: KEY };
    await using app = await openApp({ dataDir: folder.path, config: { auth } });
    const claims = { typ: "access" as const, sub: "operator:root", scope: "*:*", ver: 3 };
    const access = bearer(await signToken(keyBytes(KEY), claims, 900, now));
    expect((await app.send("GET /api/auth/whoami", undefined, access)).body).toMatchObject({
      subject: "user:root",
      role: "admin",
      by: "login",
    });
    const refreshed = await app.call("POST /api/auth/refresh", { refresh_token: REFRESH });
    expect((await app.send("GET /api/workers", undefined, bearer(refreshed.access_token))).status).toBe(200);
    await app.call("POST /api/auth/login", { username: "root", password: PASSWORD });
    expect(await app.call("GET /api/users")).toEqual([
      expect.objectContaining({ name: "root", role: "admin", origin: "operator", disabled: false }),
    ]);
    // Another password ends them all, as ever.
    const change = { current_password: PASSWORD, new_password: "a password of today" };
    expect((await app.send("PUT /api/system/password", change, access)).status).toBe(200);
    expect((await app.send("GET /api/workers", undefined, access)).status).toBe(401);
    expect((await app.send("POST /api/auth/refresh", { refresh_token: REFRESH })).status).toBe(401);
  },
  180_000,
);

it(
  "a name that the configuration gives the operator is the operator's, whoever had it (contract 9)",
  async () => {
    await using folder = await tempDir();
    const first = await openApp({ dataDir: folder.path });
    await first.call("POST /api/users", { name: "Ada", role: "viewer", password: "a long enough word" });
    await first.stop();
    await using app = await openApp({ dataDir: folder.path, config: { auth: { username: "Ada" } } });
    expect(await app.call("GET /api/users")).toEqual([
      expect.objectContaining({ name: "Ada", role: "admin", origin: "operator" }),
    ]);
    await app.call("POST /api/auth/login", { username: "Ada", password: PASSWORD });
    const before = await app.send("POST /api/auth/login", {
      username: "Ada",
      password: "a long enough word",
    });
    expect(before.status).toBe(401);
  },
  180_000,
);
