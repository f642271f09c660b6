import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { buildShellEngine } from "../harness/fakes/agents.ts";
import { describeConsole } from "../harness/browser.ts";

const BREAKS = buildShellEngine(`printf '\\033[31mno route\\033[0m\\n' >&2; exit 3`);
const WRITES = buildShellEngine("printf '**Sign-ups** are up, see `47.md`'");

describeConsole("replies in the chat", ({ open, visit }) => {
  it("name their worker; a failure is a card that opens the run and retries it; previews have no signs", async () => {
    await using app = await openApp({ config: { engines: { breaks: BREAKS, writes: WRITES } } });
    const ada = await app.call("POST /api/workers", { name: "Ada", engine: "writes" });
    await app.call("POST /api/workers", { name: "Eve", engine: "breaks" });
    const chat = await app.call("POST /api/local/sessions", { name: "Report", worker_id: ada.id });
    for (const content of ["@Eve fetch it", "how did it go?"]) {
      await app.call(`POST /api/local/sessions/${chat.id}/messages`, { content });
      await app.settle();
    }
    await using visitor = await visit(app.url, { at: `/console/chat/${chat.id}` });
    const { page } = visitor;
    const replies = page.getByRole("article", { name: "Reply" });
    await replies.nth(1).getByText("Ada", { exact: true }).waitFor();
    const failure = replies.nth(0);
    await failure.getByText("Eve", { exact: true }).waitFor();
    await failure.getByText("Eve’s run ended with an error").waitFor();
    expect(await failure.innerText()).not.toMatch(/\[31m|exit_code|\(execution /);
    await page.getByRole("link", { name: /^Report Sign-ups are up, see 47\.md/ }).waitFor();
    await failure.getByRole("button", { name: "Retry" }).click();
    await app.settle();
    await replies.nth(2).getByText("Eve’s run ended with an error").waitFor();
    await failure.getByRole("link", { name: "Open run" }).click();
    await page.getByRole("heading", { name: "Run of Eve" }).waitFor();
  });

  it("held work shows what holds it, until when and what to do, also after a reload", async () => {
    await using one = await open("/");
    const { app, ada, page, visitor } = one;
    const budget = { name: "Tight", unit: "runs", limit: 1, period: "24h", target: `worker:${ada.id}` };
    await app.call("POST /api/budgets", budget);
    const chat = await app.call("POST /api/local/sessions", { worker_id: ada.id });
    await visitor.goto(`/console/chat/${chat.id}`);
    await page.getByText("Say hello to Ada").waitFor();
    const send = async (text: string) => {
      await page.getByLabel("Message", { exact: true }).fill(text);
      await page.getByRole("button", { name: "Send" }).click();
    };
    await send("good morning");
    await page.getByRole("article", { name: "Reply" }).getByText("good morning").waitFor();
    await send("good evening");
    const held = page.getByRole("status").getByText("On hold: budget used up, resumes in 24 h");
    await held.waitFor();
    await page.reload();
    await held.waitFor();
    await page.getByText('The budget "Tight" is used up').waitFor();
    await page.getByRole("link", { name: "Open budgets" }).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await held.waitFor({ state: "detached" });
    expect(await app.call("GET /api/queue")).toEqual([]);
    // The work of a paused worker waits, too.
    await app.call(`PUT /api/workers/${ada.id}`, { paused: true });
    await send("good night");
    await page.getByRole("status").getByText("On hold: Ada is paused").waitFor();
  });

  it("a mention with a typing error sends nothing, and offers the name", async () => {
    await using one = await open("/");
    const { app, page, visitor } = one;
    await app.call("POST /api/workers", { name: "Shouty" });
    const chat = await app.call("POST /api/local/sessions", {});
    await visitor.goto(`/console/chat/${chat.id}`);
    const field = page.getByLabel("Message", { exact: true });
    await field.fill("@Shoty hello");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("alert").getByText('No worker named "Shoty".').waitFor();
    expect(await app.call("GET /api/messages/inbound")).toEqual([]);
    await page.getByRole("button", { name: "Use @Shouty" }).click();
    expect(await field.inputValue()).toBe("@Shouty hello");
    await page.getByRole("button", { name: "Send" }).click();
    const reply = page.getByRole("article", { name: "Reply" });
    await reply.getByText("Shouty", { exact: true }).waitFor();
  });
});
