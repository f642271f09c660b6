import { createECDH } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type App, openApp, PASSWORD } from "../../harness/service/app.ts";
import type { Json } from "../../harness/service/client.ts";
import {
  buildBearer,
  createToken,
  createUser,
  logIn,
  SUBSCRIPTION,
  type TestCaller,
  WORD,
} from "../../harness/model/people.ts";

function buildDevice(path: string, fields: Json = {}): Json {
  const p256dh = createECDH("prime256v1").generateKeys("base64url");
  const keys = { ...SUBSCRIPTION.keys, p256dh };
  return { endpoint: `https://push.example.org/${path}`, expirationTime: null, keys, tell: {}, ...fields };
}

async function add(app: App, path: string, { headers }: Pick<TestCaller, "headers">): Promise<Json> {
  return await app.call("POST /api/push/devices", buildDevice(path), { ...headers });
}

async function countDevices(app: App): Promise<number> {
  return (await app.call("GET /api/push/devices")).length;
}

describe("/api/push/devices (contract 30)", () => {
  it("adds a device with everything off, and changes it by its endpoint", async () => {
    await using app = await openApp({ inMemory: true });
    const ada = await createUser(app, "ada", "viewer");
    const device = buildDevice("one");
    const made = await app.send("POST /api/push/devices", device, ada.headers);
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({
      ...{ user_id: ada.id, user_name: "ada", name: "push.example.org", service: "push.example.org" },
      ...{ tell: { needs_you: false, finished: false, text: false }, last_push: "", last_push_at: null },
    });
    // The secrets of the subscription are in no answer.
    expect(JSON.stringify(made.body)).not.toMatch(/\/one|p256dh|auth/);
    const changed = { ...device, tell: { finished: true }, name: "Phone" };
    const { id } = await app.call("POST /api/push/devices", changed, ada.headers);
    expect(id).toBe(made.body.id);
    const [listed] = await app.call("GET /api/push/devices", undefined, ada.headers);
    expect(listed).toMatchObject({ id, name: "Phone", tell: { needs_you: false, finished: true } });
    expect(await countDevices(app)).toBe(1);
    await app.call(`DELETE /api/push/devices/${id}`, undefined, ada.headers);
    expect(await countDevices(app)).toBe(0);
  });

  it("shows and deletes only the caller's devices, and with write:users those of all", async () => {
    await using app = await openApp({ inMemory: true });
    const [ada, bob] = [await createUser(app, "ada", "operator"), await createUser(app, "bob", "operator")];
    const one = await add(app, "one", ada);
    await add(app, "two", bob);
    const names = async (query: string, headers?: Record<string, string>) =>
      (await app.call(`GET /api/push/devices${query}`, undefined, headers)).map((each: Json) =>
        each.user_name
      );
    expect(await names("", ada.headers)).toEqual(["ada"]);
    expect(await names("?user=bob", ada.headers)).toEqual([]);
    expect(await names("")).toEqual(["bob", "ada"]);
    expect(await names("?user=ada")).toEqual(["ada"]);
    const foreign = await app.send(`DELETE /api/push/devices/${one.id}`, undefined, bob.headers);
    expect(foreign.status).toBe(404);
    await app.call(`DELETE /api/push/devices/${one.id}`);
    expect(await names("")).toEqual(["bob"]);
  });

  it("moves the subscription of a browser to the user who has the browser now", async () => {
    await using app = await openApp({ inMemory: true });
    const [ada, bob] = [await createUser(app, "ada", "viewer"), await createUser(app, "bob", "viewer")];
    await add(app, "shared", ada);
    await add(app, "shared", bob);
    expect((await app.call("GET /api/push/devices")).map((one: Json) => one.user_name)).toEqual(["bob"]);
  });

  it("refuses tokens without a login, wrong keys, and more than 20 devices of a user", async () => {
    await using app = await openApp({ inMemory: true });
    const ada = await createUser(app, "ada", "admin");
    const token = await createToken(app, "ci", ["*:*"], ada.headers);
    // The token that `ctl` signs has no login, either.
    for (const headers of [token.headers, {}]) {
      const { status, body } = await app.send("POST /api/push/devices", buildDevice("x"), headers);
      expect([status, body.detail]).toEqual([403, expect.stringMatching(/^Cannot add a device: .*console/)]);
    }
    const refusals = [
      [{ keys: { ...SUBSCRIPTION.keys, p256dh: `BA${"A".repeat(85)}` } }, "keys.p256dh"],
      [{ keys: { ...SUBSCRIPTION.keys, auth: "short" } }, "keys.auth"],
      [{ endpoint: "ftp://push.example.org/x" }, "endpoint"],
      [{ endpoint: "http://push.example.org/x" }, "endpoint"],
      [{ tell: { everything: true } }, "tell"],
    ] as const;
    for (const [fields, path] of refusals) {
      const { status, body } = await app.send(
        "POST /api/push/devices",
        buildDevice("x", fields),
        ada.headers,
      );
      expect([status, body.errors[0].path]).toEqual([400, expect.stringMatching(path)]);
    }
    for (let i = 0; i < 20; i++) await add(app, `device-${i}`, ada);
    const { status, body } = await app.send("POST /api/push/devices", buildDevice("more"), ada.headers);
    expect([status, body.detail]).toEqual([409, expect.stringContaining("20 devices")]);
  });

  it("needs an address that browsers accept for notifications", async () => {
    for (
      const [public_url, status] of [
        ["http://svc.example.org", 409],
        ["https://svc.example.org", 200],
        ["http://localhost:8080", 200],
      ] as const
    ) {
      await using app = await openApp({ inMemory: true, config: { server: { public_url } } });
      const key = await app.send("GET /api/push/key");
      expect([public_url, key.status]).toEqual([public_url, status]);
      if (status === 409) expect(key.body.detail).toContain("Set server.public_url");
    }
  });

  it("keeps its key over restarts", async () => {
    const dataDir = await Deno.makeTempDir({ prefix: "svc-test-" });
    const keys: string[] = [];
    for (let start = 0; start < 2; start++) {
      await using app = await openApp({ dataDir });
      keys.push((await app.call("GET /api/push/key")).public_key);
    }
    await Deno.remove(dataDir, { recursive: true });
    expect(keys[0]).toBe(keys[1]);
    expect(keys[0]).toMatch(/^B[\w-]{86}$/);
  });
});

