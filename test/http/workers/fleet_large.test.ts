import { expect, it } from "vitest";
import { type App, openApp } from "../../harness/service/app.ts";
import { fetchAs } from "../requests.ts";

// SVC_TEST_SCHEDULES=10000 tests the largest fleet.
const SCHEDULES = Number(Deno.env.get("SVC_TEST_SCHEDULES") ?? 1_000);

/** Builds a fleet with SCHEDULES schedules, and with workers, budgets and memory. */
function fleetOf(schedules: number) {
  return {
    departments: [{ name: "News" }, { name: "Sport", parent: "News" }],
    workers: Array.from({ length: 20 }, (_, n) => ({ name: `Worker ${n}`, departments: ["Sport"] })),
    schedules: Array.from({ length: schedules }, (_, n) => ({
      name: `Schedule ${n}`,
      worker: `Worker ${n % 20}`,
      instruction: `Do the ${n}th thing`,
      cron: `${n % 60} ${n % 24} * * *`,
      time_zone: n % 2 === 0 ? "Europe/Berlin" : "UTC",
    })),
    budgets: [{ name: "All", unit: "runs", limit: 500, period: "24h" }],
    memory: { tone: "friendly" },
  };
}

async function exported(app: App): Promise<string> {
  const response = await fetchAs(app, "GET /api/fleet");
  expect(response.status).toBe(200);
  return await response.text();
}

it(`${SCHEDULES} schedules are applied together, listed, edited and paused; export, apply and export give the same bytes (contract 15, contract 16) [FLT-1]`, async () => {
  await using app = await openApp({ inMemory: true });
  const { changes } = await app.call("POST /api/fleet/apply", { fleet: fleetOf(SCHEDULES) });
  expect(changes).toHaveLength(2 + 20 + SCHEDULES + 1 + 1);
  const seen = new Set<string>();
  let last = 0;
  for (let next: string | null = "/api/schedules?page_size=100"; next !== null;) {
    const page = await app.send(`GET ${next}`);
    if (seen.size === 0) expect(page.headers.get("x-total-count")).toBe(String(SCHEDULES));
    for (const { id, next_run_at } of page.body) {
      expect(next_run_at).toBeGreaterThanOrEqual(last);
      last = next_run_at;
      seen.add(id);
    }
    next = /<([^>]+)>; rel="next"/.exec(page.headers.get("link") ?? "")?.[1] ?? null;
  }
  expect(seen.size).toBe(SCHEDULES);
  const [first = "", second = ""] = seen;
  await app.call(`PUT /api/tasks/${first}`, { cron: "0 5 * * 1", instruction: "Something else" });
  await app.call(`PUT /api/tasks/${second}`, { paused: true });
  const paused = await app.send("GET /api/schedules?paused=true");
  expect(paused.body.map(({ id }: { id: string }) => id)).toEqual([second]);
  const bytes = await exported(app);
  expect(bytes).toContain('"cron":"0 5 * * 1"');
  await using other = await openApp({ inMemory: true });
  await other.call("POST /api/fleet/apply", { fleet: JSON.parse(bytes) });
  expect(await exported(other) === bytes, "the same bytes").toBe(true);
  expect((await other.call("POST /api/fleet/apply", { fleet: JSON.parse(bytes) })).changes).toEqual([]);
});
