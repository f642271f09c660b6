import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Database, type Value } from "../../../src/store/db/database.ts";
import { READ_MAX_BYTES } from "../../../src/store/db/size_limited_read.ts";
import { createId } from "../../../src/base/id.ts";
import { World } from "../../harness/model/scenario.ts";
import { type Client, waitUntilQuiet } from "../../harness/service/client.ts";
import type { ServerProcess } from "../../harness/service/process.ts";

vi.setConfig({ testTimeout: 900_000 });

// Each character takes six bytes in JSON, so 520 such messages would exceed V8's longest string (543 MB).
const MESSAGES = 520;
const MESSAGE_BYTES = 174_000;
const POSTS = 500;
// The replies that are read in pages after a cursor.
const OLD_POSTS = 120;
const ENTRIES = 540;
const LARGEST_BYTES = 256 * 1024;
const RUNS = 60;
const WORKERS = 40;

const MEMORY_MAX_BYTES = 700e6;
// A page's frame, and one object that is larger than its share.
const SLACK_BYTES = 200_000;

const ENV = {
  SVC_ENGINES__DEFAULT: "count",
  SVC_ENGINES__COUNT__KIND: "command",
  SVC_ENGINES__COUNT__COMMAND: "wc",
  SVC_ENGINES__COUNT__ARGS: "-c",
};

const createControls = (bytes: number) => "\u0001".repeat(bytes);
const LARGEST = createControls(LARGEST_BYTES);

interface SeededIds {
  session: string;
  message: string;
  worker: string;
  /** The reply that follows the first `OLD_POSTS`. */
  post: string;
}

/** Fills a database with the largest and most awkward texts that the API takes. */
async function seed(
  dataDir: string,
  { session, worker }: Pick<SeededIds, "session" | "worker">,
): Promise<Pick<SeededIds, "message" | "post">> {
  const db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  const key = `local:${session}`;
  const now = Date.now();
  const [message = createId()] = Array.from({ length: 1 }, createId);
  const many = (count: number, sql: (id: string, index: number) => [sql: string, args: Value[]]) =>
    db.write(Array.from({ length: count }, (_, index) => {
      const [text, args] = sql(createId(), index);
      return { sql: text, args };
    }));
  const inbound = (columns: string) =>
    `insert into inbound_message (id, session_key, platform, platform_message_id, content, status, due_at, received_at, ${columns})
      values (?, ?, 'local', ?, ?, ?, ?, ?, ?)`;
  await many(
    1,
    () => [inbound("processed_at"), [message, key, message, "hello", "bee_processed", now, now, now]],
  );
  const content = createControls(MESSAGE_BYTES);
  await many(MESSAGES, (id, index) => [
    inbound("merged_into"),
    [
      id,
      key,
      id,
      content,
      index < 100 ? "merged" : "bee_processed",
      now,
      now + index,
      index < 100 ? message : null,
    ],
  ]);
  let post = "";
  await many(POSTS, (id, index) => {
    if (index === OLD_POSTS) post = id;
    return [
      `insert into outbound_message (id, session_key, platform, message_id, content, status, source_type, source_id,
      created_at, sent_at) values (?, ?, 'local', ?, ?, 'sent', 'worker', ?, ?, ?)`,
      [id, key, message, LARGEST, worker, now + index, now + index],
    ];
  });
  for (const [scope, count] of [[key, ENTRIES], ["global", 60]] as const) {
    await many(count, (_, index) => [
      `insert into memory (scope, key, value, updated_at) values (?, ?, ?, ?)`,
      [scope, `key-${String(index).padStart(3, "0")}`, LARGEST, now + index],
    ]);
  }
  await many(RUNS, (id, index) => [
    `insert into task (id, message_id, worker_id, session_key, instruction, type, status, created_by, created_at, updated_at)
      values (?, ?, ?, ?, ?, 'immediate', 'completed', 'bee', ?, ?)`,
    [id, message, worker, key, LARGEST, now + index, now],
  ]);
  await many(RUNS, (id, index) => [
    `insert into execution (id, worker_id, worker_name, task_id, message_id, session_key, engine, instruction, status,
        result, attempt, run_id, created_at, started_at, completed_at)
      select ?, ?, 'Ada', id, ?, ?, 'count', ?, 'completed', ?, 1, 'r', ?, ?, ?
      from task limit 1`,
    [id, worker, message, key, LARGEST, createControls(200 * 1024), now + index, now, now],
  ]);
  await many(100, (id, index) => [
    `insert into bee_run (id, message_id, session_key, engine, status, reply, attempt, created_at, completed_at)
      values (?, ?, ?, 'x', 'completed', ?, 1, ?, ?)`,
    [id, message, key, LARGEST, now + index, now],
  ]);
  await many(WORKERS, (id, index) => {
    Deno.mkdirSync(join(dataDir, "workers", id), { recursive: true });
    return [
      `insert into worker (id, name, name_key, memory, constraints, work_dir, created_at, updated_at)
      values (?, ?, ?, ?, ?, ?, ?, ?)`,
      [id, `w${index}`, `w${index}`, LARGEST, LARGEST, join(dataDir, "workers", id), now, now],
    ];
  });
  // The next tasks of many queues, each with the largest instruction.
  await db.write([{
    sql:
      `insert into task (id, message_id, worker_id, session_key, instruction, type, status, due_at, created_by,
        created_at, updated_at)
      select substr(id, 1, 35) || 'f', id, id, 'cli:' || id, ?, 'immediate', 'pending', ?, 'test', ?, ?
      from worker where name like 'w%'`,
    args: [LARGEST, now, now, now],
  }]);
  await db.close();
  return { message, post };
}

