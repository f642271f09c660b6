import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { DatabaseOwner } from "../../src/boot/database_owner.ts";
import { Database } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import { deleteStandby, storeStandbyHeartbeat } from "../../src/store/db/database_owner.ts";
import { TestClock } from "../harness/clock.ts";
import { waitUntil } from "../harness/wait.ts";

const STANDBY = { id: "other", fence: "f", host: "h", pid: 1 };

/** Starts an owner on a test clock, which can lose its database. */
async function startOwner(stopGraceMs = 5_000) {
  const folder = await Deno.makeTempDir({ prefix: "svc-test-" });
  const clock = new TestClock();
  const db = await Database.open(":memory:");
  await migrate(db, clock.now());
  const owner = await DatabaseOwner.open(db, { idPath: join(folder, "id"), clock, stopGraceMs });
  await owner.fence();
  owner.start();
  const standbys = (count: number) =>
    waitUntil(`${count} standbys are known`, async () => {
      if (owner.standbys.length === count) return true;
      clock.advance(5_000);
      await new Promise((resolve) => setTimeout(resolve, 10));
      return owner.standbys.length === count;
    });
  /** Returns the seconds without the database until the owner gives up, or null after a minute. */
  const cutOff = async () => {
    vi.spyOn(db, "write").mockRejectedValue(new Error("cut off"));
    for (let second = 1; second <= 60; second++) {
      clock.advance(1_000);
      await new Promise((resolve) => setTimeout(resolve, 1));
      if (db.broken !== null) return second;
    }
    return null;
  };
  const close = async () => {
    vi.restoreAllMocks();
    await owner.release();
    await db.close();
    await Deno.remove(folder, { recursive: true });
  };
  return { db, clock, standbys, cutOff, [Symbol.asyncDispose]: close };
}

afterEach(() => vi.restoreAllMocks());

describe("DatabaseOwner without its database (contract 18.1, decision 0021)", () => {
  it("continues without a standby", async () => {
    await using owner = await startOwner();
    expect(await owner.cutOff()).toBeNull();
  });

  it("gives up when it had a standby within the hour, even one that was restarting [RUN-4]", async () => {
    await using owner = await startOwner();
    await storeStandbyHeartbeat(owner.db, STANDBY);
    await owner.standbys(1);
    await owner.db.write([deleteStandby(STANDBY.id)]);
    await owner.standbys(0);
    const seconds = await owner.cutOff();
    expect(seconds).toBeGreaterThan(14);
    expect(seconds).toBeLessThanOrEqual(20);
    expect(owner.db.broken).toContain("its standby may take over");
  });

  it("gives up early enough for the stop_grace of its runs", async () => {
    await using owner = await startOwner(13_000);
    await storeStandbyHeartbeat(owner.db, STANDBY);
    await owner.standbys(1);
    expect(await owner.cutOff()).toBeLessThanOrEqual(12);
  });
});
