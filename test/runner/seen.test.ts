import { expect, it } from "vitest";
import { CLAIM_WAIT_MAX_MS } from "../../src/domain/workers/runner.ts";
import { openApp } from "../harness/service/app.ts";
import { createFakeRunner } from "../harness/service/runner.ts";

it("a runner that claims repeatedly is noted every five seconds, and stays online while it waits (contract 18.5)", async () => {
  await using app = await openApp();
  const runner = await createFakeRunner(app);
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
  for (const [ms, noted] of [[3_000, 0], [6_000, 1], [CLAIM_WAIT_MAX_MS + 1_000, 1], [40_000, 1]] as const) {
    const before = Date.now();
    await silentFor(ms);
    commits = 0;
    await runner.claim({ wait_ms: 0 });
    expect(commits).toBe(noted);
    expect(await seenAt() >= before).toBe(noted === 1);
  }
});
