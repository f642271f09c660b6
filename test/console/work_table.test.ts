import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { buildShellEngine } from "../harness/fakes/agents.ts";
import { createTask } from "../harness/service/runner.ts";
import { describeConsole } from "../harness/browser.ts";

const POLL = { timeout: 30_000 };
const BREAKS = buildShellEngine("echo ok 1 >&2; echo ok 2 >&2; echo FAIL cursor: expected 50 >&2; exit 3");

describeConsole("work as a table", ({ visit }) => {
  /** Starts a service with two failed runs of Eve and one completed run of Ada. */
  async function begin(at: string) {
    const app = await openApp({ config: { engines: { breaks: BREAKS } } });
    const ada = await app.call("POST /api/workers", { name: "Ada", engine: "echo" });
    const eve = await app.call("POST /api/workers", { name: "Eve", engine: "breaks" });
    await createTask(app, ada.id, "write the report");
    await createTask(app, eve.id, "fetch the pictures");
    await createTask(app, eve.id, "fetch the mail");
    await app.settle();
    const visitor = await visit(app.url, { at });
    return {
      ...{ app, ada, eve, visitor, page: visitor.page },
      async [Symbol.asyncDispose]() {
        await visitor[Symbol.asyncDispose]();
        await app[Symbol.asyncDispose]();
      },
    };
  }

  it("failed runs can be filtered by their cause, which the address keeps", async () => {
    await using one = await begin("/console/executions?status=failed");
    const { page } = one;
    await page.getByText("2 total").waitFor();
    const cause = page.getByRole("combobox", { name: "Cause of failure" });
    await cause.selectOption({ label: "Timed out" });
    await page.getByText("No matches.").waitFor();
    await cause.selectOption({ label: "Ended with an error" });
    await page.getByText("2 total").waitFor();
    expect(page.url()).toContain("failure=exit_code");
    await page.getByRole("button", { name: "Run all 2 again" }).waitFor();
  });

  it("a selection stays when the user declines, and the error names the cause", async () => {
    await using one = await begin("/console/executions?status=failed");
    const { page } = one;
    await page.getByText("FAIL cursor: expected 50").first().waitFor();
    await page.getByRole("checkbox", { name: "Select fetch the mail" }).check();
    await page.getByRole("button", { name: "Run 1 again" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.getByText("1 selected").waitFor();
  });

  it("the tasks with every status include those that have ended", async () => {
    await using one = await begin("/console/tasks");
    const { page } = one;
    await page.getByText("The queue is empty.").waitFor();
    await page.getByRole("combobox", { name: "Status" }).selectOption({ label: "All statuses" });
    const tasks = page.getByRole("grid", { name: "Tasks" });
    await tasks.getByRole("link", { name: "completed write the report" }).waitFor();
    await tasks.getByRole("link", { name: "failed fetch the mail" }).waitFor();
    await page.getByText("3 total").waitFor();
  });

  it("filters by text, engine, worker, status and time stand in the address and survive a reload", async () => {
    await using one = await begin("/console/executions");
    const { page } = one;
    const rows = page.getByRole("grid", { name: "Runs" }).getByRole("row");
    await page.getByText("3 total").waitFor();
    await rows.filter({ hasText: "fetch the mail" }).getByText("FAIL cursor: expected 50").waitFor();
    await page.getByLabel("Search runs").fill("PICT");
    await page.getByText("1 total").waitFor();
    await page.getByRole("combobox", { name: "Engine" }).selectOption("breaks");
    await page.getByRole("combobox", { name: "Time" }).selectOption("24h");
    await page.getByRole("combobox", { name: "Status" }).selectOption("failed");
    await expect.poll(() => new URL(page.url()).search, POLL).toBe(
      "?text=PICT&engine=breaks&since=24h&status=failed",
    );
    await page.reload();
    await rows.filter({ hasText: "fetch the pictures" }).waitFor();
    expect(await rows.count()).toBe(2);
    await page.getByRole("combobox", { name: "Time" }).selectOption("custom");
    await page.getByLabel("To", { exact: true }).fill("2020-01-01T00:00");
    await page.getByText("No matches.").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.getByText("3 total").waitFor();
    expect(new URL(page.url()).search).toBe("");
  });

  it("selects runs by keyboard, runs them again, and opens one", async () => {
    await using one = await begin("/console/executions");
    const { app, page } = one;
    const grid = page.getByRole("grid", { name: "Runs" });
    await page.getByText("3 total").waitFor();
    await grid.focus();
    // The newest run is active. x selects it, Shift extends the selection.
    await page.keyboard.press("x");
    await page.keyboard.press("Shift+ArrowDown");
    await page.getByText("2 selected").waitFor();
    expect(await grid.getByRole("row", { selected: true }).count()).toBe(2);
    await page.getByRole("button", { name: "Run 2 again" }).press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Run 2 again" }).press("Enter");
    await page.getByText("Started 2 of 2 runs again").waitFor();
    await app.settle();
    await page.getByText("5 total").waitFor();
    await page.getByRole("region", { name: "Selected rows" }).waitFor({ state: "detached" });
    await grid.focus();
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Run of Ada" }).waitFor();
  });

  it("cancels selected tasks, and leaves the others in the queue", async () => {
    await using one = await begin("/console/tasks");
    const { app, ada, page } = one;
    await app.call(`PUT /api/workers/${ada.id}`, { paused: true });
    for (const text of ["one", "two", "three"]) await createTask(app, ada.id, text);
    await page.getByText("3 total").waitFor();
    await page.getByRole("row", { name: /three/ }).getByText("On hold: Ada is paused").waitFor();
    await page.getByRole("checkbox", { name: "Select one" }).check();
    await page.getByRole("checkbox", { name: "Select two" }).check();
    await page.getByRole("button", { name: "Cancel 2" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel 2 tasks" }).click();
    await page.getByText("Cancelled 2 of 2 tasks").waitFor();
    const left = await app.call("GET /api/queue");
    expect(left.map((task: { instruction: string }) => task.instruction)).toEqual(["three"]);
  });

  it("a browser remembers which columns it hides", async () => {
    await using one = await begin("/console/executions");
    const { page } = one;
    const engine = page.getByRole("columnheader", { name: "Engine" });
    await engine.waitFor();
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByRole("checkbox", { name: "Engine" }).uncheck();
    await engine.waitFor({ state: "detached" });
    await page.reload();
    await page.getByRole("columnheader", { name: "Worker" }).waitFor();
    expect(await engine.count()).toBe(0);
  });
});
