import { describe, expect, it } from "vitest";
import { READ_MAX_BYTES, readBounded } from "../../src/store/db/size_limited_read.ts";
import { Database } from "../../src/store/db/database.ts";
import { record } from "../../src/store/events/journal.ts";
import { createId } from "../../src/base/id.ts";
import { openApp } from "../harness/service/app.ts";

const LARGEST = 256 * 1024;
const CONTROL = `replace(hex(zeroblob(${LARGEST})), '00', char(1))`;
const JSON_ONLY = { accept: "application/json" };
const countBytes = (text: string) => new TextEncoder().encode(text).length;

/** A table of texts, and the size of the largest row that the database returned. */
async function createTable(texts: string[]) {
  const db = await Database.open(":memory:");
  await db.write([{ sql: "create table note (id text, a text, b text) strict", args: [] }]);
  await db.write(texts.map((text, index) => ({
    sql: "insert into note values (?, ?, 'short')",
    args: [String(index).padStart(3, "0"), text],
  })));
  let handed = 0;
  const first = db.first.bind(db);
  db.first = async (sql, args) => {
    const row = await first(sql, args);
    handed = Math.max(handed, countBytes(Object.values(row ?? {}).join("")));
    // deno-lint-ignore no-explicit-any
    return row as any;
  };
  const objects = {
    table: "note",
    json: "json_object('id', note.id, 'a', note.a, 'b', note.b)",
    texts: ["a", "b"],
  };
  return {
    read: (maxBytes: number) =>
      readBounded(db, objects, { sql: "from note order by note.id", args: [] }, { over: "cut", maxBytes }),
    handed: () => handed,
    [Symbol.asyncDispose]: () => db.close(),
  };
}

describe("readBounded() with texts that exceed their share [BYT-1]", () => {
  const MIXED = Array.from(
    { length: 40_000 },
    (_, n) => ["a", '"', "\\", "\n", "\u0001", "é", "€", "🙂"][n % 8],
  ).join("");
  for (
    const [kind, text] of [
      ["control characters", "\u0001".repeat(200_000)],
      ["plain characters", "x".repeat(200_000)],
      ["emoji", "🙂".repeat(60_000)],
      ["all kinds", MIXED],
      ["the first character that takes four bytes", "\u{10000}".repeat(50_000)],
      ["control characters after plain characters", "x".repeat(10_000) + "\u0001".repeat(190_000)],
    ] as const
  ) {
    it(`fills the share exactly with ${kind} [BYT-1]`, async () => {
      await using table = await createTable([text, text, text, text]);
      const { rows } = await table.read(160_000);
      expect(rows).toHaveLength(4);
      for (const { json } of rows) {
        const { a, b, truncated } = JSON.parse(json);
        expect([b, truncated]).toEqual(["short", true]);
        expect(text.startsWith(a)).toBe(true);
        // The share has space for the other fields. One more character would exceed it.
        expect(countBytes(JSON.stringify(a))).toBeGreaterThan(40_000 - 4_000 - 30);
      }
      expect(rows.reduce((sum, { json }) => sum + countBytes(json), 0)).toBeLessThanOrEqual(160_000);
      // The database returns no text only to be cut: at most one character (four bytes in UTF-8) per byte of the share.
      expect(table.handed()).toBeLessThan(50_000 * 4);
    });
  }

  it("returns texts that fit whole and unmarked, and only the other fields for an empty share", async () => {
    await using table = await createTable(["x".repeat(100), "y".repeat(30_000)]);
    const [short, long] = (await table.read(20_000)).rows.map(({ json }) => JSON.parse(json));
    expect(short).toEqual({ id: "000", a: "x".repeat(100), b: "short" });
    expect(long.truncated).toBe(true);
    await using tiny = await createTable(["\u0001\u0001"]);
    const [empty] = (await tiny.read(0)).rows;
    expect(JSON.parse(empty?.json ?? "")).toEqual({ id: "000", a: "", b: "", truncated: true });
  });
});

it("GET of one object never exceeds the size limit of a read [BYT-1]", async () => {
  await using app = await openApp({ inMemory: true });
  const worker = (await app.call("POST /api/workers", { name: "Ada" })).id;
  const { id: session } = await app.call("POST /api/local/sessions");
  const [task, execution, message] = [createId(), createId(), createId()];
  const key = `local:${session}`;
  await app.db.write([
    {
      sql:
        `update worker set memory = ${CONTROL}, constraints = ${CONTROL}, description = substr(${CONTROL}, 1, 4000)`,
      args: [],
    },
    {
      sql:
        `insert into inbound_message (id, session_key, platform, platform_message_id, content, status, due_at, received_at)
        values (?, ?, 'local', 'p', ${CONTROL}, 'bee_processed', 0, 0)`,
      args: [message, key],
    },
    {
      sql:
        `insert into task (id, message_id, worker_id, session_key, instruction, type, status, created_by, created_at, updated_at)
        values (?, ?, ?, ?, ${CONTROL}, 'immediate', 'completed', 'bee', 0, 0)`,
      args: [task, message, worker, key],
    },
    {
      sql:
        `insert into execution (id, worker_id, worker_name, task_id, message_id, session_key, engine, instruction, status,
          result, attempt, run_id, created_at, started_at, completed_at)
        values (?, ?, 'Ada', ?, ?, ?, 'x', ${CONTROL}, 'completed', ${CONTROL}, 1, 'r', 0, 0, 0)`,
      args: [execution, worker, task, message, key],
    },
    {
      sql: `insert into memory (scope, key, value, updated_at) values ('global', 'k', ${CONTROL}, 0)`,
      args: [],
    },
  ]);
  for (
    const path of [
      `/api/workers/${worker}`,
      `/api/tasks/${task}`,
      `/api/executions/${execution}`,
      `/api/messages/${message}/trace`,
      "/api/memory/entry?scope=global&key=k",
    ]
  ) {
    const { status, body } = await app.send(`GET ${path}`);
    expect([path, status]).toEqual([path, 200]);
    expect(countBytes(JSON.stringify(body))).toBeGreaterThan(LARGEST);
    expect(countBytes(JSON.stringify(body))).toBeLessThan(READ_MAX_BYTES);
  }
});

it("record() cuts long texts, so that pages of events and steps of streams are small [BYT-1]", async () => {
  await using app = await openApp({ inMemory: true });
  const long = { reason: "\u0001".repeat(20_000), name: "Ada", more: ["€".repeat(20_000)] };
  await app.db.write(
    Array.from({ length: 100 }, () => record(0, { kind: "message.routed", actor: "bee", data: long })),
  );
  const { body } = await app.send("GET /api/events?after=0&page_size=100", undefined, JSON_ONLY);
  expect(body).toHaveLength(100);
  expect(countBytes(JSON.stringify(body))).toBeLessThan(READ_MAX_BYTES / 2);
  const routed = body.find(({ kind }: { kind: string }) => kind === "message.routed");
  expect(routed.data.name).toBe("Ada");
  expect(routed.data.reason).toBe("\u0001".repeat(500));
  const whole = { reason: "x".repeat(8_000) };
  await app.db.write([record(0, { kind: "message.routed", actor: "bee", data: whole })]);
  expect((await app.call("GET /api/events?page_size=1", undefined, JSON_ONLY))[0].data).toEqual(whole);
});
