import { expect, it } from "vitest";
import { PASSWORD, type TestSettings } from "../harness/service/app.ts";
import { endSessions } from "../harness/model/people.ts";
import { describeConsole } from "../harness/browser.ts";

const POLL = { timeout: 30_000 };

describeConsole("input and requests are not lost", ({ open }) => {
  /** Creates a conversation and opens it. */
  async function begin(config: TestSettings = {}) {
    const one = await open("/", { config });
    const { app, ada, page, visitor } = one;
    const { id } = await app.call("POST /api/local/sessions", { name: "Plans", worker_id: ada.id });
    await visitor.goto(`/console/chat/${id}`);
    const field = page.getByLabel("Message", { exact: true });
    await page.getByText("Say hello to Ada").waitFor();
    return {
      ...one,
      field,
      send: async (text: string) => {
        await field.fill(text);
        await page.getByRole("button", { name: "Send" }).click();
      },
    };
  }

  it("a message whose answer was lost returns to the field before newer text, and a second attempt creates no second message [CNS-2]", async () => {
    await using one = await begin();
    const { app, page, field, send } = one;
    const held = Promise.withResolvers<void>();
    await page.route("**/messages", async (route) => {
      if (route.request().method() !== "POST") return await route.continue();
      // The service accepts the message, and the answer is lost.
      await route.fetch();
      await held.promise;
      await route.abort();
    });
    await send("good morning");
    await field.fill("and one more thing");
    held.resolve();
    await page.getByRole("alert").getByText("The service does not respond").waitFor();
    expect(await field.inputValue()).toBe("good morning\n\nand one more thing");
    await page.unroute("**/messages");
    await send("good morning");
    await page.getByRole("alert").waitFor({ state: "detached" });
    await app.settle();
    expect(await app.call("GET /api/messages/inbound")).toHaveLength(1);
    // The same text, sent later, is another message.
    await send("good morning");
    await expect.poll(async () => (await app.call("GET /api/messages/inbound")).length, POLL).toBe(2);
  });

  it("a page that reloads while it sends a message returns the text to the field, and it stays one message [CNS-2]", async () => {
    await using one = await begin();
    const { app, page, field, send } = one;
    const arrived = Promise.withResolvers<void>();
    let left = 1;
    await page.route("**/messages", async (route) => {
      if (route.request().method() !== "POST" || left-- <= 0) return await route.continue();
      // The page is closed before the answer arrives.
      await route.fetch();
      arrived.resolve();
    });
    await send("good morning");
    await arrived.promise;
    await page.reload();
    await expect.poll(() => field.inputValue(), POLL).toBe("good morning");
    await page.getByRole("button", { name: "Send" }).click();
    await expect.poll(() => field.inputValue(), POLL).toBe("");
    await app.settle();
    expect(await app.call("GET /api/messages/inbound")).toHaveLength(1);
    await page.reload();
    await page.getByRole("article", { name: "Reply" }).waitFor();
    expect(await field.inputValue()).toBe("");
  });

  it("a request whose answer was lost is not executed twice by a second press [CNS-2]", async () => {
    await using one = await begin();
    const { app, visitor, page } = one;
    await visitor.goto("/console/schedules/new");
    await page.getByLabel("Instruction").fill("write the report");
    await page.route("**/api/tasks", async (route) => (await route.fetch(), await route.abort()), {
      times: 1,
    });
    await page.getByRole("button", { name: "Create schedule" }).click();
    await page.getByRole("alert").getByText("The service does not respond").waitFor();
    expect(await app.call("GET /api/queue")).toHaveLength(1);
    await page.getByRole("button", { name: "Create schedule" }).click();
    await page.getByRole("heading", { name: "write the report" }).waitFor();
    expect(await app.call("GET /api/queue")).toHaveLength(1);
    await page.route("**/run", async (route) => (await route.fetch(), await route.abort()), { times: 1 });
    await page.getByRole("button", { name: "Run now" }).click();
    await page.getByText("The service does not respond").waitFor();
    await page.getByRole("button", { name: "Run now" }).click();
    await page.getByText("Run started").waitFor();
    await app.settle();
    expect(await app.call("GET /api/executions")).toHaveLength(1);
  });

  it("a message whose session expires is sent after the login [CNS-3]", async () => {
    await using one = await begin();
    const { app, page, send } = one;
    let isRefused = false;
    await page.route("**/messages", async (route) => {
      if (isRefused || route.request().method() !== "POST") return await route.continue();
      isRefused = true;
      await endSessions(app);
      await route.fulfill({ status: 401, json: { code: "unauthorized" } });
    });
    await send("do not lose this");
    await page.getByRole("heading", { name: "Sign in again" }).waitFor();
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("article", { name: "Reply" }).getByText("do not lose this").waitFor();
    expect(await app.call("GET /api/messages/inbound")).toHaveLength(1);
  });

  it("a sign-out is valid in all tabs, and the next user sees no data of the previous one [CNS-4]", async () => {
    await using one = await begin();
    const { app, visitor, page, field } = one;
    await app.call("POST /api/users", { name: "grace", role: "viewer", password: "a long secret" });
    await field.fill("the password is swordfish");
    const other = await visitor.context.newPage();
    await other.goto(`${app.url}/console/workers/new`);
    await other.getByLabel("Description").fill("a secret plan");
    await page.bringToFront();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in to svc" }).waitFor();
    await other.getByRole("heading", { name: "Sign in to svc" }).waitFor();
    for (const each of [page, other]) expect(await each.evaluate("sessionStorage.length")).toBe(0);
    await visitor.signIn("grace", "a long secret");
    // The other tab follows and reloads.
    await other.getByText("permission to edit workers").waitFor();
    await page.getByText("Plans").first().waitFor();
    expect(await page.getByText("swordfish").count()).toBe(0);
    expect(await page.getByLabel("Message", { exact: true }).count()).toBe(0);
  });

  for (const how of ["over the page", "after a reload"]) {
    it(`another user who signs in ${how} starts with an empty page [CNS-4]`, async () => {
      await using one = await begin({ auth: { access_ttl: "2s" } });
      const { app, page, field, visitor } = one;
      await app.call("POST /api/users", { name: "grace", role: "operator", password: "a long secret" });
      await field.fill("the password is swordfish");
      await endSessions(app);
      await page.getByRole("heading", { name: "Sign in again" }).waitFor();
      if (how === "after a reload") await page.reload();
      await visitor.signIn("grace", "a long secret");
      await page.getByRole("link", { name: "grace" }).waitFor();
      await expect.poll(() => field.inputValue(), POLL).toBe("");
      expect(await page.evaluate("JSON.stringify(sessionStorage)")).not.toContain("swordfish");
    });
  }
});
