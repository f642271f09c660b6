import { join } from "node:path";
import { createId } from "../src/base/id.ts";
import { Database, type Statement } from "../src/store/db/database.ts";
import { computeMedian, computePercentile, formatShort, measureRuns, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const ROWS = Number(Deno.env.get("SVC_BENCH_ROWS") ?? 1_000_000);
const BATCH_ROWS = 2_000;
const TEXT_CHARACTERS = 200;
const SESSIONS = 1_000;
// Recent, so that retention keeps the rows.
const START_MS = Date.now() - 20 * 24 * 60 * 60 * 1_000;
const REQUESTS = 60;
const WRITES = 400;
// Contract 31: for words that are in half of all rows, and for one conversation.
const SEARCH_MAX_MS = 50;
const WRITE_MAX_MS = 0.2;

const QUERIES: [what: string, query: (n: number) => string][] = [
  ["a word in half of all rows", () => "q=deployment"],
  ["two words, each in half of all rows", () => "q=deployment%20invoice"],
  ["two such words that never meet", () => "q=deployment%20holiday"],
  ["a rare word", (n) => `q=${RARE[n % RARE.length]}`],
  ["a word that is in no row", () => "q=zanzibar"],
  ["such a word whose trigrams are frequent", () => "q=deployments"],
  ["a frequent word of one conversation", (n) => `q=deployment&session_key=local:s${n % SESSIONS}`],
  [
    "a rare word of one conversation",
    (n) => `q=${RARE[n % RARE.length]}&session_key=local:s${n % SESSIONS}`,
  ],
  ["two characters, in the newest rows", () => "q=zz"],
];

/** Measures searches among a million messages of 200 characters (p95), the size of the index, and its cost for a write. */
export async function benchSearch(): Promise<Row[]> {
  await using service = await BenchService.start();
  let folder = "";
  await service.restartWith(async (dataDir) => {
    folder = dataDir;
    await fill(dataDir);
  });
  const rows: Row[] = [];
  for (const [what, query] of QUERIES) {
    await service.renewToken();
    const times = await measureRuns(REQUESTS, 3, async (n) => {
      // Each request differs, so that no cache responds.
      await service.call(`GET /api/search?${query(n + 3)}&since=${n + 3}`);
    });
    rows.push({
      what: `search, ${ROWS} messages, ${what} (p95)`,
      value: computePercentile(times, 95),
      unit: "ms",
      says: `p50 ${formatShort(computeMedian(times))} ms`,
      ...(/frequent word|half|rare/.test(what) ? { max: SEARCH_MAX_MS } : {}),
    });
  }
  await service.restartWith(async () => void rows.push(...await measureIndex(folder)));
  return rows;
}

async function fill(dataDir: string): Promise<void> {
  const db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  for (let at = 0; at < ROWS; at += BATCH_ROWS) {
    const texts = Array.from(
      { length: Math.min(BATCH_ROWS, ROWS - at) },
      (_, n) => [at + n, buildText(at + n)],
    );
    await db.write([insertMessages(texts as [number, string][])]);
  }
  await db.close();
  // Waits for the disk, which would otherwise write during later measurements.
  await new Deno.Command("sync").output();
}

function insertMessages(texts: [number, string][]): Statement {
  return {
    sql:
      `insert into inbound_message (id, session_key, platform, platform_message_id, content, status, due_at, received_at,
        processed_at)
      select printf('%08x-%04x-7000-8000-%012x', (${START_MS} + i * 1000) >> 16, (${START_MS} + i * 1000) & 65535, i),
        'local:s' || (i % ${SESSIONS}), 'local', 'p' || i, content, 'bee_processed', 0, ${START_MS} + i * 1000,
        ${START_MS} + i * 1000
      from (select value ->> 0 as i, value ->> 1 as content from json_each(?))`,
    args: [JSON.stringify(texts)],
  };
}

async function measureIndex(dataDir: string): Promise<Row[]> {
  const db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  const bytes = await db.readValue<number>(
    "select sum(pgsize) from dbstat where name glob 'search_*' or name glob 'sqlite_autoindex_search_*'",
  ) ?? 0;
  const on: number[] = [];
  const off: number[] = [];
  for (let n = 0; n < WRITES; n++) {
    // Alternates, so that caches and disk are in the same state.
    on.push(await write(db, n));
    await db.write([{ sql: "insert into setting (name, value) values ('search_off', '1')", args: [] }]);
    off.push(await write(db, n));
    await db.write([{ sql: "delete from setting where name = 'search_off'", args: [] }]);
  }
  await db.close();
  return [{
    what: "search, index of a message",
    value: bytes / ROWS,
    unit: "bytes",
    bare: TEXT_CHARACTERS,
    beside: "of text",
    says: `${formatShort(bytes / 1e6)} MB`,
  }, {
    what: "search, write of a message (median)",
    value: computeMedian(on),
    unit: "ms",
    bare: computeMedian(off),
    beside: "without the index",
    says: `${formatShort(computeMedian(on) - computeMedian(off))} ms longer`,
    goal: `at most ${WRITE_MAX_MS} ms longer`,
    met: computeMedian(on) - computeMedian(off) <= WRITE_MAX_MS,
  }];
}

async function write(db: Database, n: number): Promise<number> {
  const id = createId();
  const insert = {
    sql:
      `insert into inbound_message (id, session_key, platform, platform_message_id, content, status, due_at, received_at)
      values (?, ?, 'local', ?, ?, 'bee_processed', 0, ?)`,
    args: [id, `local:s${n % SESSIONS}`, id, buildText(ROWS + n), Date.now()],
  };
  const started = performance.now();
  await db.write([insert]);
  return performance.now() - started;
}

const TEXT = readDocuments();
/** Words that the documents have once. */
const RARE = [...Map.groupBy(TEXT, (word) => word)].filter(([word, all]) =>
  all.length === 1 && word.length > 4
)
  .map(([word]) => word);

// Trigrams of random letters would be far from those of a language.
function readDocuments(): string[] {
  const folder = new URL("../docs/reference/", import.meta.url);
  const texts = [...Deno.readDirSync(folder)].map(({ name }) => Deno.readTextFileSync(new URL(name, folder)));
  return texts.join(" ").match(/[a-z]{2,}/gi) ?? [];
}

function buildText(n: number): string {
  const random = buildRandom(n);
  let text = n % 2 === 0 ? "deployment " : "holiday ";
  if (random() < 0.5) text += "invoice ";
  while (text.length < TEXT_CHARACTERS) text += `${TEXT[Math.floor(random() * TEXT.length)]} `;
  return text.slice(0, TEXT_CHARACTERS);
}

/** Creates a generator of numbers below 1 that is the same in every run. */
function buildRandom(seed: number): () => number {
  let state = seed * 2_654_435_761 >>> 0;
  return () => {
    state = state + 0x6d2b79f5 >>> 0;
    let mixed = Math.imul(state ^ state >>> 15, state | 1);
    mixed ^= mixed + Math.imul(mixed ^ mixed >>> 7, mixed | 61);
    return ((mixed ^ mixed >>> 14) >>> 0) / 4_294_967_296;
  };
}
