import { describe, expect, it } from "vitest";
import { Database, guard, type Statement } from "../../src/store/db/database.ts";
import { recordTransition } from "../../src/store/events/journal.ts";
import { migrate } from "../../src/store/db/migrate.ts";

async function open() {
  const db = await Database.open(":memory:");
  await migrate(db, 0);
  await db.write([{ sql: "insert into setting (name, value) values ('a', '1')", args: [] }]);
  return db;
}

const SQL = "update setting set value = '2' where name = ?";
const set = (name: string): Statement => ({ sql: SQL, args: [name] });
const event = (id: string) => ({ kind: "task.due" as const, session_key: `s:${id}`, task_id: id });

const readEvents = (db: Database) => db.read("select at, task_id, actor, data from journal order by seq");

describe("recordTransition()", () => {
  it("stores an event for each transition that changed a row, and for no other", async () => {
    await using db = await open();
    const { won } = await db.write([
      ...recordTransition(set("a"), 5, event("one")),
      ...recordTransition(set("nobody"), 5, event("none")),
      ...recordTransition(set("a"), 6, { ...event("two"), actor: "bee", data: { n: 1 } }),
    ]);
    expect(won).toBe(true);
    expect(await readEvents(db)).toEqual([
      { at: 5, task_id: "one", actor: "system", data: "{}" },
      { at: 6, task_id: "two", actor: "bee", data: '{"n":1}' },
    ]);
  });

  it("rolls the batch back when a guarded transition is lost", async () => {
    await using db = await open();
    const { won } = await db.write([
      ...recordTransition(set("a"), 5, event("one")),
      ...recordTransition(guard(SQL, ["nobody"]), 5, event("none")),
    ]);
    expect([won, await readEvents(db)]).toEqual([false, []]);
  });

  it("wakes the stage of the transition and its conversation", async () => {
    await using db = await open();
    const woken: string[] = [];
    db.onCommit = (wakeups) => woken.push(...wakeups);
    await db.write(recordTransition({ ...set("a"), wakeup: "dispatcher" }, 5, event("one")));
    await db.write(recordTransition(guard(SQL, ["a"], "scheduler"), 5, event("two")));
    await db.write(recordTransition(guard(SQL, ["nobody"], "outbox"), 5, event("three")));
    expect(woken).toEqual(["dispatcher", "conversation:s:one", "scheduler", "conversation:s:two"]);
  });
});
