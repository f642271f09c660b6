import { expect, it } from "vitest";
import { Database } from "../../src/store/db/database.ts";
import { findMemoryMap, storeMemory } from "../../src/store/workers/memory.ts";
import { migrate } from "../../src/store/db/migrate.ts";

it("findMemoryMap() contains only the entries of its conversation, regardless of keys and sizes (contract 2.8)", async () => {
  await using db = await Database.open(":memory:");
  await migrate(db, 0);
  const save = (scope: string, value: string, updated_at: number) =>
    db.write(storeMemory({ scope, key: "name", value, updated_at }, 10));
  await save("one", "Bob", 2);
  await save("two", "Eve", 1);
  expect(await findMemoryMap(db, "one", 1_000)).toEqual({ entries: { name: "Bob" }, left: 0 });
  await save("two", "x".repeat(2_000), 3);
  expect(await findMemoryMap(db, "one", 1_000)).toEqual({ entries: { name: "Bob" }, left: 0 });
});
