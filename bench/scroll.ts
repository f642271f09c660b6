import type { Page } from "playwright-core";
import { runInBrowser, signIn } from "./console.ts";
import { startFilled } from "./lists.ts";
import { computeMedian, computePercentile, formatShort, type Row } from "./measure.ts";

const ROWS = 10_000;
// 60 frames a second leave 16.7 ms for a frame, and a timer rounds it.
const FRAME_MAX_MS = 17.5;
const WORK_MAX_MS = 12;
/** The share of frames that may come late, as they also do in an empty page. */
const FRAME_PERCENT = 95;
/** A wheel, and a drag of the scroll bar that draws every row anew in each frame. */
const SPEEDS = [["wheel", 40], ["drag", 400]] as const;
const FRAMES = 600;

interface Frames {
  /** The time between two frames, in ms. */
  intervals: number[];
  /** The time of the page's thread per frame, in ms. */
  workMs: number;
}

/** Measures frames while a list of 10,000 runs scrolls, next to an empty box that scrolls in the same page. */
export async function benchScroll(): Promise<Row[]> {
  const rows: Row[] = [];
  await runInBrowser(async (browser) => {
    await using service = await startFilled(ROWS);
    const context = await signIn(browser, service.url);
    const page = await context.newPage();
    await page.goto(`${service.url}/console/executions`);
    await loadAllRows(page);
    for (const [name, stepPx] of SPEEDS) {
      await addEmptyBox(page);
      const empty = await scroll(page, "#empty", stepPx);
      await page.evaluate(`document.querySelector("#empty").remove()`);
      const { intervals, workMs } = await scroll(page, ".rows.table", stepPx);
      rows.push({
        what: `console, ${ROWS} runs, ${name}: work per frame`,
        value: workMs,
        unit: "ms",
        bare: empty.workMs,
        beside: "an empty box",
        says: "processor time of the page",
        max: WORK_MAX_MS,
      }, {
        what: `console, ${ROWS} runs, ${name}: frame (p${FRAME_PERCENT})`,
        value: computePercentile(intervals, FRAME_PERCENT),
        unit: "ms",
        bare: computePercentile(empty.intervals, FRAME_PERCENT),
        beside: "an empty box",
        says: `p50 ${formatShort(computeMedian(intervals))} ms`,
        max: FRAME_MAX_MS,
      });
    }
  });
  return rows;
}

/** Scrolls to the end until the page has every row. */
async function loadAllRows(page: Page): Promise<void> {
  await page.locator(".rows.table").waitFor();
  await page.evaluate(`new Promise((done) => {
    const box = document.querySelector(".rows.table");
    const next = () => {
      box.scrollTop = box.scrollHeight;
      if (Number(box.getAttribute("aria-rowcount")) > ${ROWS}) return done();
      setTimeout(next, 20);
    };
    next();
  })`);
}

/** Adds an empty box of the same height. It lies above the page, so it may not stay while the table is measured. */
async function addEmptyBox(page: Page): Promise<void> {
  await page.evaluate(`{
    const empty = document.createElement("div");
    empty.id = "empty";
    empty.style = "position: fixed; inset: 0 auto auto 0; width: 50px; height: 600px; overflow: auto; opacity: 0.01";
    empty.append(document.createElement("div"));
    empty.firstChild.style.height = "340000px";
    document.body.append(empty);
  }`);
}

async function scroll(page: Page, selector: string, stepPx: number): Promise<Frames> {
  const session = await page.context().newCDPSession(page);
  // Processor time, which does not depend on what else the machine does.
  await session.send("Performance.setTimeDomain", { timeDomain: "threadTicks" });
  await session.send("Performance.enable");
  const readTaskMs = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return (metrics.find(({ name }) => name === "TaskDuration")?.value ?? NaN) * 1_000;
  };
  const before = await readTaskMs();
  const intervals = await page.evaluate<number[]>(`new Promise((done) => {
    const box = document.querySelector(${JSON.stringify(selector)});
    const intervals = [];
    box.scrollTop = 0;
    let last;
    requestAnimationFrame(function draw(at) {
      if (last !== undefined) intervals.push(at - last);
      last = at;
      box.scrollTop += ${stepPx};
      if (intervals.length < ${FRAMES}) requestAnimationFrame(draw);
      else done(intervals);
    });
  })`);
  const workMs = (await readTaskMs() - before) / FRAMES;
  await session.detach();
  return { intervals, workMs };
}
