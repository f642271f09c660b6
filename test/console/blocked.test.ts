import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { buildShellEngine } from "../harness/fakes/agents.ts";
import { createTask } from "../harness/service/runner.ts";
import { describeConsole, PHONE } from "../harness/browser.ts";

// The check finds the file in the second round.
const MENDS = {
  ...buildShellEngine("[ -e first ] && touch good; touch first; echo done"),
  shell: ["env"],
};

describeConsole("blocked and paused work in the console", ({ open, visit }) => {
  it("the inbox lists paused and blocked work, and resumes it", async () => {
    await using one = await open("/", { view: PHONE });
    const { app, ada, page, visitor } = one;
    const bob = await app.call("POST /api/workers", { name: "Bob" });
    const plan = { message_id: "plan", worker_id: ada.id, instruction: "read the mail", type: "scheduled" };
    const schedule = await app.call("POST /api/tasks", { ...plan, cron: "0 5 1 1 *", name: "Mail" });
    await page.getByText("Nothing needs your attention.").waitFor();
    await app.call(`PUT /api/tasks/${schedule.id}`, { paused: true });
    await app.call(`PUT /api/workers/${bob.id}`, { paused: true });
    await visitor.goto(`/console/tasks/${schedule.id}`);
    await page.getByText("Paused: it does not run until you resume the schedule.").waitFor();
    await visitor.goto("/console");
    await page.getByRole("button", { name: "Resume: Mail" }).click();
    await page.getByRole("link", { name: /Mail is paused/ }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Resume: Bob" }).click();
    await page.getByText("Nothing needs your attention.").waitFor();
    expect(await app.call(`GET /api/tasks/${schedule.id}`)).toMatchObject({ paused: false });

    await app.call("POST /api/budgets", {
      name: "Tight",
      unit: "runs",
      limit: 0,
      period: "24h",
      target: `worker:${ada.id}`,
    });
    const task = await createTask(app, ada.id, "say hello");
    await page.getByRole("link", { name: /Budget Tight is used up/ }).waitFor();
    await visitor.goto(`/console/tasks/${task}`);
    await page.getByRole("note").getByText("On hold: budget used up").waitFor();
    await page.getByRole("link", { name: "Open budgets" }).click();
    await page.getByRole("meter", { name: "Tight" }).waitFor();
    await visitor.goto(`/console/workers/${ada.id}`);
    await page.getByRole("meter", { name: "Tight" }).waitFor();
    await page.getByText('New runs wait: the budget "Tight" is used up.').waitFor();
    await page.getByRole("link", { name: "New budget" }).click();
    await page.getByRole("dialog").getByLabel("Applies to").evaluate((box) => {
      if ((box as unknown as { value: string }).value === "global") throw new Error("not for the worker");
    });
    expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false);
  });

  it("a run shows the rounds of its check, each with a link to its line of the log", async () => {
    await using app = await openApp({ config: { engines: { mends: MENDS } } });
    const ada = await app.call("POST /api/workers", { name: "Ada", engine: "mends" });
    await app.call("POST /api/tasks", {
      message_id: "script",
      worker_id: ada.id,
      instruction: "make it good",
      type: "immediate",
      verify: { command: ["test", "-e", "good"] },
    });
    await app.settle();
    const [execution] = await app.call("GET /api/executions");
    await using visitor = await visit(app.url, { at: `/console/executions/${execution.id}`, view: PHONE });
    const { page } = visitor;
    await page.getByText("passed, 2 rounds").waitFor();
    const rounds = page.getByRole("list", { name: "Check rounds" }).getByRole("listitem");
    await rounds.nth(1).waitFor();
    expect(await rounds.count()).toBe(2);
    await rounds.filter({ hasText: "Round 1: exit code 1" }).getByRole("button").click();
    await page.getByRole("list", { name: "Log lines" }).locator(".chosen").getByText("check 1: exit code 1")
      .waitFor();
  });

  it("a message explains which worker got it and why", async () => {
    await using one = await open("/", { view: PHONE });
    const { app, page, visitor } = one;
    await app.call("POST /api/workers", { name: "Bob" });
    const chat = await app.call("POST /api/local/sessions", {});
    await app.call(`POST /api/local/sessions/${chat.id}/messages`, { content: "@Ada good morning" });
    await app.settle();
    await visitor.goto(`/console/chat/${chat.id}`);
    await page.getByRole("button", { name: "Why this worker?" }).click();
    await page.getByRole("note").getByText(/^Routed to Ada by rules: .*mention/).waitFor();
    await page.getByRole("link", { name: "View trace" }).click();
    await page.getByText("Routed by rules").waitFor();
  });
});
