import { expect, it } from "vitest";
import { buildFakeEngines, buildShellEngine } from "../harness/fakes/agents.ts";
import { type App, PASSWORD, type TestSettings } from "../harness/service/app.ts";
import { describeConsole } from "../harness/browser.ts";
import { Keyboard } from "../harness/keyboard.ts";
import { FakeRunner } from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";
import { FakeTelegram } from "../platform/fakes/telegram.ts";

const BREAKS_ONCE = buildShellEngine("[ -e been ] && echo fetched && exit 0; touch been; exit 3");

describeConsole("every journey by keyboard only", ({ open }) => {
  async function begin(address: string, config: TestSettings = {}) {
    const one = await open(address, { config });
    const go = async (to: string) => {
      await one.visitor.goto(to);
      await one.page.locator("h1:visible, h2:visible").first().waitFor();
    };
    return { ...one, go, keys: new Keyboard(one.page) };
  }

  it("creates a schedule with a preview, pauses, runs and deletes it", async () => {
    await using one = await begin("/console/schedules");
    const { page, keys } = one;
    await keys.press("New schedule");
    await page.getByRole("heading", { name: "New schedule" }).waitFor();
    await keys.write("Instruction", "write the report");
    await keys.write("Cron expression", "30 7 * * 1");
    await page.getByRole("list", { name: "Upcoming" }).getByText(/07:30$/).first().waitFor();
    await keys.press("Create schedule");
    await page.getByRole("heading", { name: "write the report" }).waitFor();
    await keys.press("Pause");
    await page.getByText("meanwhile are skipped").waitFor();
    await keys.press("Resume");
    await page.getByText("meanwhile are skipped").waitFor({ state: "detached" });
    await keys.press("Run now");
    await page.getByRole("link", { name: /completed write the report/ }).waitFor();
    await keys.press("Delete this schedule");
    await keys.press("Delete schedule");
    await page.getByText("No schedules yet.").waitFor();
  });

  it("creates, lifts, edits and deletes a budget; Escape closes a dialog and restores the focus", async () => {
    await using one = await begin("/console/budgets");
    const { page, keys } = one;
    await keys.press("New budget");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await expect.poll(() => page.evaluate("document.activeElement.textContent.trim()")).toBe("New budget");
    await page.keyboard.press("Enter");
    await keys.write("Name", "Month");
    await keys.write("Limit", "0");
    await keys.choose("Unit", "runs");
    await keys.press("Create budget");
    await page.getByText("used up", { exact: true }).waitFor();
    await keys.press("Lift Month");
    await keys.press("Lift budget");
    await page.getByText("Not enforced until").waitFor();
    await keys.press("Edit Month");
    await keys.write("Limit", "12");
    await keys.press("Save");
    await page.getByText("of 12 runs").waitFor();
    await keys.press("Delete Month");
    await keys.press("Delete budget");
    await page.getByText("No budgets yet.").waitFor();
  });

  it("creates a user, creates and revokes a token, and turns on notifications", async () => {
    await using one = await begin("/console/system/users");
    const { page, keys, go } = one;
    await keys.press("New user");
    await keys.write("Name", "grace");
    await keys.choose("Role", "viewer");
    await keys.press("Create user");
    await keys.press("Done");
    await keys.press(/grace/);
    await keys.tick("Sign-in disabled");
    await keys.press("Save");
    await page.getByRole("button", { name: /^disabled grace/ }).waitFor();
    await page.context().grantPermissions(["notifications"]);
    await go("/console/account");
    await keys.press("New token");
    await keys.write("Name", "ci");
    await keys.write("Scopes", "read:tasks");
    await keys.press("Create token");
    await keys.press("Done");
    await keys.press("Revoke ci");
    await keys.press("Revoke token");
    await page.getByText("No tokens yet.").waitFor();
    await keys.tick(/^Notify me in this browser/);
    await expect.poll(() => page.getByLabel(/^Notify me in this browser/).isChecked()).toBe(true);
  });

  it("changes the user's password, and saves a backup", async () => {
    await using one = await begin("/console/account");
    const { app, page, keys, go } = one;
    await app.call("POST /api/users", { name: "grace", role: "admin", password: PASSWORD });
    await keys.press("Sign out of this browser");
    await keys.write("Name", "grace");
    await keys.write("Password", PASSWORD);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "grace" }).waitFor();
    await keys.write("Current password", PASSWORD);
    await keys.write("New password", "another long secret");
    await keys.press("Change password");
    await page.getByText("Password changed").waitFor();
    await go("/console/system/backup");
    const saved = page.waitForEvent("download");
    await keys.press("Create backup");
    expect((await saved).suggestedFilename()).toMatch(/\.tar$/);
  });

  it("pairs a sender by their code, and unpairs them", async () => {
    await using fake = new FakeTelegram();
    const phone = { kind: "telegram", token: fake.token, base_url: fake.url, worker: "Ada" };
    const config = { engines: buildFakeEngines(), platforms: { phone: phone as never } };
    await using one = await begin("/console/platforms", config);
    const { page, keys } = one;
    fake.say("say let me in");
    await waitUntil("a code", () => fake.sent.length === 1);
    const [code = ""] = /[A-Z0-9]{4}-[A-Z0-9]{4}/.exec(fake.sent[0]?.text) ?? [];
    await keys.press("Pair a sender");
    await keys.write("Code", code);
    await keys.press("Look up code");
    await page.getByRole("strong").getByText("User 7").waitFor();
    await keys.press("Confirm pairing");
    await page.getByText("1 paired sender").waitFor();
    await keys.press("Unpair User 7");
    await keys.press("Unpair sender");
    await page.getByText("1 paired sender").waitFor({ state: "detached" });
  });

  it("adds, drains, resumes and removes a runner", async () => {
    await using one = await begin("/console/runners");
    const { app, page, keys } = one;
    await keys.press("Add runner");
    await keys.write("Name", "mac1");
    await keys.write("Labels", "macos gpu");
    await keys.press("Create token");
    const token = await page.locator(".secret code").first().textContent() ?? "";
    await keys.press("Done");
    await new FakeRunner(app, token).claim({ wait_ms: 0 });
    await page.getByText("0 of 4 runs").waitFor();
    await keys.press(/mac1/);
    await keys.press("Drain");
    await page.getByText("The runner gets no new runs.").waitFor();
    await keys.press("Resume");
    await page.getByRole("button", { name: "Drain" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await keys.press(/mac1/);
    await keys.press("Remove");
    await keys.press("Remove runner");
    await page.getByText("No runners yet.").waitFor();
  });

  it("answers a question, runs the filtered failures again, and lets a worker forget a conversation", async () => {
    await using one = await begin("/", { engines: { breaks: BREAKS_ONCE } });
    const { app, ada, page, keys, go } = one;
    const chat = await createConversation(app, ada.id);
    await app.call("POST /api/questions", {
      message_id: chat.message,
      text: "Today?",
      options: ["Yes", "No"],
    });
    await page.getByText("Today?").waitFor();
    await keys.press("No");
    await page.getByText("Nothing needs your attention.").waitFor();
    for (const name of ["Eve", "Bob"]) {
      const { id } = await app.call("POST /api/workers", { name, engine: "breaks" });
      const task = { message_id: name, worker_id: id, type: "immediate", instruction: "fetch the report" };
      await app.call("POST /api/tasks", task);
    }
    await app.settle();
    await go("/console/executions?status=failed");
    await page.getByText("2 total").waitFor();
    await keys.press("Run all 2 again");
    await keys.press("Run 2 again");
    await page.getByText("Started 2 of 2 runs again").waitFor();
    await go(`/console/workers/${ada.id}`);
    await keys.press("Conversation contexts");
    await keys.press("Forget");
    await keys.press("Forget context");
    await page.getByText("No stored contexts.").waitFor();
  });

  it("opens, renames and deletes a conversation, and shows why its worker was chosen", async () => {
    await using one = await begin("/console/chat");
    const { app, ada, page, keys } = one;
    await createConversation(app, ada.id);
    await page.getByText("You: good morning").or(page.getByText("good morning")).first().waitFor();
    await keys.press(/^New conversation|^Talk/);
    await keys.press("Why this worker?");
    await page.getByRole("note").getByText("Routed to Ada").waitFor();
    await keys.press("Conversation settings");
    await keys.write("Name", "Mornings");
    await keys.press("Save");
    await page.getByRole("heading", { name: "Mornings" }).waitFor();
    await keys.press("Conversation settings");
    await keys.press("Delete");
    await keys.press("Delete conversation");
    await page.getByText("No conversations yet.").waitFor();
  });

  it("creates, tests, disables and deletes a webhook", async () => {
    await using one = await begin("/console/system/webhooks");
    const { page, keys } = one;
    await keys.press("New webhook");
    await keys.write("Name", "ci");
    await keys.write("URL", "http://127.0.0.1:9/hook");
    await keys.press("Create webhook");
    await keys.press("Done");
    await keys.press(/^active\s*ci/);
    await page.getByRole("heading", { name: "ci" }).waitFor();
    await keys.press("Test");
    await page.getByText("webhook.tested").waitFor();
    await keys.press("Edit");
    await keys.tick("Enabled");
    await keys.press("Save");
    await page.getByText("off", { exact: true }).waitFor();
    await keys.press("Delete ci");
    await keys.press("Delete webhook");
    await page.getByText("No webhooks yet.").waitFor();
  });

  it("creates a worker, moves it between departments, and creates a memory entry", async () => {
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
    await keys.press("Create worker");
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
    await keys.press("Delete tone");
    await keys.press("Delete entry");
    await page.getByText("No memory entries yet.").waitFor();
  });
});

/** Creates a conversation with a worker that has a context of it. */
async function createConversation(app: App, worker_id: string): Promise<{ id: string; message: string }> {
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
