import { expect, it } from "vitest";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import type { App } from "../harness/service/app.ts";
import { describeConsole } from "../harness/browser.ts";

const POLL = { timeout: 30_000 };

/** Lets a worker do one run. */
async function runOnce(app: App, worker_id: string, instruction: string): Promise<void> {
  await app.call("POST /api/tasks", { message_id: "m", worker_id, instruction, type: "immediate" });
  await app.settle();
}

describeConsole("workers, costs and settings in the console", ({ open }) => {
  it("compares workers by department: last run, seven days, success and waiting tasks", async () => {
    await using one = await open("/", { config: { engines: buildFakeEngines() } });
    const { app, ada, page, visitor } = one;
    const research = await app.call("POST /api/departments", { name: "Research" });
    const bob = await app.call("POST /api/workers", { name: "Bob", departments: [research.id] });
    await runOnce(app, bob.id, "say hello");
    await runOnce(app, bob.id, "exit 3");
    const limit = { unit: "runs", limit: 2, period: "month", name: "Two" };
    await app.call("POST /api/budgets", { ...limit, target: `worker:${bob.id}` });
    await runOnce(app, bob.id, "say more");
    const requests: string[] = [];
    page.on("request", (request) => requests.push(new URL(request.url()).pathname));
    await visitor.goto("/console/workers");
    const row = page.getByRole("row", { name: /^idle Bob/ });
    await row.getByRole("img", { name: "2 runs in 7 days, 1 failed" }).waitFor();
    await row.getByText("50 %").waitFor();
    await row.getByRole("link", { name: /1, all on hold/ }).waitFor();
    await row.getByRole("link", { name: /^failed/ }).waitFor();
    expect(await page.getByRole("rowheader").allTextContents()).toEqual([
      "Research 1",
      "idleBob",
      "No department 1",
      "idleAda",
    ]);
    await page.getByText("no runs yet").waitFor();
    // No request is about a single worker, however many there are.
    expect(requests.filter((path) => path.includes(ada.id) || path.includes(bob.id))).toEqual([]);
  });

  it("shows the use of each worker by day, and the forecast of each budget", async () => {
    await using one = await open("/", { config: { engines: buildFakeEngines() } });
    const { app, ada, page, visitor } = one;
    await runOnce(app, ada.id, "say hello");
    await runOnce(app, ada.id, "say hello");
    await app.call("POST /api/budgets", { name: "Day", unit: "runs", limit: 1, period: "24h" });
    await visitor.goto("/console/costs?measure=runs");
    const table = page.getByRole("region", { name: "Runs by worker and day" });
    await expect.poll(
      () => table.getByRole("row", { name: /^Ada/ }).getByRole("cell").allTextContents(),
      POLL,
    )
      .toEqual(["2", "2", "–", "–", "–", "–", "–", "–"]);
    await expect.poll(() => table.getByRole("row", { name: /^All workers/ }).textContent(), POLL).toMatch(
      /^All workers22/,
    );
    const budget = page.getByRole("region", { name: "Budget forecasts" }).getByRole("row", { name: /Day/ });
    await budget.getByText("2 runs").waitFor();
    await page.getByLabel("Time range").selectOption("Last 30 days");
    await expect.poll(() => table.getByRole("columnheader").count(), POLL).toBe(32);
    expect(page.url()).toContain("span=month");
  });

  it("shows each setting with its origin, and checks the lines of a guide without storing them", async () => {
    await using one = await open("/console/system/settings");
    const { page, app } = one;
    await page.getByLabel("Setting or value").fill("max_concurrent");
    await page.getByRole("row", { name: /limits.max_concurrent_runs 4 default/ }).waitFor();
    await page.getByRole("link", { name: "Set up an engine or a platform" }).click();
    await page.getByLabel("Engine or platform").selectOption("Telegram");
    await page.getByRole("button", { name: "Check the lines" }).click();
    await page.getByText("The lines are valid. Nothing was stored.").waitFor();
    const lines = page.getByRole("textbox", { name: /Change these lines/ });
    await lines.fill("platforms:\n  phone:\n    kind: telegraph\n");
    await page.getByRole("button", { name: "Check the lines" }).click();
    await page.getByText(/^Line 3, column 11: platforms.phone.kind/).waitFor();
    expect(await app.call("GET /api/platforms")).toHaveLength(1);
  });

  it("moves between rows with j and k, focuses the filter with /, and lists the keys with ?", async () => {
    await using one = await open("/");
    const { app, page, visitor } = one;
    for (const name of ["Bob", "Cleo"]) await app.call("POST /api/workers", { name });
    await visitor.goto("/console/workers");
    await page.getByRole("link", { name: /Cleo/ }).waitFor();
    const focused = () => page.evaluate("document.activeElement.textContent");
    await page.keyboard.press("j");
    await expect.poll(focused, POLL).toContain("Ada");
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await expect.poll(focused, POLL).toContain("Cleo");
    await page.keyboard.press("k");
    await expect.poll(focused, POLL).toContain("Bob");
    await page.keyboard.press("/");
    await page.keyboard.type("jk?/");
    expect(await page.getByLabel("Name").inputValue()).toBe("jk?/");
    await page.getByLabel("Name").fill("");
    await page.getByRole("heading", { name: "Workers" }).click();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("link", { name: /Bob/ }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Bob" }).waitFor();
  });

  it("keeps the alignment of a Markdown table", async () => {
    await using one = await open("/console/chat");
    const { app, ada, page, visitor } = one;
    const { id } = await app.call("POST /api/local/sessions", { worker_id: ada.id });
    const content = "| Week | Visits |\n|---|---:|\n| 46 | 10,412 |";
    await app.call(`POST /api/local/sessions/${id}/messages`, { content });
    await app.settle();
    await visitor.goto(`/console/chat/${id}`);
    const cell = page.getByRole("article", { name: "Reply" }).getByRole("cell", { name: "10,412" });
    await expect.poll(() => cell.getAttribute("class"), POLL).toBe("right");
  });

  it("lets another engine replace the engine of a worker", async () => {
    await using one = await open("/", { config: { engines: { echo: { fallback: ["codex"] } } } });
    const { app, ada, page, visitor } = one;
    await visitor.goto(`/console/workers/${ada.id}/edit`);
    await page.locator("summary").getByText("More options").click();
    await page.getByText("While echo is rate limited or cannot be used: codex").waitFor();
    await page.getByLabel("Use another engine when it is out").check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Other engines may replace its own").waitFor();
    expect((await app.call(`GET /api/workers/${ada.id}`)).fallback).toBe(true);
  });
});
