import { expect, it } from "vitest";
import { openApp, PASSWORD } from "../harness/service/app.ts";
import { buildShellEngine } from "../harness/fakes/agents.ts";
import { endSessions } from "../harness/model/people.ts";
import { createTask } from "../harness/service/runner.ts";
import { Keyboard } from "../harness/keyboard.ts";
import { describeConsole, DESK, PHONE } from "../harness/browser.ts";

const POLL = { timeout: 30_000 };
const BREAKS = buildShellEngine(
  "for i in $(seq 200); do echo checking $i >&2; done; echo 'cannot open report.csv' >&2; exit 3",
);

describeConsole("journeys through the console", ({ open, visit }) => {
  for (const [name, view] of Object.entries({ desk: DESK, phone: PHONE })) {
    it(`leads from the first sign-in to the first reply on an empty service: ${name}`, async () => {
      await using app = await openApp();
      await using visitor = await visit(app.url, { view });
      const { page } = visitor;
      await visitor.goto("/");
      await page.getByLabel("Name").fill("admin");
      await page.getByLabel("Password").fill("wrong");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("alert").getByText("is wrong").waitFor();
      await visitor.signIn();
      await page.getByRole("heading", { name: "Welcome" }).waitFor();
      await page.getByLabel("Name").fill("Grace");
      await page.getByRole("button", { name: "Create Grace and say hello" }).click();
      await page.getByLabel("Message", { exact: true }).fill("hello there");
      await page.getByRole("button", { name: "Send" }).click();
      await page.getByRole("article", { name: "Reply" }).getByText("hello there").waitFor();
      // A conversation without a name gets its first words as its name.
      await page.getByRole("heading", { name: "hello there" }).waitFor();
      await page.reload();
      await page.getByRole("article", { name: "Reply" }).getByText("hello there").waitFor();
      expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false);
    });
  }

  it("leads to the first reply by keyboard only", async () => {
    await using app = await openApp();
    await using visitor = await visit(app.url);
    const { page } = visitor;
    const keys = new Keyboard(page);
    await visitor.goto("/");
    await page.getByRole("button", { name: "Sign in" }).waitFor();
    await page.keyboard.type("admin");
    await page.keyboard.press("Tab");
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Welcome" }).waitFor();
    await keys.press("Create Ada and say hello");
    await page.getByText("Say hello to Ada").waitFor();
    await page.keyboard.type("good morning");
    await page.keyboard.press("Enter");
    await page.getByRole("article", { name: "Reply" }).getByText("good morning").waitFor();
    await keys.press("Workers");
    await page.getByRole("heading", { name: "Workers" }).waitFor();
    await keys.press(/^idle\s*Ada/);
    await page.getByRole("heading", { name: "Ada" }).waitFor();
  });

  it("opens a failed run from the inbox, shows the end of its log, and searches it", async () => {
    await using app = await openApp({ config: { engines: { breaks: BREAKS } } });
    await app.call("POST /api/workers", { name: "Eve", engine: "breaks" });
    await using visitor = await visit(app.url, { at: "/" });
    const { page } = visitor;
    await page.getByText("Nothing needs your attention.").waitFor();
    const chat = await app.call("POST /api/local/sessions", {});
    await app.call(`POST /api/local/sessions/${chat.id}/messages`, { content: "fetch the report" });
    // The open page updates automatically.
    await page.getByRole("link", { name: /fetch the report/ }).click();
    await page.getByRole("heading", { name: "Run of Eve" }).waitFor();
    const log = page.getByRole("list", { name: "Log lines" });
    await log.getByText("cannot open report.csv").first().waitFor();
    expect(await log.getByText("checking 1", { exact: true }).count()).toBe(0);
    await page.getByLabel("Search the log").fill("checking 17");
    await page.getByText("1 of 11").waitFor();
    await page.getByRole("button", { name: "Next match" }).click();
    await log.locator(".hit").getByText("checking 170").waitFor();
    await log.getByRole("link", { name: "Line 171" }).click();
    await page.waitForURL(/line=171/);
    await page.reload();
    await log.locator(".chosen").getByText("checking 170").waitFor();
  });

  it("starts a run again, and cancels all filtered tasks", async () => {
    await using one = await open("/");
    const { app, ada, page, visitor } = one;
    await createTask(app, ada.id, "say hello");
    await app.settle();
    const [execution] = await app.call("GET /api/executions");
    await visitor.goto(`/console/executions/${execution.id}`);
    await page.getByRole("button", { name: "Run again" }).click();
    await page.getByRole("heading", { name: "say hello" }).waitFor();
    await page.getByRole("link", { name: /completed say hello/ }).waitFor();
    await app.call(`PUT /api/workers/${ada.id}`, { paused: true });
    await visitor.goto("/console/tasks?status=pending");
    await page.getByText("No matches.").waitFor();
    for (let number = 0; number < 3; number++) {
      await app.call(`POST /api/executions/${execution.id}/retry`, {});
    }
    await page.getByText("3 total").waitFor();
    await page.getByRole("button", { name: "Cancel all" }).click();
    await page.getByRole("button", { name: "Cancel 3 tasks" }).click();
    await page.getByText("No matches.").waitFor();
    expect(await app.call("GET /api/queue")).toEqual([]);
  });

  it("creates a worker in a department and edits it, and another tab shows the changes", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "First" });
    await using visitor = await visit(app.url, { at: "/console/workers" });
    const { page } = visitor;
    const other = await visitor.context.newPage();
    await other.goto(`${app.url}/console/workers`);
    await other.getByText("First").waitFor();
    await page.bringToFront();
    await page.getByRole("button", { name: "Departments" }).click();
    await page.getByRole("button", { name: "New department" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("Research");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("link", { name: "New worker" }).click();
    await page.getByLabel("Name").fill("Ada");
    await page.getByLabel("Description").fill("Writes");
    // Input survives a reload.
    await page.reload();
    await page.getByLabel("Research").check();
    await page.getByRole("button", { name: "Create worker" }).click();
    await page.getByRole("heading", { name: "Ada" }).waitFor();
    await page.getByText("Research").waitFor();
    await other.getByText("Ada").waitFor();
    await page.getByRole("link", { name: "Edit" }).click();
    await page.getByLabel("Description").fill("Reads");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Reads", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Delete Ada" }).click();
    await page.getByText("Its history and its directory are kept").waitFor();
    await page.getByRole("button", { name: "Delete worker" }).click();
    await page.getByRole("heading", { name: "Workers" }).waitFor();
    await expect.poll(() => other.getByText("Ada").count(), POLL).toBe(0);
  });

  it("an expired session leads to the login and back, and the typed message is sent [CNS-3]", async () => {
    await using one = await open("/", { config: { auth: { access_ttl: "2s" } } });
    const { app, ada, page, visitor } = one;
    const chat = await app.call("POST /api/local/sessions", { name: "Plans", worker_id: ada.id });
    await visitor.goto(`/console/chat/${chat.id}`);
    await page.getByLabel("Message", { exact: true }).fill("do not lose this");
    await endSessions(app);
    await page.getByRole("heading", { name: "Sign in again" }).waitFor();
    expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("do not lose this");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByLabel("Password").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("article", { name: "Reply" }).getByText("do not lose this").waitFor();
    expect(page.url()).toContain(chat.id);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in to svc" }).waitFor();
    expect(await page.evaluate("localStorage.length")).toBe(0);
  });

  it("all tabs share one stream, and another tab takes it over when its tab closes", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "First" });
    await using visitor = await visit(app.url);
    const { page, context } = visitor;
    const streams: string[] = [];
    context.on("request", (request) => {
      if (
        /\/api\/events(\?after=\d+)?$/.test(request.url()) && request.headers().accept === "text/event-stream"
      ) {
        streams.push(request.url());
      }
    });
    await visitor.goto("/console/workers");
    await visitor.signIn();
    const others = [await context.newPage(), await context.newPage()];
    for (const other of others) {
      await other.goto(`${app.url}/console/workers`);
      await other.getByText("First").waitFor();
    }
    await app.call("POST /api/workers", { name: "Second" });
    for (const each of [page, ...others]) await each.getByText("Second").waitFor();
    expect(streams.length).toBe(1);
    await page.close();
    await expect.poll(() => streams.length, POLL).toBe(2);
    await app.call("POST /api/workers", { name: "Third" });
    for (const other of others) await other.getByText("Third").waitFor();
  });
});
