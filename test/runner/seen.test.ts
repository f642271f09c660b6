import { expect, it } from "vitest";
import { CLAIM_WAIT_MAX_MS } from "../../src/domain/runner.ts";
import { SeenRunners } from "../../src/run/seen_runners.ts";
import { type App, openApp } from "../harness/app.ts";
import { TestClock } from "../harness/clock.ts";
import { FakeRunner } from "../harness/runner.ts";
import { eventually } from "../harness/wait.ts";

async function newRunner(app: App, name: string): Promise<{ id: string; token: string }> {
  return await app.call("POST /api/runners", { name, labels: [] });
}

it("runners that are heard of within a second are noted in one commit, and not those that another process has replaced (contract 18.5)", async () => {
  await using app = await openApp({ inMemory: true });
  const runners = [await newRunner(app, "r1"), await newRunner(app, "r2"), await newRunner(app, "r3")];
  const [one = "", two = "", replaced = ""] = runners.map(({ id }) => id);
  await app.db.write([{ sql: "update runner set epoch = 2, last_seen_at = 1000", args: [] }]);
  let commits = 0;
  const { write } = app.db;
  app.db.write = (statements, ...more) => {
    if (statements.some(({ sql }) => sql.includes("update runner"))) commits++;
    return write.call(app.db, statements, ...more);
  };
  const times = async () => {
    const rows = await app.db.read<{ at: number }>("select last_seen_at as at from runner order by name");
    return rows.map(({ at }) => at);
  };
  const clock = new TestClock(5_000);
  const seen = new SeenRunners({ db: app.db, clock });
  seen.note(one, 2);
  seen.note(two, 2);
  seen.note(replaced, 1);
  clock.advance(500);
  seen.note(one, 2);
  expect([await times(), commits]).toEqual([[1_000, 1_000, 1_000], 0]);
  clock.advance(500);
  await eventually("they are noted", async () => (await times())[0] === 5_500);
  expect([await times(), commits]).toEqual([[5_500, 5_000, 1_000], 1]);
  seen.note(two, 2);
  clock.advance(1_000);
  await eventually("the next one is, too", async () => (await times())[1] === 6_000);
});

it("a runner that claims is noted soon, and at once where it seemed silent (contract 18.5)", async () => {
  await using app = await openApp();
  const runner = new FakeRunner(app, (await newRunner(app, "r1")).token);
  await runner.claim({ wait_ms: 0 });
  const silentFor = (ms: number) =>
    app.db.write([{ sql: "update runner set last_seen_at = ?", args: [Date.now() - ms] }]);
  const seenAt = async () => (await app.call("GET /api/runners/r1")).last_seen_at as number;
  let commits = 0;
  const { write } = app.db;
  app.db.write = (statements, ...more) => {
    if (statements.some(({ sql }) => sql.includes("coalesce(?, max_runs)"))) commits++;
    return write.call(app.db, statements, ...more);
  };
  // One that waited as long as a claim does had none of its own.
  for (
    const [ms, atOnce] of [[6_000, 0], [CLAIM_WAIT_MAX_MS + 1_000, 0], [31_000, 1], [40_000, 1]] as const
  ) {
    const before = Date.now();
    await silentFor(ms);
    commits = 0;
    await runner.claim({ wait_ms: 0 });
    expect(commits).toBe(atOnce);
    if (atOnce === 1) expect(await seenAt()).toBeGreaterThanOrEqual(before);
    else await eventually("it is noted", async () => await seenAt() >= before);
  }
});
