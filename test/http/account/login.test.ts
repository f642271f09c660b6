import { describe, expect, it } from "vitest";
import { hashPassword } from "../../../src/api/account/password.ts";
import { openApp, PASSWORD } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { openClient } from "../../harness/service/client.ts";
import { createTempDir, startServer, svc } from "../../harness/service/process.ts";

const LOGIN = "POST /api/auth/login";
const wrong = { username: "admin", password: "wrong" };
const right = { username: "admin", password: PASSWORD };
const proxied = { server: { trusted_proxies: ["127.0.0.1"] } };

// The long run: SVC_TEST_LOGINS=200.
const LOGINS = Number(Deno.env.get("SVC_TEST_LOGINS") ?? 40);
const GUESSES = LOGINS * 5;

describe("password guessing [AUT-4]", () => {
  it("gets ten attempts a minute per address and name, also after a restart; other users can log in [AUT-4]", async () => {
    const clock = new TestClock("2026-01-05T08:00:10Z");
    await using app = await openApp({ clock, config: proxied });
    const from = (address: string) => ({ "x-forwarded-for": address });
    for (let i = 0; i < 9; i++) expect((await app.send(LOGIN, wrong, from("203.0.113.7"))).status).toBe(401);
    // A success clears the count.
    expect((await app.send(LOGIN, right, from("203.0.113.7"))).status).toBe(200);
    const statuses: number[] = [];
    for (let i = 0; i < GUESSES; i++) {
      statuses.push((await app.send(LOGIN, wrong, from("203.0.113.7"))).status);
    }
    expect(statuses.filter((status) => status === 401)).toHaveLength(10);
    expect(statuses.filter((status) => status === 429)).toHaveLength(GUESSES - 10);
    const refused = await app.send(LOGIN, right, from("203.0.113.7"));
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "50"]);
    expect((await app.send(LOGIN, { ...right, username: "other" }, from("203.0.113.7"))).status).toBe(401);
    expect((await app.send(LOGIN, right, from("203.0.113.8"))).status).toBe(200);
    await app.stop();
    await using later = await openApp({ clock, dataDir: app.dataDir, config: proxied });
    expect((await later.send(LOGIN, right, from("203.0.113.7"))).status).toBe(429);
    expect((await later.send(LOGIN, right, from("203.0.113.8"))).status).toBe(200);
    clock.advance(50_000);
    expect((await later.send(LOGIN, right, from("203.0.113.7"))).status).toBe(200);
  });

  it("counts an IPv6 network as one address, and all notations of an IPv4 address as one", async () => {
    const clock = new TestClock("2026-01-05T08:00:10Z");
    await using app = await openApp({ clock, config: proxied });
    const statusFrom = async (address: string, body = wrong) =>
      (await app.send(LOGIN, body, { "x-forwarded-for": address })).status;
    for (let i = 0; i < 10; i++) expect(await statusFrom(`2001:db8:1:2:${i}::${i}`)).toBe(401);
    for (const near of ["2001:db8:1:2::1", "2001:0db8:0001:0002:ffff:1:2:3"]) {
      expect([near, await statusFrom(near, right)]).toEqual([near, 429]);
    }
    const others = ["2001:db8:1:3::1", "2001:db8:1::2", "::1", "::ffff:203.0.113.1", "::ffff:203.0.113.2"];
    for (const far of others) {
      expect([far, await statusFrom(far, right)]).toEqual([far, 200]);
    }
  });

  it("a login that fails in the database does not count as an attempt [AUT-4]", async () => {
    const clock = new TestClock("2026-01-05T08:00:10Z");
    await using app = await openApp({ clock });
    const { db } = app;
    const { read, first } = db;
    const fails = () => Promise.reject(new Error("the database does not answer"));
    for (const broken of [{ read: fails, first }, { read, first: fails }]) {
      Object.assign(db, broken);
      for (let i = 0; i < 12; i++) expect((await app.send(LOGIN, right)).status).toBe(500);
      Object.assign(db, { read, first });
      expect((await app.send(LOGIN, right)).status).toBe(200);
    }
  });

  it("ignores the header of an untrusted proxy", async () => {
    const clock = new TestClock("2026-01-05T08:00:10Z");
    await using app = await openApp({ clock });
    for (let i = 0; i < 12; i++) await app.send(LOGIN, wrong, { "x-forwarded-for": `203.0.113.${i}` });
    expect((await app.send(LOGIN, right, { "x-forwarded-for": "203.0.113.99" })).status).toBe(429);
  });
});

it("accepts a password hash with a high cost (contract 2)", async () => {
  const password_hash = await hashPassword(PASSWORD, { ln: 18, r: 8, p: 1 });
  await using app = await openApp({ config: { auth: { password_hash } } });
  expect((await app.send(LOGIN, right)).status).toBe(200);
});

