import { expect, it } from "vitest";
import type { Page } from "playwright-core";
import { countRuns, openAskingService, waitForCalls } from "../harness/fakes/asking_claude.ts";
import type { Json } from "../harness/service/client.ts";
import { describeConsole, PHONE } from "../harness/browser.ts";
import { Keyboard } from "../harness/keyboard.ts";

const findCalls = (page: Page) => page.getByLabel("Arguments of Write");
const readFont = (page: Page) =>
  page.evaluate("getComputedStyle(document.querySelector('pre.call')).fontFamily");

describeConsole("tool calls that wait for a person (contract 23)", ({ visit }) => {
  it("show the tool and all of its arguments in the inbox and in the conversation; Allow runs the call, Deny does not [APV-1]", async () => {
    await using one = await openAskingService();
    const { app, session } = one;
    await using visitor = await visit(app.url, { at: "/" });
    const { page } = visitor;
    await one.call(`Write ${one.path("a")} some words`);
    await waitForCalls(app);
    const shown = `"file_path": "${one.path("a")}"`;
    await page.getByText("Allow this call of Write?").waitFor();
    expect(await findCalls(page).innerText()).toContain(shown);
    expect(await findCalls(page).innerText()).toContain("some words");
    expect(await readFont(page)).toMatch(/mono/i);
    await page.getByRole("button", { name: "Deny" }).click();
    await app.settle();
    await page.getByText("Nothing needs your attention.").waitFor();
    expect(await countRuns(one.path("a"))).toBe(0);

    await visitor.goto(`/console/chat/${session.id}`);
    await one.call(`Write ${one.path("b")} other words`);
    await page.getByText("Allow this call of Write?").waitFor();
    expect(await findCalls(page).innerText()).toContain(one.path("b"));
    expect(await findCalls(page).innerText()).toContain("other words");
    expect(await readFont(page)).toMatch(/mono/i);
    await page.getByRole("button", { name: "Allow", exact: true }).click();
    await app.settle();
    await page.getByRole("article", { name: "Reply" }).getByText("allow", { exact: true }).waitFor();
    expect(await countRuns(one.path("b"))).toBe(1);
  });

  it("can be read whole and allowed on a phone when they are longer than a chat shows [APV-1]", async () => {
    await using one = await openAskingService();
    const { app, session } = one;
    const words = `${"x".repeat(20_000)} middle ${"y".repeat(20_000)}`;
    await one.call(`Write ${one.path("a")} ${words}; Write ${one.path("b")} ${words}`);
    await waitForCalls(app, 2);
    await using visitor = await visit(app.url, { at: "/", view: PHONE });
    const { page } = visitor;
    // A list that would be too large has shorter arguments.
    await page.route("**/api/questions?*", async (route) => {
      const response = await route.fetch();
      const cut = (await response.json()).map((question: Json) => ({
        ...question,
        arguments: question.arguments.slice(0, 200),
        truncated: true,
      }));
      await route.fulfill({ response, json: cut });
    });
    await page.reload();
    const allow = async (name: string) => {
      const row = page.locator(".asked, article").filter({ hasText: one.path(name) });
      await row.getByLabel("Arguments of Write").filter({ hasText: words }).waitFor();
      await row.getByRole("button", { name: "Allow", exact: true }).click();
      await row.getByRole("button", { name: "Allow", exact: true }).waitFor({ state: "detached" });
    };
    await allow("a");
    await visitor.goto(`/console/chat/${session.id}`);
    await allow("b");
    await app.settle();
    expect(await Promise.all([countRuns(one.path("a")), countRuns(one.path("b"))])).toEqual([1, 1]);
  });
});

describeConsole("words for a run in progress (contract 23)", ({ visit }) => {
  it("Send now works with the keyboard and shows whether the agent has the words, which become a task after the run", async () => {
    await using one = await openAskingService();
    const { app, session } = one;
    await using visitor = await visit(app.url, { at: `/console/chat/${session.id}` });
    const { page } = visitor;
    const keys = new Keyboard(page);
    const sendNow = page.getByRole("button", { name: "Send now" });
    await page.getByLabel("Message", { exact: true }).waitFor();
    expect(await sendNow.count()).toBe(0);
    // The agent reads words only after its call was decided on.
    await one.call(`Write ${one.path("a")}`);
    const [call] = await waitForCalls(app);
    await sendNow.waitFor();
    await keys.write("Message", "only the tests");
    await keys.press("Send now");
    await page.getByText('Sent, not confirmed yet; becomes a task if the run ends first: "only the tests"')
      .waitFor();
    expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("");
    await app.call(`POST /api/questions/${call?.id}/answer`, { answer: "Allow" });
    await page.getByText('Delivered: "only the tests"').waitFor();
    await sendNow.waitFor({ state: "detached" });

    // The run ends while the words are on their way.
    const content = `until ${one.path("go")}`;
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content });
    await sendNow.waitFor();
    await page.route("**/steer", async (route) => {
      await Deno.writeTextFile(one.path("go"), "");
      await app.settle();
      await route.continue();
    });
    await keys.write("Message", "one more thing");
    await keys.press("Send now");
    await page.getByText('The run had ended, so this became a task: "one more thing"').waitFor();
    await app.settle();
    await sendNow.waitFor({ state: "detached" });
    const tasks: { instruction: string }[] = await app.call(`GET /api/tasks?worker_id=${one.worker.id}`);
    const words = tasks.map(({ instruction }) => instruction);
    expect(words.sort()).toEqual([`call Write ${one.path("a")}`, "one more thing", content]);
  });
});
