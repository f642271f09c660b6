import { Buffer } from "node:buffer";
import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { buildShellEngine } from "../harness/fakes/agents.ts";
import { describeConsole, PHONE } from "../harness/browser.ts";

const FILE_BYTES = 600_000;
const BREAKS = buildShellEngine("exit 3");
const BREAKS_ONCE = buildShellEngine(
  "[ -e been ] && echo fetched && exit 0; touch been; echo 'no route' >&2; exit 3",
);

describeConsole("chat and work in the console", ({ open, visit }) => {
  it("uploads a file with its progress, and downloads it unchanged", async () => {
    await using one = await open("/");
    const { app, ada, page, visitor } = one;
    const chat = await app.call("POST /api/local/sessions", { worker_id: ada.id });
    await visitor.goto(`/console/chat/${chat.id}`);
    await page.getByText("Say hello to Ada").waitFor();
    const devtools = await visitor.context.newCDPSession(page);
    const slow = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 400_000 };
    await devtools.send("Network.emulateNetworkConditions", slow);
    const content = new Uint8Array(FILE_BYTES).map((_, index) => index % 251);
    await page.locator("input[type=file]").setInputFiles({
      name: "figures.bin",
      mimeType: "application/octet-stream",
      buffer: Buffer.from(content),
    });
    await page.getByText("figures.bin").waitFor();
    await page.getByLabel("Message", { exact: true }).fill("look at this");
    await page.getByRole("button", { name: "Send" }).click();
    await page.locator("progress[aria-label=Upload]:not([value='0'])").waitFor();
    const link = page.getByRole("article", { name: "You" }).getByRole("button", { name: /figures\.bin/ });
    await link.waitFor();
    const [download] = await Promise.all([page.waitForEvent("download"), link.click()]);
    expect(download.suggestedFilename()).toBe("figures.bin");
    expect(await Deno.readFile(await download.path())).toEqual(content);
  });

  it("answers a question on a phone, with an option in the inbox and with text in the chat", async () => {
    await using one = await open("/", { view: PHONE });
    const { app, ada, page, visitor } = one;
    const chat = await app.call("POST /api/local/sessions", { worker_id: ada.id });
    const said = await app.call(`POST /api/local/sessions/${chat.id}/messages`, { content: "tidy up" });
    await app.settle();
    await page.getByText("Nothing needs your attention.").waitFor();
    const ask = (text: string, options: string[]) =>
      app.call("POST /api/questions", { message_id: said.message_id, text, options });
    const first = await ask("Delete the old backups, too?", ["Yes", "No"]);
    await page.getByText("Delete the old backups, too?").waitFor();
    await page.getByRole("button", { name: "No", exact: true }).click();
    await page.getByText("Nothing needs your attention.").waitFor();
    expect(await app.call(`GET /api/questions/${first.id}`)).toMatchObject({
      status: "answered",
      answer: "No",
    });
    const second = await ask("What shall the archive be called?", []);
    await visitor.goto(`/console/chat/${chat.id}`);
    const asked = page.getByRole("article", { name: "Reply" }).filter({ hasText: "What shall the archive" });
    await asked.getByLabel("Your answer").fill("november");
    await asked.getByRole("button", { name: "Answer" }).click();
    await asked.getByLabel("Your answer").waitFor({ state: "detached" });
    await asked.getByText(/^admin answered: november, /).waitFor();
    expect(await app.call(`GET /api/questions/${second.id}`)).toMatchObject({ answer: "november" });
  });

  it("opens a failed run and runs it again, which removes it from the inbox", async () => {
    await using app = await openApp({ config: { engines: { breaks: BREAKS_ONCE } } });
    await app.call("POST /api/workers", { name: "Eve", engine: "breaks" });
    const chat = await app.call("POST /api/local/sessions", {});
    await app.call(`POST /api/local/sessions/${chat.id}/messages`, { content: "fetch the report" });
    await app.settle();
    await using visitor = await visit(app.url, { at: "/", view: PHONE });
    const { page } = visitor;
    await page.getByRole("link", { name: /fetch the report/ }).click();
    await page.getByRole("list", { name: "Log lines" }).getByText("no route").first().waitFor();
    await page.getByRole("button", { name: "Run again" }).click();
    await page.getByRole("link", { name: /completed fetch the report/ }).click();
    await page.getByRole("heading", { name: "Result" }).waitFor();
    await visitor.goto("/");
    await page.getByText("Nothing needs your attention.").waitFor();
  });

  it("runs each confirmed failure again once, and no run that fails during the question", async () => {
    await using app = await openApp({ config: { engines: { breaks: BREAKS } } });
    const eve = await app.call("POST /api/workers", { name: "Eve", engine: "breaks" });
    const fail = async (...names: string[]) => {
      const task = { worker_id: eve.id, type: "immediate", instruction: "fetch the report" };
      for (const name of names) await app.call("POST /api/tasks", { ...task, message_id: name });
      await app.settle();
    };
    await fail("first", "second");
    await using visitor = await visit(app.url, { at: "/console/executions?status=failed" });
    const { page } = visitor;
    await page.getByText("2 total").waitFor();
    await page.getByRole("button", { name: "Run all 2 again" }).click();
    await page.getByRole("button", { name: "Run 2 again" }).waitFor();
    await fail("third");
    await page.getByText("3 total").waitFor();
    await page.getByRole("button", { name: "Run 2 again" }).click();
    await page.getByText("Started 2 of 2 runs again").waitFor();
    await app.settle();
    expect(await app.call("GET /api/executions")).toHaveLength(5);
  });

  it("shows a reply with 20,000 or 500 levels, and the conversation continues", async () => {
    await using one = await open("/");
    const { app, ada, page, visitor } = one;
    const chat = await app.call("POST /api/local/sessions", { worker_id: ada.id });
    for (const content of [">".repeat(20_000), `${">".repeat(500)} deep`]) {
      await app.call(`POST /api/local/sessions/${chat.id}/messages`, { content });
    }
    await app.settle();
    await visitor.goto(`/console/chat/${chat.id}`);
    const replies = page.getByRole("article", { name: "Reply" });
    await replies.getByText(/^>{20000}$/).waitFor();
    await replies.getByText(/^>+ deep$/).waitFor();
    expect(await replies.locator("blockquote").count()).toBeLessThan(60);
    await page.getByLabel("Message", { exact: true }).fill("good morning");
    await page.getByRole("button", { name: "Send" }).click();
    await replies.getByText("good morning").waitFor();
  });

  it("lets a worker forget one conversation", async () => {
    await using one = await open("/");
    const { app, ada, page, visitor } = one;
    const keys: string[] = [];
    for (const name of ["Plans", "Reports"]) {
      const chat = await app.call("POST /api/local/sessions", { name, worker_id: ada.id });
      await app.call(`POST /api/local/sessions/${chat.id}/messages`, { content: `about ${name}` });
      keys.push(`local:${chat.id}`);
    }
    await app.settle();
    await app.db.write(keys.map((key) => ({
      sql:
        `insert or replace into session_context (session_key, worker_id, engine, session_id, work_dir, updated_at)
        values (?, ?, 'echo', 's', '', 0)`,
      args: [key, ada.id],
    })));
    await visitor.goto(`/console/workers/${ada.id}`);
    await page.getByText("Conversation contexts").click();
    const forget = page.getByRole("button", { name: "Forget", exact: true });
    await forget.nth(1).waitFor();
    await page.getByRole("listitem").filter({ has: page.locator(`a[href$='${keys[0]?.slice(6)}']`) })
      .getByRole("button", { name: "Forget", exact: true }).click();
    await page.getByRole("button", { name: "Forget context" }).click();
    await forget.nth(1).waitFor({ state: "detached" });
    expect(await app.call(`GET /api/contexts?session_key=${keys[0]}`)).toEqual([]);
    expect(await app.call(`GET /api/contexts?session_key=${keys[1]}`)).toHaveLength(1);
  });

  it("moves a worker to another department, and finds it in the parent department", async () => {
    await using app = await openApp();
    const upper = await app.call("POST /api/departments", { name: "Research" });
    await app.call("POST /api/departments", { name: "Archive", parent_id: upper.id });
    const sales = await app.call("POST /api/departments", { name: "Sales" });
    await app.call("POST /api/workers", { name: "Ada", departments: [sales.id] });
    await using visitor = await visit(app.url, { at: "/console/workers" });
    const { page } = visitor;
    await page.getByRole("link", { name: /Ada/ }).click();
    await page.getByRole("link", { name: "Edit" }).click();
    await page.getByLabel("Sales").uncheck();
    await page.getByLabel("Archive").check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Archive").waitFor();
    await visitor.goto(`/console/workers?department=${upper.id}`);
    await page.getByRole("link", { name: /Ada/ }).waitFor();
    await visitor.goto(`/console/workers?department=${sales.id}`);
    await page.getByText("No matches.").waitFor();
  });
});