describe("the first start [AUT-8]", () => {
  it("creates an unknown password, and a private signing key [AUT-8]", async () => {
    const seen = new Set<string>();
    for (let i = 0; i < 2; i++) {
      await using folder = await createTempDir();
      await using server = await startServer({ dataDir: folder.path });
      const [, password = ""] = /with the password (\S+)/.exec(server.stderr) ?? [];
      expect(password).toMatch(/^[a-z2-9]{24}$/);
      const key = await Deno.readTextFile(`${folder.path}/secret.key`);
      expect(key.trim()).toMatch(/^[\w-]{64}$/);
      expect(((await Deno.stat(`${folder.path}/secret.key`)).mode ?? 0) & 0o777).toBe(0o600);
      for (const guess of ["", "admin", "password", "svc", "changeme"]) {
        const body = JSON.stringify({ username: "admin", password: guess });
        const headers = { "content-type": "application/json" };
        const response = await fetch(`${server.url}/api/auth/login`, { method: "POST", headers, body });
        await response.body?.cancel();
        expect([400, 401]).toContain(response.status);
      }
      expect((await openClient(server.url, password)).token).toMatch(/^eyJ/);
      seen.add(password).add(key);
    }
    expect(seen.size).toBe(4);
  });

  it("refuses a short key, and treats an empty password as missing [AUT-8]", async () => {
    const starts: [env: Record<string, string>, file: string | null, code: number, words: RegExp][] = [
      [{ SVC_AUTH__JWT_SECRET: "short" }, null, 2, /auth\.jwt_secret: must be at least 32 characters/],
      [{ SVC_AUTH__JWT_SECRET: "x".repeat(31) }, null, 2, /at least 32 characters/],
      [{}, "too short\n", 1, /secret\.key: must be at least 32 bytes/],
      [{}, "\n", 1, /secret\.key: must be at least 32 bytes/],
      [{ SVC_AUTH__PASSWORD_HASH: "plain text" }, null, 2, /auth\.password_hash: must be a scrypt hash/],
      [{ SVC_AUTH_PASSWORD_FILE: "/no/such/file" }, null, 2, /SVC_AUTH_PASSWORD_FILE/],
    ];
    await Promise.all(starts.map(async ([env, file, code, words]) => {
      await using folder = await createTempDir();
      if (file !== null) await Deno.writeTextFile(`${folder.path}/secret.key`, file, { mode: 0o600 });
      const ran = await svc(["serve"], { dataDir: folder.path, env });
      expect([ran.code, ran.err]).toEqual([code, expect.stringMatching(words)]);
    }));
    await using folder = await createTempDir();
    await using server = await startServer({ dataDir: folder.path, env: { SVC_AUTH_PASSWORD: "" } });
    expect(server.stderr).toMatch(/with the password [a-z2-9]{24}\n/);
  });
});

it("listens on loopback, sets no cookie, and accepts no other origin, on all routes [AUT-11]", async () => {
  await using folder = await createTempDir();
  await using server = await startServer({ dataDir: folder.path, env: { SVC_AUTH_PASSWORD: "pass" } });
  expect(new URL(server.url).hostname).toBe("127.0.0.1");
  await using app = await openApp({ config: { server: { allowed_hosts: ["Svc.example.org"] } } });
  const foreign = { origin: "https://evil.example", "sec-fetch-site": "cross-site" };
  const targets = [
    "GET /api/workers",
    "POST /api/workers",
    "OPTIONS /api/workers",
    "GET /openapi.json",
    "GET /livez",
  ];
  for (const route of targets) {
    const reply = await app.send(route, route.startsWith("POST") ? { name: "x" } : undefined, {
      ...foreign,
      "access-control-request-method": "DELETE",
    });
    const names = [...reply.headers.keys()];
    expect([route, names.filter((name) => name.startsWith("access-control-") || name === "set-cookie")])
      .toEqual([route, []]);
  }
  const hosts = [
    "evil.example",
    "127.0.0.1.nip.io",
    "localhost.",
    "localhost.evil.example",
    "svc.example.org.evil.example",
    "svc",
    "[::1].evil.example",
    "0x7f000001",
    "",
  ];
  for (const host of hosts) {
    const status = (await app.send("GET /api/workers", undefined, { host: host === "" ? " " : host })).status;
    expect([host, status]).toEqual([host, 403]);
  }
  for (const host of ["localhost", "127.0.0.1:9", "[::1]:80", "svc.example.org", "SVC.Example.org:80"]) {
    expect([host, (await app.send("GET /api/workers", undefined, { host })).status]).toEqual([host, 200]);
  }
});
