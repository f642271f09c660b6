import type { Browser, BrowserContext, Page } from "playwright-core";
import { executed, inBrowser, LOG_BYTES, LONG_LINE, signedIn } from "./console.ts";
import { filled } from "./lists.ts";
import type { Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const LONG_TASK_MS = 50;
const EXECUTIONS = 50_000;

const MANY_LINES = {
  kind: "command",
  command: "sh",
  args: [
    "-c",
    `cat >/dev/null; yes "$(printf '\\033[32mok\\033[0m') test/store/list.test.ts: ${
      "one more row is read than is shown, so that the page knows whether there are more; ".repeat(2)
    }" | head -c ${LOG_BYTES} >&2; echo done`,
  ],
};

/** How smoothly the longest lists of the console move: the longest task of the browser's main thread (contract 17). */
export async function benchConsoleScroll(): Promise<Row[]> {
  const rows: Row[] = [];
  await inBrowser(async (browser) => {
    rows.push(...await logs(browser));
    await using many = await filled(EXECUTIONS);
    const context = await signedIn(browser, many.url);
    rows.push(
      await smooth(context, `${many.url}/console/executions`, {
        what: "scrolling through 50,000 executions",
        list: "Runs",
        rows: EXECUTIONS,
      }),
    );
  });
  return rows;
}

async function logs(browser: Browser): Promise<Row[]> {
  await using service = await BenchService.start({}, { engines: { long: LONG_LINE, many: MANY_LINES } });
  const context = await signedIn(browser, service.url);
  const line = await executed(service, "long");
  const lines = await executed(service, "many");
  const rows = [
    await smooth(context, `${service.url}/console/executions/${line.id}`, {
      what: "16 MiB of log in one line",
      list: "Log lines",
      rows: 1,
    }),
    await smooth(context, `${service.url}/console/executions/${lines.id}`, {
      what: "16 MiB of log in 80,000 lines, opened, searched and scrolled",
      list: "Log lines",
      rows: LOG_BYTES,
      wanted: "list",
    }),
  ];
  await context.close();
  return rows;
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
  await page.evaluate(`window.long = []; new PerformanceObserver((seen) => {
    for (const one of seen.getEntries()) window.long.push(one.duration);
  }).observe({ type: "longtask" })`);
  if (wanted !== undefined) {
    await page.getByLabel("Search the log").fill(wanted);
    await page.getByText(/^1 of /).waitFor();
  }
  await scrollToEnd(page, list, rows);
  const long = await page.evaluate<number[]>("window.long");
  const longest = Math.max(0, ...long);
  await page.close();
  return {
    what: `console, ${what}: longest task`,
    value: longest,
    unit: "ms",
    says: `${long.length} over 50 ms`,
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
