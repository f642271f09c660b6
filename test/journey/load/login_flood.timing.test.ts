import { expect, it, vi } from "vitest";
import { hashPassword } from "../../../src/api/account/password.ts";
import { PASSWORD } from "../../harness/service/app.ts";
import { World } from "../../harness/model/scenario.ts";

vi.setConfig({ testTimeout: 180_000 });

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

it("24 connections that try random names from one address lock no other client out, and writes stay quick [AUT-4, AUT-5]", async () => {
  const env = {
    SVC_AUTH__PASSWORD_HASH: await hashPassword(PASSWORD, { ln: 15, r: 8, p: 1 }),
    SVC_SERVER__TRUSTED_PROXIES: "127.0.0.1",
  };
  await using world = await World.serve({ env, password: PASSWORD });
  const { server, api } = world;
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
      // The client shares two cores with the server.
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
  expect(median(writes)).toBeLessThan(Math.max(50, 5 * median(before)));
  const refusals = await api.call("GET /api/events?kind=auth.refused&after=0&page_size=100", undefined, {
    accept: "application/json",
  });
  expect(refusals.length).toBeLessThanOrEqual(hashed);
});
