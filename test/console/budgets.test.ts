import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { describeConsole, PHONE } from "../harness/browser.ts";

describeConsole("budgets in the console", ({ visit }) => {
  it("creates a budget that blocks a task, lifts it so that the task runs, edits and deletes it", async () => {
    await using app = await openApp();
    const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada" });
    const run = (message_id: string) =>
      app.call("POST /api/tasks", { message_id, worker_id, instruction: "say hello", type: "immediate" });
    await run("first");
    await app.settle();
    await using visitor = await visit(app.url, { at: "/console/budgets", view: PHONE });
    const { page } = visitor;
    await page.getByText("No budgets yet.").waitFor();
    await page.getByRole("button", { name: "New budget" }).click();
    await page.getByLabel("Name").fill("Month");
    await page.getByLabel("Limit").fill("many");
    await page.getByLabel("Unit").selectOption("runs");
    await page.getByRole("button", { name: "Create budget" }).click();
    await page.getByText(/^Limit /).waitFor();
    await page.getByLabel("Limit").fill("1");
    await page.getByRole("button", { name: "Create budget" }).click();
    await page.getByRole("meter", { name: "Month" }).waitFor();
    await page.getByText("used up", { exact: true }).waitFor();
    const held = await run("second");
    await app.settle();
    expect(await app.call(`GET /api/tasks/${held.id}`)).toMatchObject({ status: "pending" });
    await page.getByRole("button", { name: "Lift Month" }).click();
    await page.getByRole("button", { name: "Lift budget" }).click();
    await page.getByText("Not enforced until").waitFor();
    await expect.poll(async () => (await app.call(`GET /api/tasks/${held.id}`)).status, { timeout: 30_000 })
      .toBe("completed");
    await page.getByRole("button", { name: "Enforce again" }).click();
    await page.getByText("used up", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Edit Month" }).click();
    await page.getByLabel("Limit").fill("10");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("2 of 10 runs").waitFor();
    await page.getByRole("button", { name: "Delete Month" }).click();
    await page.getByRole("button", { name: "Delete budget" }).click();
    await page.getByText("No budgets yet.").waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false);
  });

  it("shows how long an engine is rate-limited, and resumes it", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    const until = Date.now() + 3_600_000;
    await app.db.write([{
      sql: "insert into rate_limit (engine, until, strikes) values ('echo', ?, 1)",
      args: [until],
    }]);
    await using visitor = await visit(app.url, { at: "/console/budgets" });
    const { page } = visitor;
    await page.getByText("Rate-limited by its provider until").waitFor();
    await page.getByRole("button", { name: "Try again now: echo" }).click();
    await page.getByText("Rate-limited by its provider until").waitFor({ state: "detached" });
    expect((await app.call("GET /api/engines/echo")).limited_until).toBeNull();
  });
});
