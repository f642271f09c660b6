import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { DatabaseOwner } from "../../src/boot/database_owner.ts";
import { Database } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import { beatStandby, leaveStandby } from "../../src/store/db/database_owner.ts";
import { TestClock } from "../harness/clock.ts";
import { eventually } from "../harness/wait.ts";

const STANDBY = { id: "other", fence: "f", host: "h", pid: 1 };

/** An owner that reports as `clock` says, and can be cut off. */
async function world(stopGraceMs = 5_000) {
  const folder = await Deno.makeTempDir({ prefix: "svc-test-" });
  const clock = new TestClock();
  const db = await Database.open(":memory:");
  await migrate(db, clock.now());
  const owner = await DatabaseOwner.open(db, { idPath: join(folder, "id"), clock, stopGraceMs });
  await owner.fence();
  owner.start();
  const standbys = (count: number) =>
    eventually(`${count} standbys are known`, async () => {
      if (owner.standbys.length === count) return true;
      clock.advance(5_000);
      await new Promise((resolve) => setTimeout(resolve, 10));
      return owner.standbys.length === count;
    });
  /** Seconds without the database until it gives up; null: it does not within a minute. */
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

describe("an owner that is cut off (contract 18.1, decision 0021)", () => {
  it("goes on when nobody waits to take over", async () => {
    await using owner = await world();
    expect(await owner.cutOff()).toBeNull();
  });

  it("gives up when a standby was known within the hour, also one that was just being restarted [RUN-4]", async () => {
    await using owner = await world();
    await beatStandby(owner.db, STANDBY);
    await owner.standbys(1);
    await owner.db.write([leaveStandby(STANDBY.id)]);
    await owner.standbys(0);
    const seconds = await owner.cutOff();
    expect(seconds).toBeGreaterThan(14);
    expect(seconds).toBeLessThanOrEqual(20);
    expect(owner.db.broken).toContain("its standby may take over");
  });

  it("gives up so early that its runs have their stop_grace", async () => {
    await using owner = await world(13_000);
    await beatStandby(owner.db, STANDBY);
    await owner.standbys(1);
    expect(await owner.cutOff()).toBeLessThanOrEqual(12);
  });
});
