import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { client } from "../harness/client.ts";
import { startServer, svc, tempDir } from "../harness/process.ts";

const LOGINS = 200;

async function login(url: string, username: string, password: string): Promise<Response> {
  const body = JSON.stringify({ username, password });
  return await fetch(`${url}/api/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
}

it(`${LOGINS} logins at once: a few are looked at, the rest is told when to come back, and nobody else waits (promises AUT-5)`, async () => {
  await using folder = await tempDir();
  await using server = await startServer({ dataDir: folder.path, env: { SVC_AUTH_PASSWORD: "pass" } });
  const api = await client(server.url);
  const before = await server.memory();
  let most = before;
  const waits: number[] = [];
  let going = true;
  const others = (async () => {
    while (going) {
      const started = performance.now();
      await api.call("GET /api/workers");
      waits.push(performance.now() - started);
      most = Math.max(most, await server.memory());
    }
  })();
  // Another name each time, so that it is not the count of failures that ends it.
  const answers = await Promise.all(Array.from({ length: LOGINS }, async (_, i) => {
    const response = await login(server.url, `name${i}`, "wrong");
    await response.body?.cancel();
    return `${response.status} ${response.headers.get("retry-after")}`;
  }));
  going = false;
  await others;
  const looked = answers.filter((answer) => answer === "401 null").length;
  expect(looked).toBeGreaterThanOrEqual(10);
  expect(answers.filter((answer) => answer === "429 2")).toHaveLength(LOGINS - looked);
  waits.sort((a, b) => a - b);
  expect(waits.length).toBeGreaterThan(20);
  expect(waits[Math.floor(waits.length * 0.99)]).toBeLessThan(250);
  // Two hashes at a time take 64 MB each.
  expect(most - before).toBeLessThan(200e6);
  expect((await login(server.url, "admin", "pass")).status).toBe(200);
});

describe("secrets at the start (promises AUT-8)", () => {
  it.each([
    ["a short key", { SVC_AUTH__JWT_SECRET: "x".repeat(31) }, /auth\.jwt_secret: must be at least 32/],
    [
      "a hash that is none",
      { SVC_AUTH__PASSWORD_HASH: "pass" },
      /auth\.password_hash: must be a scrypt hash/,
    ],
  ])("%s is refused, and nothing is made", async (_what, env, words) => {
    await using folder = await tempDir();
    const dataDir = join(folder.path, "data");
    const started = await svc(["serve"], { dataDir: folder.path, env: { ...env, SVC_DATA_DIR: dataDir } });
    expect([started.code, started.out]).toEqual([2, ""]);
    expect(started.err).toMatch(words);
    await expect(Deno.stat(dataDir)).rejects.toThrow(Deno.errors.NotFound);
  });

  it.each([
    ["short", "x".repeat(31)],
    ["empty", ""],
  ])("a key file that is %s is refused, and left as it is", async (_what, content) => {
    await using folder = await tempDir();
    await Deno.writeTextFile(join(folder.path, "secret.key"), content, { mode: 0o600 });
    const started = await svc(["serve"], { dataDir: folder.path });
    expect(started.code).toBe(1);
    expect(started.err).toMatch(/secret\.key.*at least 32 bytes.*openssl rand/);
    expect(await Deno.readTextFile(join(folder.path, "secret.key"))).toBe(content);
  });

  it("each first start makes a key and a password of its own, for this user alone; there is no standard one", async () => {
    const made: { key: string; password: string }[] = [];
    for (let i = 0; i < 2; i++) {
      await using folder = await tempDir();
      await using server = await startServer({ dataDir: folder.path, env: { SVC_AUTH_PASSWORD: "" } });
      const path = join(folder.path, "secret.key");
      expect((await Deno.stat(path)).mode ?? 0).toBe(0o100600);
      const password = /password[^\n]*?([a-z2-9]{24})/.exec(server.stderr)?.[1] ?? "";
      expect((await login(server.url, "admin", password)).status).toBe(200);
      for (const guess of ["", "admin", "password", "svc", "changeme"]) {
        expect([guess, (await login(server.url, "admin", guess)).status]).not.toEqual([guess, 200]);
      }
      made.push({ key: await Deno.readTextFile(path), password });
    }
    expect(made[0]?.key.length).toBeGreaterThan(43);
    expect(made[0]?.key).not.toBe(made[1]?.key);
    expect(made[0]?.password).not.toBe(made[1]?.password);
  });
});
