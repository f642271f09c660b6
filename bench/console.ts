import { type Browser, type BrowserContext, chromium } from "playwright-core";
import { findBrowser } from "../test/harness/browser.ts";
import { buildConsole } from "../build/console.ts";
import { computeMedian, computePercentile, formatShort, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const LOADS = 20;
const FIRST_PAGE_MAX_KB = 150;
const USABLE_MAX_MS = 1_000;
const EXECUTABLE_MAX_MB = 2;
/** Size of one run's log. */
const LOG_BYTES = 16 * 1024 * 1024;
/** An engine that writes its whole log as one line. */
const LONG_LINE = {
  kind: "command",
  command: "sh",
  args: ["-c", `cat >/dev/null; head -c ${LOG_BYTES} /dev/zero | tr '\\0' x >&2; echo >&2; echo done`],
};

const PAGES = [
  ["inbox", "/"],
  ["chat", "/console/chat"],
  ["executions", "/console/executions"],
  ["tasks", "/console/tasks"],
  ["workers", "/console/workers"],
  ["schedules", "/console/schedules"],
  ["messages", "/console/messages"],
  ["memory", "/console/memory"],
  ["budgets", "/console/budgets"],
  ["use", "/console/system/usage"],
  ["people", "/console/system/users"],
] as const;

/** Measures sizes and load times of the console's pages in a browser (contract 17). */
export async function benchConsole(): Promise<Row[]> {
  const rows: Row[] = [await measureEmbedded()];
  await runInBrowser(async (browser) => {
    await using service = await BenchService.start({}, { engines: { long: LONG_LINE } });
    const execution = await runTask(service, "long");
    const context = await signIn(browser, service.url);
    for (const [name, address] of [...PAGES, ["execution", `/console/executions/${execution.id}`] as const]) {
      rows.push(...await measurePage(context, name, service.url + address));
    }
  });
  return rows;
}

/** Runs `work` in a browser, if one is installed. */
export async function runInBrowser(work: (browser: Browser) => Promise<void>): Promise<void> {
  const path = await findBrowser();
  if (path === null) return;
  const browser = await chromium.launch({ executablePath: path, args: ["--no-sandbox"] });
  try {
    await work(browser);
  } finally {
    await browser.close();
  }
}

/** Runs a task of a new worker with this engine. Returns the ended execution. */
async function runTask(service: BenchService, engine: string): Promise<{ id: string }> {
  const worker = await service.call("POST /api/workers", { name: engine, engine });
  const task = { message_id: engine, worker_id: worker.id, instruction: "talk", type: "immediate" };
  const { id } = await service.call("POST /api/tasks", task);
  await service.call(`GET /api/tasks/${id}/wait?timeout_ms=60000`);
  const [execution] = await service.call(`GET /api/executions?worker_id=${worker.id}`);
  return execution;
}

/** Measures the console's files in the executable. */
async function measureEmbedded(): Promise<Row> {
  const { files } = await buildConsole();
  const mb = [...files.values()].reduce((sum, { bytes }) => sum + bytes.length, 0) / 1e6;
  return {
    what: "console in the executable",
    value: mb,
    unit: "MB",
    says: `${files.size} files, gzip`,
    max: EXECUTABLE_MAX_MB,
  };
}

/** Returns a browser context with a signed-in operator. */
export async function signIn(browser: Browser, url: string): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.goto(`${url}/console/account`);
  await page.getByLabel("Name").fill("admin");
  await page.getByLabel("Password").fill("bench");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "admin" }).waitFor();
  await page.close();
  return context;
}

/** Measures the page's script size, and the time from the request to a usable page. Every load gets a new tab. */
async function measurePage(context: BrowserContext, name: string, url: string): Promise<Row[]> {
  const times: number[] = [];
  let bytes = 0;
  for (let load = -1; load < LOADS; load++) {
    const page = await context.newPage();
    const started = performance.now();
    await page.goto(url, { waitUntil: "commit" });
    await page.locator("main h1, main h2").first().waitFor();
    await page.locator(".loading").first().waitFor({ state: "detached" });
    if (load >= 0) times.push(performance.now() - started);
    bytes = Number(
      await page.evaluate(`performance.getEntriesByType("resource")
        .filter((one) => one.name.endsWith(".js")).reduce((sum, one) => sum + one.encodedBodySize, 0)`),
    );
    await page.close();
  }
  return [{
    what: `console, ${name}: script`,
    value: bytes / 1_000,
    unit: "KB",
    says: "gzip, what the page loads",
    max: FIRST_PAGE_MAX_KB,
  }, {
    what: `console, ${name}: usable (p95)`,
    value: computePercentile(times, 95),
    unit: "ms",
    says: `p50 ${formatShort(computeMedian(times))} ms`,
    max: USABLE_MAX_MS,
  }];
}
