import { describe, expect, it } from "vitest";
import { hashPassword } from "../../src/api/password.ts";
import { openApp, PASSWORD } from "../harness/app.ts";
import { TestClock } from "../harness/clock.ts";
import { client } from "../harness/client.ts";
import { patient } from "../harness/patience.ts";
import { startServer, tempDir } from "../harness/process.ts";

const LOGIN = "POST /api/auth/login";
const FLOOD_CONNECTIONS = 24;
const FLOOD_MS = 6_000;

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;

async function loginFrom(url: string, address: string, body: object): Promise<number> {
  const response = await fetch(`${url}/api/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-forwarded-for": address },
    body: JSON.stringify(body),
  });
  await response.body?.cancel();
  return response.status;
}

it(
  "24 connections that try random names from one address keep nobody else out, and writes stay quick (reliability AUT-4, AUT-5)",
  async () => {
    await using folder = await tempDir();
    const env = {
      SVC_AUTH__PASSWORD_HASH: await hashPassword(PASSWORD, { ln: 15, r: 8, p: 1 }),
      SVC_SERVER__TRUSTED_PROXIES: "127.0.0.1",
    };
    await using server = await startServer({ dataDir: folder.path, env });
    const api = await client(server.url, PASSWORD);
    const write = async () => {
      const started = performance.now();
      await api.call("POST /api/workers", { name: "Ada" });
      return performance.now() - started;
    };
    const before: number[] = [];
    for (let i = 0; i < 20; i++) before.push(await write());
    const until = performance.now() + FLOOD_MS;
    let tries = 0;
    let hashed = 0;
    const flood = Promise.all(Array.from({ length: FLOOD_CONNECTIONS }, async () => {
      while (performance.now() < until) {
        const body = { username: crypto.randomUUID(), password: "guess" };
        if (await loginFrom(server.url, "203.0.113.66", body) === 401) hashed++;
        tries++;
        // The client shares its two cores with the server.
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }));
    const statuses: number[] = [];
    const writes: number[] = [];
    while (performance.now() < until) {
      statuses.push(await loginFrom(server.url, "203.0.113.1", { username: "admin", password: PASSWORD }));
      writes.push(await write());
    }
    await flood;
    expect(tries).toBeGreaterThan(100);
    expect(hashed).toBeLessThanOrEqual(60);
    expect(statuses.length).toBeGreaterThanOrEqual(2);
    expect([...new Set(statuses)]).toEqual([200]);
    expect(median(writes)).toBeLessThan(Math.max(patient(50), 5 * median(before)));
    const refusals = await api.call("GET /api/events?kind=auth.refused&after=0&page_size=100", undefined, {
      accept: "application/json",
    });
    expect(refusals.length).toBeLessThanOrEqual(hashed);
  },
  180_000,
);

describe("a try that was not checked is no failed one (reliability AUT-4)", () => {
  it("a right login right after a flood of its own succeeds: what was refused for want of room does not count", async () => {
    const password_hash = await hashPassword(PASSWORD, { ln: 14, r: 8, p: 1 });
    const clock = new TestClock("2026-01-05T08:00:10Z");
    await using app = await openApp({ clock, config: { auth: { password_hash } } });
    const right = { username: "admin", password: PASSWORD };
    const flood = await Promise.all(Array.from({ length: 100 }, () => app.send(LOGIN, right)));
    const statuses = flood.map(({ status }) => status);
    expect(statuses).toContain(429);
    expect((await app.send(LOGIN, right)).status).toBe(200);
  });

  it("names at random from one network are three times the limit of one, and then none is hashed", async () => {
    const clock = new TestClock("2026-01-05T08:00:10Z");
    await using app = await openApp({ clock });
    const statuses: number[] = [];
    for (let i = 0; i < 40; i++) {
      statuses.push((await app.send(LOGIN, { username: `name${i}`, password: "x" })).status);
    }
    expect(statuses).toEqual([...Array(30).fill(401), ...Array(10).fill(429)]);
    clock.advance(50_000);
    expect((await app.send(LOGIN, { username: "admin", password: PASSWORD })).status).toBe(200);
  });

  it("what has met its limit is stored at once, so that a kill is no way around it", async () => {
    const clock = new TestClock("2026-01-05T08:00:10Z");
    await using app = await openApp({ clock });
    const stored = () => app.db.read("select who from login_failure");
    for (let i = 0; i < 9; i++) await app.send(LOGIN, { username: "admin", password: "x" });
    expect(await stored()).toHaveLength(0);
    await app.send(LOGIN, { username: "admin", password: "x" });
    expect((await stored()).length).toBeGreaterThan(0);
  });
});

it("logins that failed while the clock was two days ahead lock nobody out when it is right again (reliability AUT-4)", async () => {
  const ahead = new TestClock("2026-01-07T08:00:10Z");
  const first = await openApp({ clock: ahead });
  for (let i = 0; i < 12; i++) await first.send(LOGIN, { username: "admin", password: "wrong" });
  expect((await first.send(LOGIN, { username: "admin", password: PASSWORD })).status).toBe(429);
  ahead.jump("2026-01-05T08:00:10Z");
  expect((await first.send(LOGIN, { username: "admin", password: PASSWORD })).status).toBe(200);
  ahead.jump("2026-01-07T08:00:20Z");
  for (let i = 0; i < 12; i++) await first.send(LOGIN, { username: "admin", password: "wrong" });
  await first.stop();
  const clock = new TestClock("2026-01-05T08:00:10Z");
  await using later = await openApp({ clock, dataDir: first.dataDir });
  expect((await later.send(LOGIN, { username: "admin", password: PASSWORD })).status).toBe(200);
});
