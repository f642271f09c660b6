import { expect, it } from "vitest";
import { Connection } from "../../src/store/db/connection.ts";
import type { Driver, Row, Statement } from "../../src/store/db/driver.ts";
import { Writer } from "../../src/store/db/writer.ts";

/** A driver that records its batches. A batch waits for `held`. */
class FakeDriver implements Driver {
  readonly remote = true;
  readonly batches: string[][] = [];
  fails: (sql: string[]) => Error | null = () => null;
  held: Promise<void> = Promise.resolve();
  closed = 0;

  async batch(statements: Statement[]): Promise<Row[][]> {
    const texts = statements.map(({ sql }) => sql);
    this.batches.push(texts);
    await this.held;
    const error = this.fails(texts);
    if (error !== null) throw error;
    return texts.map((sql) => [{ sql }]);
  }
  query = () => Promise.resolve([]);
  first = () => Promise.resolve(null);
  reconnect = () => Promise.resolve();
  copyTo = () => Promise.resolve();
  close(): void {
    this.closed++;
  }
}

function createWriter() {
  const driver = new FakeDriver();
  const connection = new Connection(driver);
  return { driver, connection, writer: new Writer(connection) };
}
const job = (name: string, count = 1, wakeup?: string): Statement[] =>
  Array.from({ length: count }, (_, n) => ({ sql: `${name}${n}`, args: [], wakeup }));

it("write() commits in the order of the calls, joins those of one turn, and returns each its own rows", async () => {
  const { driver, writer } = createWriter();
  const woken: string[][] = [];
  writer.onCommit = (wakeups) => woken.push(wakeups);
  const [a, b] = await Promise.all([writer.write(job("a", 2, "wakeup")), writer.write(job("b"))]);
  expect(driver.batches).toEqual([["a0", "a1", "b0"]]);
  expect(a).toEqual({ won: true, rows: [[{ sql: "a0" }], [{ sql: "a1" }]] });
  expect(b).toEqual({ won: true, rows: [[{ sql: "b0" }]] });
  expect(woken).toEqual([["wakeup", "wakeup"]]);
});

it("write() puts at most 400 statements into one commit, and never splits one write", async () => {
  const { driver, writer } = createWriter();
  const sizes = [399, 1, 1, 500, 2];
  await Promise.all(sizes.map((size, index) => writer.write(job(`j${index}-`, size))));
  expect(driver.batches.map((batch) => batch.length)).toEqual([400, 1, 500, 2]);
});

it("write() puts at most 512 K characters into one commit, except for a larger first write", async () => {
  const { driver, writer } = createWriter();
  const sizes = [300_000, 200_000, 100_000, 600_000, 1];
  const large = (size: number, index: number) => [{ sql: `j${index}`, args: [1, "x".repeat(size)] }];
  await Promise.all(sizes.map((size, index) => writer.write(large(size, index))));
  expect(driver.batches).toEqual([["j0", "j1"], ["j2"], ["j3"], ["j4"]]);
});

it("refuse() rejects queued writes and later ones, and `waiting` measures the queue", async () => {
  const { driver, connection, writer } = createWriter();
  expect(writer.waiting).toEqual({ writes: 0, oldestMs: 0 });
  await writer.waitUntilIdle();
  let release = () => {};
  driver.held = new Promise((resolve) => release = resolve);
  const first = writer.write(job("a"));
  await new Promise((resolve) => setTimeout(resolve, 5));
  const second = writer.write(job("b"));
  const third = writer.write(job("c"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(writer.waiting.writes).toBe(2);
  expect(writer.waiting.oldestMs).toBeGreaterThanOrEqual(15);
  let settled = false;
  const done = writer.waitUntilIdle().then(() => settled = true);
  connection.break("it is gone");
  writer.refuse(new Error("refused"));
  await expect(second).rejects.toThrow("refused");
  await expect(third).rejects.toThrow("refused");
  expect(settled).toBe(false);
  release();
  expect((await first).won).toBe(true);
  await done;
  await expect(writer.write(job("d"))).rejects.toMatchObject({ code: "unavailable" });
  expect(driver.batches).toEqual([["a0"]]);
});

it("write() commits each write of a failed group separately and in order, and returns a lost guard (architecture, sentence 3)", async () => {
  const { driver, writer } = createWriter();
  driver.fails = (sql) =>
    sql.includes("bad0")
      ? new Error("UNIQUE constraint failed")
      : sql.includes("lost0")
      ? new Error("guard_lost")
      : null;
  const results = await Promise.allSettled(["a", "bad", "lost", "b"].map((name) => writer.write(job(name))));
  const outcomes = results.map((one) => one.status === "fulfilled" ? one.value.won : "failed");
  expect(outcomes).toEqual([true, "failed", false, true]);
  expect(driver.batches).toEqual([["a0", "bad0", "lost0", "b0"], ["a0"], ["bad0"], ["lost0"], ["b0"]]);
  expect(await writer.write(job("lost"))).toEqual({ won: false, rows: [] });
  await expect(writer.write(job("bad"))).rejects.toThrow();
});

it("the fence precedes every batch, and its rows are not returned", async () => {
  const { driver, writer } = createWriter();
  writer.fence = { sql: "fence", args: [] };
  expect(await writer.write(job("a"))).toEqual({ won: true, rows: [[{ sql: "a0" }]] });
  expect(driver.batches).toEqual([["fence", "a0"]]);
});

it("write() fails for all writes of a commit without a response, and never repeats it, because it may have succeeded [DBF-11]", async () => {
  for (const text of ["fetch failed", "the database server timed out: no answer in 10000 ms"]) {
    const { driver, writer } = createWriter();
    driver.fails = () => new Error(text);
    const settled = await Promise.allSettled(["a", "b", "c"].map((name) => writer.write(job(name))));
    expect(settled).toMatchObject(Array(3).fill({ status: "rejected", reason: { code: "unavailable" } }));
    expect(driver.batches).toEqual([["a0", "b0", "c0"]]);
  }
});
