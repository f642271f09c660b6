import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { fakeEngines } from "../harness/agents.ts";
import { type App, openApp, PASSWORD, type TestSettings } from "../harness/app.ts";
import { findBrowser, launch, Visitor } from "../harness/browser.ts";
import { Keyboard } from "../harness/keyboard.ts";
import { FakeRunner } from "../harness/runner.ts";
import { eventually } from "../harness/wait.ts";
import { FakeTelegram } from "../platform/fakes/telegram.ts";

// A browser beside other tests on a small machine takes its time.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const path = await findBrowser();
const BREAKS_ONCE = {
  kind: "command",
  command: "sh",
  args: ["-c", "cat >/dev/null; [ -e been ] && echo fetched && exit 0; touch been; exit 3"],
};

describe.skipIf(path === null)("every journey by keyboard alone (contract 17.3)", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch(path ?? "");
  });
  afterAll(() => browser.close());

  /** A service with a worker, and somebody who has signed in and come to a page by keys. */
  async function begin(address: string, config: TestSettings = {}) {
    const app = await openApp({ config });
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    const visitor = await Visitor.open(browser, app.url);
    const keys = new Keyboard(visitor.page);
    const go = async (to: string) => {
      await visitor.goto(to);
      await visitor.page.locator("h1:visible, h2:visible").first().waitFor();
    };
    await go(address);
    await keys.write("Name", "admin");
    await keys.write("Password", PASSWORD);
    await visitor.page.keyboard.press("Enter");
    await visitor.page.getByRole("heading", { name: /^Sign in/ }).waitFor({ state: "detached" });
    const end = async () => {
      expect(visitor.complaints).toEqual([]);
      await visitor[Symbol.asyncDispose]();
    };
    return {
      app,
      ada,
      page: visitor.page,
      keys,
      go,
      [Symbol.asyncDispose]: async () => {
        await end();
        await app[Symbol.asyncDispose]();
      },
    };
  }

  it("a schedule is made with its preview, paused, run and deleted", async () => {
    await using one = await begin("/console/schedules");
    const { page, keys } = one;
    await keys.press("New schedule");
    await page.getByRole("heading", { name: "New schedule" }).waitFor();
    await keys.write("Instruction", "write the report");
    await keys.write("Cron expression", "30 7 * * 1");
    await page.getByRole("list", { name: "Next times" }).getByText(/07:30$/).first().waitFor();
    await keys.press("Schedule it");
    await page.getByRole("heading", { name: "write the report" }).waitFor();
    await keys.press("Pause");
    await page.getByText("catches up with nothing later").waitFor();
    await keys.press("Resume");
    await page.getByText("catches up with nothing later").waitFor({ state: "detached" });
    await keys.press("Run now");
    await page.getByRole("link", { name: /completed write the report/ }).waitFor();
    await keys.press("Delete this schedule");
    await keys.press("Delete the schedule");
    await page.getByText("Nothing is scheduled.").waitFor();
  });

  it("a budget is made, lifted, changed and deleted; Escape leaves a window, and the focus is where it was", async () => {
    await using one = await begin("/console/budgets");
    const { page, keys } = one;
    await keys.press("New budget");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await expect.poll(() => page.evaluate("document.activeElement.textContent.trim()")).toBe("New budget");
    await page.keyboard.press("Enter");
    await keys.write("Name", "Month");
    await keys.write("At most", "0");
    await keys.choose("Of", "runs");
    await keys.press("Make the budget");
    await page.getByText("used up", { exact: true }).waitFor();
    await keys.press("Lift Month");
    await keys.press("Lift it");
    await page.getByText("It holds nothing until").waitFor();
    await keys.press("Change Month");
    await keys.write("At most", "12");
    await keys.press("Save");
    await page.getByText("of 12 runs").waitFor();
    await keys.press("Delete Month");
    await keys.press("Delete the budget");
    await page.getByText("There is no budget.").waitFor();
  });

  it("a person gets an account, a token is made and revoked, and notifications are turned on", async () => {
    await using one = await begin("/console/system/users");
    const { page, keys, go } = one;
    await keys.press("New person");
    await keys.write("Name", "grace");
    await keys.choose("Role", "viewer");
    await keys.press("Make the account");
    await keys.press("I have it");
    await keys.press(/grace/);
    await keys.tick("May not sign in");
    await keys.press("Save");
    await page.getByRole("button", { name: /^may not sign in grace/ }).waitFor();
    await page.context().grantPermissions(["notifications"]);
    await go("/console/account");
    await keys.press("New token");
    await keys.write("Name", "ci");
    await keys.write("What it may", "read:tasks");
    await keys.press("Make the token");
    await keys.press("I have it");
    await keys.press("Revoke ci");
    await keys.press("Revoke the token");
    await page.getByText("None. A program signs in with one").waitFor();
    await keys.tick(/^Tell me in this browser/);
    await expect.poll(() => page.getByLabel(/^Tell me in this browser/).isChecked()).toBe(true);
  });

  it("one's own password is changed, and a backup is saved", async () => {
    await using one = await begin("/console/account");
    const { app, page, keys, go } = one;
    await app.call("POST /api/users", { name: "grace", role: "admin", password: PASSWORD });
    await keys.press("Sign out here");
    await keys.write("Name", "grace");
    await keys.write("Password", PASSWORD);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "grace" }).waitFor();
    await keys.write("Current password", PASSWORD);
    await keys.write("New password", "another long secret");
    await keys.press("Change the password");
    await page.getByText("The password is changed").waitFor();
    await go("/console/system/backup");
    const saved = page.waitForEvent("download");
    await keys.press("Make a backup");
    expect((await saved).suggestedFilename()).toMatch(/\.tar$/);
  });

  it("a stranger is let in by their code, and shut out again", async () => {
    await using fake = new FakeTelegram();
    const phone = { kind: "telegram", token: fake.token, base_url: fake.url, worker: "Ada" };
    const config = { engines: fakeEngines(), platforms: { phone: phone as never } };
    await using one = await begin("/console/platforms", config);
    const { page, keys } = one;
    fake.say("say let me in");
    await eventually("a code", () => fake.sent.length === 1);
    const [code = ""] = /[A-Z0-9]{4}-[A-Z0-9]{4}/.exec(fake.sent[0]?.text) ?? [];
    await keys.press("Let somebody in");
    await keys.write("Code", code);
    await keys.press("Whose is it?");
    await page.getByRole("strong").getByText("User 7").waitFor();
    await keys.press("Let them in");
    await page.getByText("1 person let in").waitFor();
    await keys.press("Shut out User 7");
    await keys.press("Shut them out");
    await page.getByText("1 person let in").waitFor({ state: "detached" });
  });

  it("a runner is added, drained, given runs again and removed", async () => {
    await using one = await begin("/console/runners");
    const { app, page, keys } = one;
    await keys.press("Add a runner");
    await keys.write("Name", "mac1");
    await keys.write("Labels", "macos gpu");
    await keys.press("Make its token");
    const token = await page.locator(".secret code").first().textContent() ?? "";
    await keys.press("I have it");
    await new FakeRunner(app, token).claim({ wait_ms: 0 });
    await page.getByText("0 of 4 runs").waitFor();
    await keys.press(/mac1/);
    await keys.press("Drain");
    await page.getByText("It gets no more runs").waitFor();
    await keys.press("Give it runs again");
    await page.getByRole("button", { name: "Drain" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await keys.press(/mac1/);
    await keys.press("Remove");
    await keys.press("Remove the runner");
    await page.getByText("Every worker runs on the service's own machine.").waitFor();
  });

  it("a question is answered, failed runs are run again by their filter, and a worker forgets a conversation", async () => {
    await using one = await begin("/", { engines: { breaks: BREAKS_ONCE } });
    const { app, ada, page, keys, go } = one;
    const chat = await conversation(app, ada.id);
    await app.call("POST /api/questions", {
      message_id: chat.message,
      text: "Today?",
      options: ["Yes", "No"],
    });
    await page.getByText("Today?").waitFor();
    await keys.press("No");
    await page.getByText("Nothing needs you.").waitFor();
    for (const name of ["Eve", "Bob"]) {
      const { id } = await app.call("POST /api/workers", { name, engine: "breaks" });
      const task = { message_id: name, worker_id: id, type: "immediate", instruction: "fetch the report" };
      await app.call("POST /api/tasks", task);
    }
    await app.settle();
    await go("/console/executions?status=failed");
    await page.getByText("2 in all").waitFor();
    await keys.press("Run all again");
    await keys.press("Run 2 again");
    await page.getByText("2 of 2 run again").waitFor();
    await go(`/console/workers/${ada.id}`);
    await keys.press("Conversations that it goes on with");
    await keys.press("Forget");
    await keys.press("Forget it");
    await page.getByText("None: it begins anew in each.").waitFor();
  });

  it("a conversation is found, named and deleted; why it went where it went is read", async () => {
    await using one = await begin("/console/chat");
    const { app, ada, page, keys } = one;
    await conversation(app, ada.id);
    await page.getByText("You: good morning").or(page.getByText("good morning")).first().waitFor();
    await keys.press(/^New conversation|^Talk/);
    await keys.press("Why this worker?");
    await page.getByRole("note").getByText("It went to Ada").waitFor();
    await keys.press("Settings of this conversation");
    await keys.write("Name", "Mornings");
    await keys.press("Save");
    await page.getByRole("heading", { name: "Mornings" }).waitFor();
    await keys.press("Settings of this conversation");
    await keys.press("Delete");
    await keys.press("Delete the conversation");
    await page.getByText("No conversation yet.").waitFor();
  });

  it("a webhook is made, tested, switched off and deleted", async () => {
    await using one = await begin("/console/system/webhooks");
    const { page, keys } = one;
    await keys.press("New webhook");
    await keys.write("Name", "ci");
    await keys.write("Address", "http://127.0.0.1:9/hook");
    await keys.press("Make the webhook");
    await keys.press("I have it");
    await keys.press(/^sends\s*ci/);
    await page.getByRole("heading", { name: "ci" }).waitFor();
    await keys.press("Test");
    await page.getByText("webhook.tested").waitFor();
    await keys.press("Edit");
    await keys.tick("It sends");
    await keys.press("Save");
    await page.getByText("off", { exact: true }).waitFor();
    await keys.press("Delete ci");
    await keys.press("Delete the webhook");
    await page.getByText("Nobody outside is told of anything.").waitFor();
  });

  it("a worker is made and moved in the tree of departments, and something is noted", async () => {
    await using one = await begin("/console/workers");
    const { page, keys, go } = one;
    await keys.press("Departments");
    await keys.press("New department");
    await keys.write("Name", "Research");
    await keys.press("Save");
    await keys.press("Close");
    await keys.press("New worker");
    await keys.write("Name", "Bob");
    await keys.tick("Research");
    await keys.press("Make the worker");
    await page.getByRole("heading", { name: "Bob" }).waitFor();
    await keys.press("Edit");
    await keys.tick("Research");
    await keys.press("Save");
    await page.getByRole("heading", { name: "Bob", exact: true }).waitFor();
    expect(await page.getByText("Research").count()).toBe(0);
    await go("/console/memory");
    await keys.press("New entry");
    await keys.write("Key", "tone");
    await keys.write("Text", "short");
    await keys.press("Save");
    await page.getByRole("heading", { name: "tone" }).waitFor();
    await keys.press("Forget tone");
    await keys.press("Forget it");
    await page.getByText("Nothing is noted here.").waitFor();
  });
});

/** A conversation with a worker that has something in mind of it. */
async function conversation(app: App, worker_id: string): Promise<{ id: string; message: string }> {
  const { id } = await app.call("POST /api/local/sessions", { worker_id });
  const said = await app.call(`POST /api/local/sessions/${id}/messages`, { content: "good morning" });
  await app.settle();
  await app.db.write([{
    sql:
      `insert or replace into session_context (session_key, worker_id, engine, session_id, work_dir, updated_at)
      values (?, ?, 'echo', 's', '', 0)`,
    args: [`local:${id}`, worker_id],
  }]);
  return { id, message: said.message_id };
}
