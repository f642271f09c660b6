import { createId } from "../src/base/id.ts";
import { Database, type Statement } from "../src/store/db/database.ts";
import type { Json } from "./harness/service/client.ts";

type Call = (route: string, body?: unknown) => Promise<Json>;

const WORKERS = 22;
const RUNS = 2_000;
const SCHEDULES = 58;
const BATCH = 100;
const DAY_MS = 86_400_000;

const LONG = "a_name_without_any_space_" + "x".repeat(120);
const NAMES = [
  "Grace Hopper",
  "資料分析助手",
  "Müller & Söhne",
  "データ分析担当",
  "Nightly regression",
  "고객 지원",
  LONG,
];
const TEXTS = [
  "Summarize yesterday's support tickets and list the five most urgent ones",
  "每天早上检查所有供应商的邮件，并列出需要回复的内容和截止日期",
  "先週の売上を集計し、前年同期と比較したレポートを作成してください",
  "Check " + "https://example.org/a/very/long/path/".repeat(8),
  "Deploy the preview and report the address",
  "Translate the release notes into French, German and Japanese. ".repeat(12),
];
const ERRORS = [
  "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! shop@4.2.0 test: `vitest run`",
  "Error: connect ECONNREFUSED 10.0.0.12:5432\n    at TCPConnectWrap.afterConnect",
  "错误：找不到文件 /srv/data/报告-2026-11.xlsx",
  "fatal: unable to access 'https://git.example.org/shop.git/': The requested URL returned error: 403",
];

/** Adds 22 workers, 2,000 runs of a month, 58 schedules and more to the sample data: failures, CJK and long texts. */
export async function createLargeData(databasePath: string, call: Call): Promise<void> {
  const workers = await createWorkers(call);
  await createSchedules(call, workers);
  const db = await Database.open(`file:${databasePath}`);
  await insertRuns(db, workers);
  await db.close();
  await createBudgets(call, workers);
  for (const name of ["Office", "研究部"]) {
    const { id } = await call("POST /api/local/sessions", {
      name: `${name} ${TEXTS[1]}`.slice(0, 90),
      worker_id: workers[0]?.id,
    });
    await call(`POST /api/local/sessions/${id}/messages`, { content: TEXTS[2] });
  }
}

interface NewWorker {
  id: string;
  name: string;
}

async function createWorkers(call: Call): Promise<NewWorker[]> {
  const departments: string[] = [];
  for (
    const name of ["Research", "研究開発部", "Customer success and long-running partnerships", "Finance"]
  ) {
    const parent = name === "研究開発部" ? { parent_id: departments[0] } : {};
    departments.push((await call("POST /api/departments", { name, ...parent })).id);
  }
  const workers: NewWorker[] = [];
  for (let index = 0; index < WORKERS; index++) {
    const name = NAMES[index] ?? `Worker ${index + 1}`;
    const { id } = await call("POST /api/workers", {
      name,
      engine: ["echo", "writer", "builder"][index % 3],
      description: TEXTS[index % TEXTS.length]?.slice(0, 400),
      departments: index % 5 === 4 ? [] : [departments[index % departments.length]],
      paused: index % 9 === 8,
    });
    workers.push({ id, name });
  }
  return workers;
}

async function createSchedules(call: Call, workers: readonly NewWorker[]): Promise<void> {
  for (let index = 0; index < SCHEDULES; index++) {
    await call("POST /api/tasks", {
      message_id: `plan-${index}`,
      worker_id: workers[index % workers.length]?.id,
      name: index % 4 === 0 ? `${NAMES[index % NAMES.length]} ${index}`.slice(0, 90) : "",
      instruction: TEXTS[index % TEXTS.length],
      type: "scheduled",
      cron: `${index} ${index % 24} * * ${index % 3 === 0 ? "1-5" : "*"}`,
      paused: index % 11 === 0,
    });
  }
}

/** Inserts runs of the last 30 days as open ones with a reservation, and ends them, so that the triggers count their usage. */
async function insertRuns(db: Database, workers: readonly NewWorker[]): Promise<void> {
  const now = Date.now();
  for (let first = 0; first < RUNS; first += BATCH) {
    const statements: Statement[] = [];
    for (let index = first; index < first + BATCH; index++) {
      const worker = workers[(index * 7) % (workers.length - 3)] ?? workers[0];
      if (worker !== undefined) {
        statements.push(...buildRun(index, worker, now - (RUNS - index) / RUNS * 30 * DAY_MS));
      }
    }
    await db.write(statements);
  }
}

function buildRun(index: number, worker: NewWorker, startedAt: number): Statement[] {
  const at = Math.round(startedAt);
  const [id, taskId] = [createId(), createId()];
  const failed = index % 13 === 0 || index % 29 === 0;
  const instruction = TEXTS[index % TEXTS.length] ?? "";
  const error = failed ? ERRORS[index % ERRORS.length] ?? "" : "";
  const endedAt = at + 3_000 + (index * 7_919) % 900_000;
  const status = failed ? "failed" : "completed";
  return [
    {
      sql:
        `insert into task (id, message_id, worker_id, session_key, created_by, instruction, type, status, reason,
        execution_id, created_at, updated_at) values (?, ?, ?, 'local:archive', 'user:admin', ?, 'immediate', ?, ?, ?, ?, ?)`,
      args: [taskId, `m-${index}`, worker.id, instruction, status, error, id, at, endedAt],
    },
    {
      sql:
        `insert into execution (id, worker_id, worker_name, task_id, message_id, session_key, engine, instruction,
        status, attempt, run_id, created_at, started_at)
        values (?, ?, ?, ?, ?, 'local:archive', 'writer', ?, 'running', 1, ?, ?, ?)`,
      args: [id, worker.id, worker.name, taskId, `m-${index}`, instruction, id, at, at],
    },
    {
      sql: "insert into reservation (execution_id, targets, tokens, ms, nano_usd) values (?, ?, 0, 0, 0)",
      args: [id, JSON.stringify(["global", `worker:${worker.id}`])],
    },
    {
      sql:
        `update execution set status = ?, failure = ?, exit_code = ?, error = ?, result = ?, completed_at = ?,
        input_tokens = ?, output_tokens = ?, cost_usd = ? where id = ?`,
      args: [
        status,
        failed ? "exit_code" : "",
        failed ? 1 : 0,
        error,
        failed ? "" : `Done. ${instruction}`,
        endedAt,
        2_000 + (index * 37) % 40_000,
        200 + (index * 11) % 4_000,
        ((index * 13) % 90) / 100,
        id,
      ],
    },
  ];
}

async function createBudgets(call: Call, workers: readonly NewWorker[]): Promise<void> {
  const month = { unit: "usd", period: "month" };
  await call("POST /api/budgets", { ...month, name: "Everything in dollars", limit: 900 });
  await call("POST /api/budgets", {
    ...month,
    name: "資料分析助手の予算",
    target: `worker:${workers[1]?.id}`,
    limit: 20,
  });
  await call("POST /api/budgets", {
    ...month,
    name: LONG.slice(0, 90),
    target: `worker:${workers[6]?.id}`,
    limit: 4,
    unit: "minutes",
    period: "7d",
  });
  await call("POST /api/budgets", {
    ...month,
    name: "Trial",
    target: `worker:${workers[2]?.id}`,
    limit: 5_000_000,
    unit: "tokens",
    period: "total",
  });
}