describe("a device ends (contract 30)", () => {
  /** Adds a device for a new user, and runs `end`. Returns the number of devices after it. */
  async function countAfter(end: (app: App, user: TestCaller & { refresh: string }) => Promise<unknown>) {
    await using app = await openApp({ inMemory: true });
    const user = await createUser(app, "ada", "operator");
    await add(app, "phone", user);
    expect(await countDevices(app)).toBe(1);
    await end(app, user);
    return await countDevices(app);
  }

  it("with the logout there, and with no other logout", async () => {
    const logOut = (app: App, refresh_token: string) => app.call("POST /api/auth/logout", { refresh_token });
    expect(await countAfter((app, { refresh }) => logOut(app, refresh))).toBe(0);
    const other = async (app: App) => await logOut(app, (await logIn(app, "ada")).refresh_token);
    expect(await countAfter(other)).toBe(1);
  });

  it("when its user is disabled or deleted, or gets a new password", async () => {
    expect(await countAfter((app) => app.call("PUT /api/users/ada", { disabled: true }))).toBe(0);
    expect(await countAfter((app) => app.call("DELETE /api/users/ada"))).toBe(0);
    expect(await countAfter((app) => app.call("PUT /api/users/ada/password", { password: `${WORD} 2` })))
      .toBe(0);
    expect(await countAfter((app) => app.call("PUT /api/users/ada", { role: "viewer" }))).toBe(1);
  });

  it("when the operator gets a new password, or the signing key is replaced", async () => {
    for (const route of ["PUT /api/system/password", "POST /api/system/rotate-key"]) {
      await using app = await openApp({ config: { auth: { password_hash: "" } } });
      const password = app.server.generatedPassword ?? "";
      const { access_token } = await logIn(app, "admin", password);
      await add(app, "phone", { headers: buildBearer(access_token) });
      const words = { current_password: password, new_password: `${PASSWORD} 2` };
      await app.call(route, route.startsWith("PUT") ? words : {});
      expect([route, await countDevices(app)]).toEqual([route, 0]);
    }
  });

  it("at the registration with an access token whose login has ended", async () => {
    await using app = await openApp({ inMemory: true });
    const ada = await createUser(app, "ada", "viewer");
    await app.call("POST /api/auth/logout", { refresh_token: ada.refresh });
    const { status, body } = await app.send("POST /api/push/devices", buildDevice("late"), ada.headers);
    expect([status, body.detail]).toEqual([409, expect.stringContaining("its login has ended")]);
  });
});
