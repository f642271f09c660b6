import { expect, it } from "vitest";
import { Database } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import { relocate } from "../../src/store/db/relocate.ts";
import { insertRows } from "../harness/model/counters.ts";

it("relocate() leaves paths outside of the data directory unchanged [BAK-4]", async () => {
  await using db = await Database.open(":memory:");
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
    ...insertRows("outbound_message", [{
      ...{
        id: "r",
        session_key: "s",
        platform: "p",
        message_id: "m",
        content: "c",
        source_type: "system",
        source_id: "",
      },
      ...{ status: "failed", created_at: 0 },
    }]),
    ...insertRows(
      "outbound_part",
      ["/data/uploads/a", "/srv/b.txt", null].map((path, number) => ({
        ...{ outbound_id: "r", number },
        body: JSON.stringify({ text: "c", media: path === null ? null : { path } }),
      })),
    ),
    ...insertRows("question", [{
      ...{ id: "q", session_key: "s", worker_id: "a", text: "Go on?", work_dir: "/data/workers/a" },
      ...{ message_id: "m", asked_by: "worker:a", status: "open", expires_at: 1, created_at: 0 },
    }]),
    ...insertRows("inbound_message", [message("a", "/data/uploads/a"), message("b", "/srv/b.txt")]),
  ]);
  await relocate(db, "/data", "/new");
  const works = await db.read<{ work_dir: string }>("select work_dir from worker order by id");
  expect(works.map((row) => row.work_dir)).toEqual(["/new/workers/a", "/srv/project", "/data2/c"]);
  const files = await db.read<{ path: string }>(
    "select media ->> '$.path' as path from inbound_message order by id",
  );
  expect(files.map((row) => row.path)).toEqual(["/new/uploads/a", "/srv/b.txt"]);
  const parts = await db.read<{ path: string }>(
    "select body ->> '$.media.path' as path from outbound_part order by number",
  );
  expect(parts.map((row) => row.path)).toEqual(["/new/uploads/a", "/srv/b.txt", null]);
  expect(await db.read("select work_dir from question")).toEqual([{ work_dir: "/new/workers/a" }]);
});
