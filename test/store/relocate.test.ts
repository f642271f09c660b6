import { expect, it } from "vitest";
import { Database } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrate.ts";
import { relocate } from "../../src/store/relocate.ts";
import { insertRows } from "../harness/counters.ts";

it("what lies outside of the data directory stays where it is (reliability BAK-4)", async () => {
  const db = await Database.open(":memory:");
  await migrate(db, 0);
  const worker = (id: string, work_dir: string) => ({
    ...{ id, name: id, name_key: id, work_dir },
    ...{ created_at: 0, updated_at: 0 },
  });
  const message = (id: string, path: string) => ({
    ...{ id, session_key: "s", platform: "local", platform_message_id: id, content: "c" },
    ...{ status: "bee_processed", due_at: 0, received_at: 0, media: JSON.stringify({ path }) },
  });
  await db.write([
    ...insertRows("worker", [
      worker("a", "/data/workers/a"),
      worker("b", "/srv/project"),
      worker("c", "/data2/c"),
    ]),
    ...insertRows("inbound_message", [message("a", "/data/uploads/a"), message("b", "/srv/b.txt")]),
  ]);
  await relocate(db, "/data", "/new");
  const works = await db.read<{ work_dir: string }>("select work_dir from worker order by id");
  expect(works.map((row) => row.work_dir)).toEqual(["/new/workers/a", "/srv/project", "/data2/c"]);
  const files = await db.read<{ path: string }>(
    "select media ->> '$.path' as path from inbound_message order by id",
  );
  expect(files.map((row) => row.path)).toEqual(["/new/uploads/a", "/srv/b.txt"]);
  await db.close();
});
