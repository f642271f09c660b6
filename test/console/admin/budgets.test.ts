import { expect, it } from "vitest";
import { describeConsole, PHONE } from "../../harness/browser.ts";

describeConsole("budgets in the console", ({ open }) => {
  it("creates a budget that blocks a task, lifts it so that the task runs, and edits it", async () => {
    await using one = await open("/console/budgets", { view: PHONE });
    const { app, page, ada: { id: worker_id } } = one;
    const run = (message_id: string) =>
      app.call("POST /api/tasks", { message_id, worker_id, instruction: "say hello", type: "immediate" });
    await run("first");
    await app.settle();
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
  });

  it("shows how long an engine is rate-limited, and resumes it", async () => {
    await using one = await open("/");
    const { app, page, visitor } = one;
    const sql =
      "insert into rate_limit (engine, until, strikes, since, announced) values ('echo', ?, 1, 0, 1)";
    await app.db.write([{ sql, args: [Date.now() + 3_600_000] }]);
    await visitor.goto("/console/budgets");
    await page.getByText("Rate-limited by its provider until").waitFor();
    await page.getByRole("button", { name: "Try again now: echo" }).click();
    await page.getByText("Rate-limited by its provider until").waitFor({ state: "detached" });
    expect((await app.call("GET /api/engines/echo")).limited_until).toBeNull();
  });
});
