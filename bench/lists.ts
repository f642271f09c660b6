import { join } from "node:path";
import { Database } from "../src/store/db/database.ts";
import { storeSetting } from "../src/store/db/setting.ts";
import { computeMedian, computePercentile, formatShort, measureRuns, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const FEW = 1_000;
const MANY = 1_000_000;
const CHUNK = 50_000;
const WORKERS = 50;
const SESSIONS = 1_000;
const START_MS = 1_700_000_000_000;
const STEP_MS = 1_000;
const REQUESTS = 200;

/** A kind of page. Every request has a different path, so that no cache responds. */
interface Page {
  what: string;
  path: (n: number, rows: number) => string;
  /** Highest allowed ratio of p99 with many rows to p99 with few. */
  ratio?: number;
  /** Highest allowed p99 with many rows. */
  maxMs?: number;
}

const size = (n: number) => `page_size=${51 + (n % 50)}`;
const pickRow = (n: number, rows: number) => Math.floor(((n * 7_919) % 1_000) / 1_000 * rows);
const from = (n: number, rows: number) => START_MS + pickRow(n, rows) * STEP_MS;

const PAGES: Page[] = [
  ...buildPages("executions", "/api/executions"),
  ...buildPages("messages", "/api/messages/inbound"),
  { what: "system overview", path: () => "/api/system/overview", maxMs: 20 },
  {
    what: "executions of a worker",
    path: (n) => `/api/executions?worker_id=${formatUuid(n % WORKERS)}&${size(n)}`,
  },
  { what: "failed executions", path: (n) => `/api/executions?status=failed&${size(n)}` },
  {
    what: "executions of a session",
    path: (n) => `/api/sessions/s${n % SESSIONS}/executions?${size(n)}`,
  },
  {
    what: "executions of a minute",
    path: (n, rows) => `/api/executions?started_from=${from(n, rows)}&started_to=${from(n, rows) + 60_000}`,
  },
  {
    what: "failed executions of an hour",
    path: (n, rows) =>
      `/api/executions?status=failed&completed_from=${from(n, rows)}&completed_to=${
        from(n, rows) + 3_600_000
      }`,
  },
  {
    what: "messages of a minute",
    path: (n, rows) =>
      `/api/messages/inbound?received_from=${from(n, rows)}&received_to=${from(n, rows) + 60_000}`,
  },
];

function buildPages(what: string, path: string): Page[] {
  return [
    { what: `${what}, first page`, path: (n) => `${path}?${size(n)}`, ratio: 2 },
    {
      what: `${what}, a page by cursor`,
      path: (n, rows) => `${path}?cursor=${formatUuid(pickRow(n, rows) + 200)}&${size(n)}`,
      ratio: 2,
    },
    {
      what: `${what}, last page by number`,
      path: (n, rows) => `${path}?page=${Math.ceil(rows / (51 + (n % 50)))}&${size(n)}`,
      maxMs: 60,
    },
  ];
}

/** Measures pages of lists with a thousand and with a million rows (p99). */
export async function benchLists(): Promise<Row[]> {
  await using few = await startFilled(FEW);
  await using many = await startFilled(MANY);
  const rows: Row[] = [];
  for (const page of PAGES) {
    const [little, much] = [await measure(few, page, FEW), await measure(many, page, MANY)];
    const ratio = computePercentile(much, 99) / computePercentile(little, 99);
    rows.push({
      what: `${page.what} (p99)`,
      value: computePercentile(much, 99),
      unit: "ms",
      bare: computePercentile(little, 99),
      beside: `with ${FEW} rows`,
      says: `${ratio.toFixed(2)}x; p50 ${formatShort(computeMedian(much))} ms`,
      ...buildGoal(page, ratio),
    });
  }
  return rows;
}

function buildGoal(page: Page, ratio: number): Pick<Row, "max" | "goal" | "met"> {
  if (page.maxMs !== undefined) return { max: page.maxMs };
  return page.ratio === undefined ? {} : { goal: `at most ${page.ratio}x`, met: ratio <= page.ratio };
}

function measure(service: BenchService, page: Page, rows: number): Promise<number[]> {
  return measureRuns(REQUESTS, 20, async (n) => {
    await service.call(`GET ${page.path(n + 20, rows)}`);
  });
}

function formatUuid(n: number): string {
  return `${formatHex(Math.floor(n / 65_536), 8)}-${formatHex(n % 65_536, 4)}-7000-8000-${formatHex(n, 12)}`;
}

function formatHex(n: number, digits: number): string {
  return n.toString(16).padStart(digits, "0");
}

const UUID = "printf('%08x-%04x-7000-8000-%012x', i / 65536, i % 65536, i)";
const WORKER_ID = `printf('00000000-%04x-7000-8000-%012x', i % ${WORKERS}, i % ${WORKERS})`;

/** Starts a service with this many executions and messages. */
export async function startFilled(rows: number): Promise<BenchService> {
  const service = await BenchService.start({}, { search: false });
  await service.restartWith(async (dataDir) => {
    const db = await Database.open(`file:${join(dataDir, "svc.db")}`);
    // Like `search: false`, so that these rows need no index.
    await db.write([storeSetting("search_off", "1")]);
    for (let at = 0; at < rows; at += CHUNK) {
      const last = Math.min(rows, at + CHUNK) - 1;
      const numbers =
        `with recursive n (i) as (select ${at} union all select i + 1 from n where i < ${last})`;
      await db.write([
        {
          sql:
            `insert into execution (id, worker_id, worker_name, task_id, message_id, session_key, session_id, engine,
              instruction, status, result, failure, attempt, run_id, created_at, started_at, completed_at)
            ${numbers}
            select ${UUID}, ${WORKER_ID}, 'w', ${UUID}, 'm' || i, 'cli:s' || (i % ${SESSIONS}),
              's' || (i % ${SESSIONS}), 'echo', 'do it', iif(i % 10 = 0, 'failed', 'completed'), 'done',
              iif(i % 10 = 0, 'exit_code', ''), 1, '', ${START_MS} + i * ${STEP_MS}, ${START_MS} + i * ${STEP_MS},
              ${START_MS} + i * ${STEP_MS} + 500
            from n`,
          args: [],
        },
        {
          sql:
            `insert into inbound_message (id, session_key, platform, platform_message_id, content, status, due_at,
              received_at, processed_at)
            ${numbers}
            select ${UUID}, 'cli:s' || (i % ${SESSIONS}), 'local', 'p' || i, 'hello', 'bee_processed', 0,
              ${START_MS} + i * ${STEP_MS}, ${START_MS} + i * ${STEP_MS}
            from n`,
          args: [],
        },
      ]);
    }
    await db.close();
    // Waits for the disk, which would otherwise write a gigabyte during later measurements.
    await new Deno.Command("sync").output();
  });
  return service;
}