describe("a database full of the largest texts of control characters", () => {
  let world: World;
  let server: ServerProcess;
  let api: Client;
  let seeded: SeededIds;
  let memory = 0;
  let watch: ReturnType<typeof setInterval>;

  beforeAll(async () => {
    world = await World.serve({ env: ENV });
    const session = (await world.api.call("POST /api/local/sessions")).id;
    const worker = (await world.api.call("POST /api/workers", { name: "Ada" })).id;
    await world.server.end();
    seeded = { session, worker, ...await seed(world.dataDir, { session, worker }) };
    ({ server, api } = await world.start());
    watch = setInterval(() => {
      void server.memory().then((bytes) => memory = Math.max(memory, bytes), () => {});
    }, 20);
  }, 900_000);

  afterAll(async () => {
    clearInterval(watch);
    await world?.[Symbol.asyncDispose]();
  });

  async function read(
    path: string,
  ): Promise<{ bytes: number; rows: Record<string, unknown>[]; next: string | null }> {
    const headers = { authorization: `Bearer ${api.token}`, accept: "application/json" };
    const response = await fetch(server.url + path, { headers });
    const body = await response.arrayBuffer();
    expect([path, response.status]).toEqual([path, 200]);
    const rows = JSON.parse(new TextDecoder().decode(body));
    const next = /[?&]cursor=([^&>]+)/.exec(response.headers.get("link") ?? "")?.[1] ?? null;
    return { bytes: body.byteLength, rows, next };
  }

  it("tasks run with a prompt that says which parts it omits [BYT-1]", async () => {
    await waitUntilQuiet(api, 250_000);
    const task = await api.call("POST /api/tasks", {
      message_id: seeded.message,
      worker_id: seeded.worker,
      instruction: "count",
      type: "immediate",
    });
    const done = await api.call(`GET /api/tasks/${task.id}/wait?timeout_ms=30000`);
    expect(done.status).toBe("completed");
    const runs = await read("/api/executions?status=failed");
    expect(runs.rows).toEqual([]);
  });

  it("every numbered page is full, of at most 8 MiB, and says which texts are cut; get returns them whole [BYT-1, BKP-5]", async () => {
    const pages: [path: string, rows: number, text: string][] = [
      [`/api/messages/inbound?page_size=100`, 100, "content"],
      [`/api/messages/outbound?page_size=100`, 100, "content"],
      [`/api/messages/outbound?page_size=100&page=3`, 100, "content"],
      [`/api/executions?page_size=100&worker_id=${seeded.worker}`, RUNS + 1, "instruction"],
      [`/api/tasks?page_size=100&worker_id=${seeded.worker}`, RUNS + 1, "instruction"],
      [`/api/workers?page_size=200`, WORKERS + 1, "memory"],
      [`/api/memory?scope=global&page_size=100`, 60, "value"],
      [`/api/memory?scope=local:${seeded.session}&page_size=100&page=2`, 100, "value"],
      [`/api/system/executions?limit=100`, 100, "reply"],
    ];
    for (const [path, count, text] of pages) {
      const { rows, bytes } = await read(path);
      expect([path, rows.length]).toEqual([path, count]);
      expect(bytes).toBeLessThan(READ_MAX_BYTES + SLACK_BYTES);
      // The page uses most of its allowed size.
      expect(bytes).toBeGreaterThan(READ_MAX_BYTES * 0.6);
      const cut = rows.filter((row) => row.truncated === true);
      expect([path, cut.length]).toEqual([
        path,
        rows.filter((row) => String(row[text]).length > 100).length,
      ]);
    }
    const [worker] = (await read("/api/workers?page_size=200&name=w1")).rows;
    const whole = await api.call(`GET /api/workers/${worker?.id}`);
    expect(whole.memory).toHaveLength(LARGEST_BYTES);
    expect(whole.truncated).toBeUndefined();
  });

  it("pages after a cursor end earlier, cut nothing, and return each row once [BYT-1, BKP-5]", async () => {
    const lists: [path: string, rows: number, text: string, length: number, start: string][] = [
      ["/api/messages/outbound?page_size=100", OLD_POSTS, "content", LARGEST_BYTES, seeded.post],
      [`/api/memory?scope=global&page_size=100`, 60, "value", LARGEST_BYTES, "a"],
    ];
    for (const [path, count, text, length, start] of lists) {
      const seen = new Set<unknown>();
      let cursor: string | null = start;
      let pages = 0;
      while (cursor !== null) {
        const page: Awaited<ReturnType<typeof read>> = await read(`${path}&cursor=${cursor}`);
        expect(page.bytes).toBeLessThan(READ_MAX_BYTES + SLACK_BYTES);
        for (const row of page.rows) {
          seen.add(row.id ?? row.key);
          // Runs have since stored short results.
          const characters = String(row[text]).length;
          if (characters > 100) expect(characters).toBe(length);
          expect(row.truncated).toBeUndefined();
        }
        cursor = page.next;
        pages++;
      }
      expect(seen.size).toBe(count);
      expect(pages).toBeGreaterThan(count / 10);
    }
  });

  it("a history starts where it fits, a trace is cut, and the conversation can be used and deleted [BYT-2]", async () => {
    const path = `/api/local/sessions/${seeded.session}/messages`;
    const history = await read(path);
    expect(history.bytes).toBeLessThan(READ_MAX_BYTES + SLACK_BYTES);
    expect(history.rows.length).toBeGreaterThan(3);
    const older = await read(`${path}?before=${history.rows[0]?.id}`);
    expect(older.rows.length).toBeGreaterThan(3);
    expect(older.rows.map((row) => row.id)).not.toContain(history.rows[0]?.id);
    const trace = await read(`/api/messages/${seeded.message}/trace`);
    expect(trace.bytes).toBeLessThan(READ_MAX_BYTES + SLACK_BYTES);
    expect(trace.rows).toMatchObject({ message: { content: "hello" } });
    for (
      const other of [
        "/api/system/overview",
        `/api/contexts?session_key=local:${seeded.session}`,
        "/api/events?after=0&page_size=100",
      ]
    ) {
      expect((await read(other)).bytes).toBeLessThan(READ_MAX_BYTES);
    }
    const stream = await api.stream(seeded.session, { "last-event-id": "0" });
    await api.call(`POST /api/local/sessions/${seeded.session}/messages`, { content: "@Ada how many?" });
    await waitUntilQuiet(api, 60_000);
    await stream.close();
    expect((await api.send(`DELETE /api/local/sessions/${seeded.session}`)).status).toBe(200);
    expect((await read("/api/messages/inbound?page_size=100")).rows).toEqual([]);
  });

  it("memory stays under 700 MB during the whole test, and the process is the same [BYT-1]", async () => {
    expect(memory).toBeGreaterThan(50e6);
    expect(memory).toBeLessThan(MEMORY_MAX_BYTES);
    expect((await server.end()).code).toBe(0);
  });
});
