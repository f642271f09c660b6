import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { buildShellEngine } from "../harness/fakes/agents.ts";
import { createTask } from "../harness/service/runner.ts";
import { describeConsole, PHONE } from "../harness/browser.ts";
import { Wire } from "../harness/fakes/wire.ts";
import { createSchedule } from "../harness/model/workload.ts";

const HOUR_MS = 3_600_000;
const MANY = 50_000;
const LONG_BYTES = 16 * 1024 * 1024;
const ONE_LINE = buildShellEngine(`head -c ${LONG_BYTES} /dev/zero | tr '\\0' x >&2; echo >&2; echo done`);

describeConsole("the console with failures", ({ open, visit }) => {
  it("a broken stream has a notice, and reconnecting loads the missed messages and loses no input", async () => {
    await using app = await openApp();
    await using wire = new Wire(app.url);
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    const chat = await app.call("POST /api/local/sessions", { worker_id: ada.id });
    await using visitor = await visit(wire.url, { at: `/console/chat/${chat.id}` });
    const { page } = visitor;
    await page.getByText("Say hello to Ada").waitFor();
    wire.cut();
    await page.getByRole("status").getByText("Reconnecting").waitFor();
    await page.getByLabel("Message", { exact: true }).fill("are you there");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("alert").getByText("The service does not respond").waitFor();
    expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("are you there");
    await app.call(`POST /api/local/sessions/${chat.id}/messages`, { content: "said meanwhile" });
    await app.settle();
    wire.mend();
    await page.getByRole("article", { name: "Reply" }).getByText("said meanwhile").waitFor();
    await page.getByText("Reconnecting").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("article", { name: "Reply" }).getByText("are you there").waitFor();
  });

  for (const way of ["cut", "silence"] as const) {
    it(`a stream that is lost for a minute (${way}) shows in the page, which continues after it [CNS-3]`, async () => {
      await using app = await openApp();
      await using wire = new Wire(app.url);
      await app.call("POST /api/workers", { name: "Before" });
      await using visitor = await visit(wire.url);
      const { page } = visitor;
      // The test advances the clock of the page.
      await page.clock.install();
      await visitor.goto("/console/workers");
      await visitor.signIn();
      await page.getByText("Before").waitFor();
      await page.getByText("Reconnecting").waitFor({ state: "detached" });
      wire[way]();
      for (let seconds = 0; seconds < 60; seconds += 10) await page.clock.runFor(10_000);
      await page.getByRole("status").getByText("Reconnecting").waitFor();
      await app.call("POST /api/workers", { name: "Meanwhile" });
      wire.mend();
      await expect.poll(async () => {
        await page.clock.runFor(10_000);
        return await page.getByText("Meanwhile").count();
      }, { timeout: 60_000 }).toBe(1);
      await page.getByText("Reconnecting").waitFor({ state: "detached" });
      await app.call("POST /api/workers", { name: "After" });
      await expect.poll(async () => {
        await page.clock.runFor(1_000);
        return await page.getByText("After").count();
      }, { timeout: 60_000 }).toBe(1);
    });
  }

  it("shows events from between the load of a page and its stream", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Before" });
    await using visitor = await visit(app.url);
    const { page } = visitor;
    const open = Promise.withResolvers<void>();
    await page.route(/\/api\/events$/, async (route) => (await open.promise, await route.continue()));
    await visitor.goto("/console/workers");
    await visitor.signIn();
    await page.getByText("Before").waitFor();
    await app.call("POST /api/workers", { name: "Meanwhile" });
    open.resolve();
    await page.getByText("Meanwhile").waitFor();
  });

  it("reconnects to a restarted service with the same session [CNS-3]", async () => {
    const first = await openApp();
    await first.call("POST /api/workers", { name: "Before" });
    // A service that stops answers 503.
    await using visitor = await visit(first.url, {
      at: "/console/workers",
      allowed: /^Failed to load resource.* 503/,
    });
    const { page } = visitor;
    await page.getByText("Before").waitFor();
    await first.stop();
    await page.getByRole("status").getByText("Reconnecting").waitFor();
    const port = Number(new URL(first.url).port);
    await using second = await openApp({ dataDir: first.dataDir, config: { server: { port } } });
    await second.call("POST /api/workers", { name: "After" });
    await page.getByText("After").waitFor();
    expect(await page.getByRole("heading", { name: /^Sign in/ }).count()).toBe(0);
    await second.stop();
    await Deno.remove(first.dataDir, { recursive: true });
  });

  it("a page that a proxy refuses during a restart loads its data afterwards", async () => {
    await using app = await openApp();
    await app.call("POST /api/budgets", { name: "Tight", unit: "runs", limit: 9, period: "24h" });
    const allowed = /^Failed to load resource.* (502|504|429)/;
    await using visitor = await visit(app.url, { at: "/console/workers", allowed });
    const { page } = visitor;
    // A new stream makes every page load again.
    await page.getByText("Reconnecting").waitFor({ state: "detached" });
    for (const status of [502, 504, 429]) {
      const body = "<html><title>a page of the proxy's own</title></html>";
      const answer = { status, contentType: "text/html", body };
      await page.route(/\/api\/budgets/, (route) => route.fulfill(answer), { times: 1 });
      await page.getByRole("link", { name: "Costs" }).click();
      await page.getByText(`The service returned ${status}`).waitFor();
      await page.getByRole("meter", { name: "Tight" }).waitFor();
      await page.getByRole("link", { name: "Workers" }).click();
    }
  });

  for (const hours of [-1, 1]) {
    it(`a browser whose clock is ${hours} h off shows times by the service's clock [CNS-3]`, async () => {
      await using app = await openApp();
      const ada = await app.call("POST /api/workers", { name: "Ada" });
      await createTask(app, ada.id, "say hello");
      await app.settle();
      await using visitor = await visit(app.url, { view: PHONE });
      const { page } = visitor;
      await visitor.context.addInitScript({
        content: `const real = Date.now; Date.now = () => real() + ${hours * HOUR_MS};`,
      });
      await visitor.goto("/console/executions");
      await visitor.signIn();
      const row = page.getByRole("link", { name: /say hello/ });
      await row.waitFor();
      await expect.poll(() => row.innerText()).toMatch(/just now|\d+ (s|min) ago/);
    });
  }

  it("scrolls a queue of 50,000 tasks, and draws only the visible rows", async () => {
    await using one = await open("/");
    const { app, ada, page, visitor } = one;
    const task = await createSchedule(app, ada.id, "once a year");
    const columns = await app.db.read<{ name: string }>("select name from pragma_table_info('task')");
    const values = columns.map(({ name }) =>
      name === "id" ? "printf('%08x-0000-7000-8000-%012x', i / 65536, i)" : `task."${name}"`
    );
    await app.db.write([{
      sql: `with recursive n (i) as (select 1 union all select i + 1 from n where i < ${MANY - 1})
        insert into task (${columns.map(({ name }) => `"${name}"`).join(", ")})
        select ${values.join(", ")} from task, n where task.id = ?`,
      args: [task],
    }]);
    await visitor.goto("/console/tasks");
    await page.getByText(/0\+? total/).waitFor();
    const rows = page.getByRole("list", { name: "Tasks" });
    await rows.getByRole("listitem").first().waitFor();
    for (let pages = 1; pages <= 4; pages++) {
      await rows.evaluate((box) => box.scrollTo(0, box.scrollHeight));
      await rows.locator(`[aria-setsize='${100 * (pages + 1)}']`).first().waitFor();
    }
    expect(await rows.getByRole("listitem").count()).toBeLessThan(60);
    // A new task is listed once, before the tasks that were loaded earlier.
    await createSchedule(app, ada.id, "came meanwhile");
    await rows.locator("[aria-setsize='501']").first().waitFor();
    await rows.evaluate((box) => box.scrollTo(0, 0));
    await rows.locator("[aria-posinset='1']").getByText("came meanwhile").waitFor();
    await rows.locator("[aria-posinset='2']").getByText("once a year").waitFor();
    // The button is hidden if one request cannot cancel all tasks.
    expect(await page.getByRole("button", { name: "Cancel all" }).count()).toBe(0);
  });

  it("shows the start and the length of a log line of 16 MiB", async () => {
    await using app = await openApp({ config: { engines: { long: ONE_LINE } } });
    const ada = await app.call("POST /api/workers", { name: "Ada", engine: "long" });
    await createTask(app, ada.id, "talk");
    await app.settle();
    const [execution] = await app.call("GET /api/executions");
    await using visitor = await visit(app.url, { at: `/console/executions/${execution.id}` });
    const { page } = visitor;
    const log = page.getByRole("list", { name: "Log lines" });
    await log.getByText(/^x{5,}|xxxxx/).first().waitFor();
    await page.getByLabel("Search the log").fill("xxx");
    await page.getByText(/1 of \d+/).waitFor();
    const shown = await log.evaluate((box) => box.textContent?.length ?? 0);
    expect(shown).toBeLessThan(2_000_000);
  });

  it("a viewer sees an explanation and no actions at the links of an administrator [CNS-4]", async () => {
    await using app = await openApp();
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    await app.call("POST /api/users", { name: "grace", role: "viewer", password: "a long secret" });
    await using visitor = await visit(app.url, {
      at: "/console/system/backup",
      name: "grace",
      password: "a long secret",
    });
    const { page } = visitor;
    await page.getByText("Only administrators can create backups.").waitFor();
    await visitor.goto(`/console/workers/${ada.id}/edit`);
    await page.getByText("permission to edit workers").waitFor();
    await visitor.goto(`/console/workers/${ada.id}`);
    await page.getByRole("heading", { name: "Ada" }).waitFor();
    expect(await page.getByRole("link", { name: "Edit" }).count()).toBe(0);
    await visitor.goto("/console/system/users");
    await page.getByText("viewer · you").waitFor();
    expect(await page.getByRole("button", { name: /grace|New user/ }).count()).toBe(0);
    await visitor.goto(`/console/budgets?for=worker:${ada.id}`);
    await page.getByText("No budgets yet.").waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
    await visitor.goto("/console/schedules/new");
    await page.getByText("permission to edit schedules").waitFor();
    const pages = "chat executions tasks workers schedules messages memory budgets platforms runners system";
    for (const address of ["/", ...pages.split(" ").map((name) => `/console/${name}`)]) {
      await visitor.goto(address);
      await page.getByRole("heading").first().waitFor();
      await expect.poll(() => page.locator(".loading").count(), { timeout: 30_000 }).toBe(0);
      const names = await page.locator("main").getByRole("button").allInnerTexts();
      expect([address, names.filter((name) => !/^(Departments|)$/.test(name))]).toEqual([address, []]);
    }
  });
});
