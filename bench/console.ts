import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { findBrowser } from "../test/harness/browser.ts";
import { buildConsole } from "../build/console.ts";
import { filled } from "./lists.ts";
import { median, percentile, type Row, short } from "./measure.ts";
import { BenchService } from "./service.ts";

const LOADS = 20;
const FIRST_PAGE_MAX_KB = 150;
const USABLE_MAX_MS = 1_000;
const LONG_TASK_MS = 50;
const EXECUTABLE_MAX_MB = 2;
const EXECUTIONS = 50_000;
const LINE_BYTES = 16 * 1024 * 1024;
const LONG_LINE = {
  kind: "command",
  command: "sh",
  args: ["-c", `cat >/dev/null; head -c ${LINE_BYTES} /dev/zero | tr '\\0' x >&2; echo >&2; echo done`],
};

const MANY_LINES = {
  kind: "command",
  command: "sh",
  args: [
    "-c",
    `cat >/dev/null; yes "$(printf '\\033[32mok\\033[0m') test/store/list.test.ts: ${
      "one more row is read than is shown, so that the page knows whether there are more; ".repeat(2)
    }" | head -c ${LINE_BYTES} >&2; echo done`,
  ],
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

/** The console in a browser: sizes and times of its pages, and how smoothly the longest lists move (contract 17). */
export async function benchConsole(): Promise<Row[]> {
  const path = await findBrowser();
  if (path === null) return [];
  const browser = await chromium.launch({ executablePath: path, args: ["--no-sandbox"] });
  const rows: Row[] = [await embedded()];
  try {
    await using service = await BenchService.start({}, { engines: { long: LONG_LINE, many: MANY_LINES } });
    const execution = await executed(service, "long");
    const context = await signedIn(browser, service.url);
    for (const [name, address] of [...PAGES, ["execution", `/console/executions/${execution.id}`] as const]) {
      rows.push(...await measurePage(context, name, service.url + address));
    }
    rows.push(
      await smooth(context, `${service.url}/console/executions/${execution.id}`, {
        what: "16 MiB of log in one line",
        list: "Log lines",
        rows: 1,
      }),
    );
    const lines = await executed(service, "many");
    rows.push(
      await smooth(context, `${service.url}/console/executions/${lines.id}`, {
        what: "16 MiB of log in 80,000 lines, opened, searched and scrolled",
        list: "Log lines",
        rows: LINE_BYTES,
        wanted: "list",
      }),
    );
    await context.close();
    await using many = await filled(EXECUTIONS);
    const other = await signedIn(browser, many.url);
    rows.push(
      await smooth(other, `${many.url}/console/executions`, {
        what: "scrolling through 50,000 executions",
        list: "Runs",
        rows: EXECUTIONS,
      }),
    );
  } finally {
    await browser.close();
  }
  return rows;
}

async function executed(service: BenchService, engine: string): Promise<{ id: string }> {
  const worker = await service.call("POST /api/workers", { name: engine, engine });
  const task = { message_id: engine, worker_id: worker.id, instruction: "talk", type: "immediate" };
  const { id } = await service.call("POST /api/tasks", task);
  await service.call(`GET /api/tasks/${id}/wait?timeout_ms=60000`);
  const [execution] = await service.call(`GET /api/executions?worker_id=${worker.id}`);
  return execution;
}

/** What the executable carries. */
async function embedded(): Promise<Row> {
  const { files } = await buildConsole();
  const mb = [...files.values()].reduce((sum, { bytes }) => sum + bytes.length, 0) / 1e6;
  return {
    what: "console in the executable",
    value: mb,
    unit: "MB",
    says: `${files.size} files, gzip`,
    goal: `at most ${EXECUTABLE_MAX_MB} MB`,
    met: mb <= EXECUTABLE_MAX_MB,
  };
}

async function signedIn(browser: Browser, url: string): Promise<BrowserContext> {
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

/** Script that it loads, and the time from the request to a page that can be used, each time in a tab of its own. */
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
    goal: `at most ${FIRST_PAGE_MAX_KB} KB`,
    met: bytes / 1_000 <= FIRST_PAGE_MAX_KB,
  }, {
    what: `console, ${name}: usable (p95)`,
    value: percentile(times, 95),
    unit: "ms",
    says: `p50 ${short(median(times))} ms`,
    goal: `at most ${USABLE_MAX_MS} ms`,
    met: percentile(times, 95) <= USABLE_MAX_MS,
  }];
}

interface Long {
  what: string;
  /** The label of the list. */
  list: string;
  rows: number;
  /** What is searched for, before it is scrolled. */
  wanted?: string;
}

/** Scrolls a list to its end and answers the longest task of the browser's main thread. */
async function smooth(
  context: BrowserContext,
  url: string,
  { what, list, rows, wanted }: Long,
): Promise<Row> {
  const page = await context.newPage();
  await page.goto(url);
  const box = page.getByRole("list", { name: list });
  await box.getByRole("listitem").first().waitFor();
  await page.evaluate(`window.longest = 0; new PerformanceObserver((seen) => {
    for (const one of seen.getEntries()) window.longest = Math.max(window.longest, one.duration);
  }).observe({ type: "longtask" })`);
  if (wanted !== undefined) {
    await page.getByLabel("Search the log").fill(wanted);
    await page.getByText(/^1 of /).waitFor();
  }
  await scrollToEnd(page, list, rows);
  const longest = Number(await page.evaluate("window.longest"));
  await page.close();
  return {
    what: `console, ${what}: longest task`,
    value: longest,
    unit: "ms",
    says: longest === 0 ? "none over 50 ms" : "",
    goal: `at most ${LONG_TASK_MS} ms`,
    met: longest <= LONG_TASK_MS,
  };
}

// The page scrolls itself, frame by frame, as a hand on the wheel does.
async function scrollToEnd(page: Page, list: string, rows: number): Promise<void> {
  await page.evaluate(`new Promise((resolve) => {
    const box = document.querySelector('[aria-label="${list}"]');
    const size = () => Number(box.querySelector("[role=listitem]")?.ariaSetSize ?? 0);
    let still = 0;
    const step = () => {
      const before = box.scrollTop;
      box.scrollBy(0, 2_000);
      box.scrollBy(200, 0);
      still = box.scrollTop === before ? still + 1 : 0;
      if (still > 240 || size() >= ${rows} && still > 5) resolve(); else requestAnimationFrame(step);
    };
    step();
  })`);
}
