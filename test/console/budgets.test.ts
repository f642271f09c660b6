import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { openApp } from "../harness/app.ts";
import { findBrowser, launch, PHONE, Visitor } from "../harness/browser.ts";

// A browser beside other tests on a small machine takes its time.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const path = await findBrowser();

describe.skipIf(path === null)("budgets in the console (contract 14, contract 17)", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch(path ?? "");
  });
  afterAll(() => browser.close());

  it("a budget is made, holds a task, is lifted, and the task runs; then it is changed and deleted", async () => {
    await using app = await openApp();
    const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada" });
    const run = (message_id: string) =>
      app.call("POST /api/tasks", { message_id, worker_id, instruction: "say hello", type: "immediate" });
    await run("first");
    await app.settle();
    await using visitor = await Visitor.open(browser, app.url, PHONE);
    const { page } = visitor;
    await visitor.goto("/console/budgets");
    await visitor.signIn();
    await page.getByText("There is no budget.").waitFor();
    await page.getByRole("button", { name: "New budget" }).click();
    await page.getByLabel("Name").fill("Month");
    await page.getByLabel("At most").fill("many");
    await page.getByLabel("Of", { exact: true }).selectOption("runs");
    await page.getByRole("button", { name: "Make the budget" }).click();
    await page.getByText(/^At most /).waitFor();
    await page.getByLabel("At most").fill("1");
    await page.getByRole("button", { name: "Make the budget" }).click();
    await page.getByRole("meter", { name: "Month" }).waitFor();
    await page.getByText("used up", { exact: true }).waitFor();
    const held = await run("second");
    await app.settle();
    expect(await app.call(`GET /api/tasks/${held.id}`)).toMatchObject({ status: "pending" });
    await page.getByRole("button", { name: "Lift Month" }).click();
    await page.getByRole("button", { name: "Lift it" }).click();
    await page.getByText("It holds nothing until").waitFor();
    await expect.poll(async () => (await app.call(`GET /api/tasks/${held.id}`)).status, { timeout: 30_000 })
      .toBe("completed");
    await page.getByRole("button", { name: "Hold again" }).click();
    await page.getByText("used up", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Change Month" }).click();
    await page.getByLabel("At most").fill("10");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("2 of 10 runs").waitFor();
    await page.getByRole("button", { name: "Delete Month" }).click();
    await page.getByRole("button", { name: "Delete the budget" }).click();
    await page.getByText("There is no budget.").waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false);
    expect(visitor.complaints).toEqual([]);
  });

  it("an engine that waits for its provider says until when, and is let go on", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    const until = Date.now() + 3_600_000;
    await app.db.write([{
      sql: "insert into rate_limit (engine, until, strikes) values ('echo', ?, 1)",
      args: [until],
    }]);
    await using visitor = await Visitor.open(browser, app.url);
    const { page } = visitor;
    await visitor.goto("/console/budgets");
    await visitor.signIn();
    await page.getByText("Its provider lets nothing through until").waitFor();
    await page.getByRole("button", { name: "Try again now: echo" }).click();
    await page.getByText("Its provider lets nothing through until").waitFor({ state: "detached" });
    expect((await app.call("GET /api/engines/echo")).limited_until).toBeNull();
    expect(visitor.complaints).toEqual([]);
  });
});
