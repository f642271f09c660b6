import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp, PASSWORD } from "../../harness/service/app.ts";
import { buildBearer, createToken, createUser, logIn } from "../../harness/model/people.ts";
import { startRun } from "../../harness/service/run.ts";

const ROTATE = "POST /api/system/rotate-key";

describe("a new signing key (contract 8.16)", () => {
  it("a token verified during the change is not cached as valid", async () => {
    await using app = await openApp();
    const { token } = await app.call("POST /api/tokens", { name: "ci", scopes: ["read:*"] });
    const { authority } = app.server.parts;
    const going = authority.authenticate(token);
    authority.replaceKey(crypto.getRandomValues(new Uint8Array(32)));
    expect(await going).toBe(null);
    expect(await authority.authenticate(token)).toBe(null);
  });

  it("ends all logins, tokens and streams; new ones are valid, also after a restart", async () => {
    await using app = await openApp();
    const file = join(app.dataDir, "secret.key");
    const before = await Deno.readTextFile(file);
    const ada = await createUser(app, "Ada", "admin");
    const token = await createToken(app, "ci", ["read:*"], ada.headers);
    const admin = await logIn(app, "admin", PASSWORD);
    const stream = await fetch(`${app.url}/api/events`, { headers: ada.headers });
    const said = stream.text();
    const key = await app.token();
    expect(await app.call(ROTATE, {})).toEqual({ rotated_at: expect.any(Number) });
    for (const old of [ada.token, token.token, admin.access_token, key]) {
      expect((await app.send("GET /api/workers", undefined, buildBearer(old))).status).toBe(401);
    }
    for (const refresh_token of [ada.refresh, admin.refresh_token]) {
      expect((await app.send("POST /api/auth/refresh", { refresh_token })).status).toBe(401);
    }
    expect(await said).toContain('data: {"reason":"revoked"}');
    const after = await Deno.readTextFile(file);
    expect(after).not.toBe(before);
    expect(((await Deno.stat(file)).mode ?? 0) & 0o777).toBe(0o600);
    const fresh = buildBearer((await logIn(app, "Ada")).access_token);
    expect((await app.send("GET /api/tokens", undefined, fresh)).body).toEqual([]);
    await app.stop();
    await using later = await openApp({ dataDir: app.dataDir });
    expect((await later.send("GET /api/workers", undefined, fresh)).status).toBe(200);
  });

  it("is refused while runs are active, from runs, and with a configured key, and changes nothing", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const before = await Deno.readTextFile(join(app.dataDir, "secret.key"));
    const run = await startRun(app, ["*:*"]);
    const open = await app.send(ROTATE, {});
    expect([open.status, open.body.detail]).toEqual([409, expect.stringContaining("runs are open")]);
    expect((await app.send(ROTATE, {}, run.headers)).status).toBe(403);
    expect((await app.send("GET /api/workers", undefined, run.headers)).status).toBe(200);
    expect(await Deno.readTextFile(join(app.dataDir, "secret.key"))).toBe(before);
    expect([...Deno.readDirSync(app.dataDir)].filter(({ name }) => name.endsWith(".part"))).toEqual([]);
    await using fixed = await openApp({
      config: { auth: { jwt_secret: "a key of the configuration, long enough" } },
    });
    const set = await fixed.send(ROTATE, {});
    expect([set.status, set.body.detail]).toEqual([
      409,
      expect.stringContaining("auth.jwt_secret sets it"),
    ]);
  });
});
