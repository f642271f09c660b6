import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { buildShellEngine } from "../harness/fakes/agents.ts";
import { describeConsole, PHONE } from "../harness/browser.ts";

const BREAKS = buildShellEngine("exit 3");

describeConsole("double presses", ({ open }) => {
  it("a double click creates one worker, one conversation, one message and one schedule [CNS-2]", async () => {
    await using one = await open("/console/workers/new");
    const { app, ada, page, visitor } = one;
    await page.getByLabel("Name").fill("Bob");
    await findButton(page, "Create worker").dblclick();
    await page.getByRole("heading", { name: "Bob" }).waitFor();
    await findButton(page, "Talk").dblclick();
    await page.getByText("Say hello to Bob").waitFor();
    await page.getByLabel("Message", { exact: true }).fill("good morning");
    await findButton(page, "Send").dblclick();
    await page.getByRole("article", { name: "Reply" }).waitFor();
    await visitor.goto(`/console/schedules/new?worker=${ada.id}`);
    await page.getByLabel("Instruction").fill("write the report");
    await findButton(page, "Create schedule").dblclick();
    await page.getByRole("heading", { name: "write the report" }).waitFor();
    await app.settle();
    expect(await app.call("GET /api/workers")).toHaveLength(2);
    expect(await app.call("GET /api/local/sessions")).toHaveLength(1);
    expect(await app.call("GET /api/messages/inbound")).toHaveLength(1);
    expect(await app.call("GET /api/queue")).toHaveLength(1);
  });

  it("a double click runs, retries and pauses once, and does not skip a confirmation [CNS-2]", async () => {
    await using one = await open("/", { config: { engines: { breaks: BREAKS } } });
    const { app, ada, page, visitor } = one;
    for (const name of ["Eve", "Zoe"]) {
      const { id } = await app.call("POST /api/workers", { name, engine: "breaks" });
      const task = { message_id: name, worker_id: id, type: "immediate", instruction: `fetch for ${name}` };
      await app.call("POST /api/tasks", task);
    }
    await app.settle();
    // The first failed run leaves the list, so the second click hits the next one.
    await page.getByRole("button", { name: /^Run again/ }).first().dblclick();
    await page.getByText("Run started again").waitFor();
    await app.settle();
    expect(await app.call("GET /api/executions")).toHaveLength(3);
    const planned = { message_id: "plan", worker_id: ada.id, instruction: "report", type: "scheduled" };
    const { id } = await app.call("POST /api/tasks", { ...planned, cron: "0 5 1 1 *" });
    await visitor.goto(`/console/schedules/${id}`);
    await findButton(page, "Run now").dblclick();
    await page.getByRole("link", { name: /completed report/ }).waitFor();
    await app.settle();
    expect(await app.call(`GET /api/workers/${ada.id}/executions`)).toHaveLength(1);
    await findButton(page, "Pause").dblclick();
    await findButton(page, "Resume").waitFor();
    await expect.poll(async () => (await app.call(`GET /api/tasks/${id}`)).paused).toBe(true);
    await findButton(page, "Delete this schedule").dblclick();
    await page.getByText("It will not run again").waitFor();
    expect((await app.call(`GET /api/tasks/${id}`)).status).toBe("scheduled");
  });

  it("a busy button ignores presses, and a held key presses once [CNS-2]", async () => {
    await using one = await open("/console/schedules");
    const { app, ada, page, visitor } = one;
    const planned = { message_id: "plan", worker_id: ada.id, instruction: "report", type: "scheduled" };
    const { id } = await app.call("POST /api/tasks", { ...planned, cron: "0 5 1 1 *" });
    await visitor.goto(`/console/schedules/${id}`);
    const held = Promise.withResolvers<void>();
    let asked = 0;
    await page.route("**/run", async (route) => (asked++, await held.promise, await route.continue()));
    const run = findButton(page, "Run now");
    for (let presses = 0; presses < 3; presses++) await run.click();
    await run.and(page.locator("[aria-busy=true]")).waitFor();
    await run.press("Enter");
    held.resolve();
    await run.and(page.locator("[aria-busy=false]")).waitFor();
    expect(asked).toBe(1);
    await app.settle();
    // A request that the page has sent may not have reached the service; its answer proves that it has.
    const answered = page.waitForResponse("**/run");
    await run.focus();
    for (let repeats = 0; repeats < 5; repeats++) await page.keyboard.down("Enter");
    await page.keyboard.up("Enter");
    await answered;
    await app.settle();
    expect(await app.call("GET /api/executions")).toHaveLength(2);
    expect(asked).toBe(2);
  });

  it("a double click on a link is one step of the history, and going back closes a dialog", async () => {
    await using one = await open("/");
    const { app, ada, page, visitor } = one;
    await page.getByRole("link", { name: "Workers" }).dblclick();
    await page.getByRole("link", { name: /Ada/ }).click();
    await findButton(page, "Delete Ada").click();
    await page.getByRole("dialog").waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "Workers" }).waitFor();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.goBack();
    await page.getByRole("heading", { name: "Inbox" }).waitFor();
    expect((await app.call(`GET /api/workers/${ada.id}`)).name).toBe("Ada");
    await page.setViewportSize({ width: PHONE.width, height: PHONE.height });
    await page.goForward();
    await page.getByRole("heading", { name: "Workers" }).waitFor();
    await findButton(page, "More").click();
    await page.getByRole("dialog").waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "Inbox" }).waitFor();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await visitor.goto("/console/workers");
  });
});

function findButton(page: Page, name: string) {
  return page.getByRole("button", { name, exact: true });
}
