import { expect, it } from "vitest";
import { findViolations } from "../../harness/axe.ts";
import { describeConsole, PHONE } from "../../harness/browser.ts";
import { createUser, WORD } from "../../harness/model/people.ts";

describeConsole("the palette on Ctrl-K (contract 31)", ({ open, visit }) => {
  it("finds workers, conversations, runs, messages, pages and commands by keyboard only, and axe finds nothing", async () => {
    await using one = await open("/console/workers");
    const { app, page } = one;
    const echo = await app.call("POST /api/workers", { name: "Echo", engine: "echo" });
    const session = await app.call("POST /api/local/sessions", {
      name: "Invoices of May",
      worker_id: echo.id,
    });
    const said = { content: "the invoice of Müller" };
    await app.call(`POST /api/local/sessions/${session.id}/messages`, said);
    await app.settle();
    const dialog = page.getByRole("dialog", { name: "Search" });
    const option = (name: string | RegExp) => dialog.getByRole("option", { name });
    const search = async (words: string) => {
      await page.keyboard.press("Control+K");
      await dialog.waitFor();
      await page.keyboard.type(words);
    };
    /** Chooses with the arrow keys. */
    const choose = async (name: string | RegExp) => {
      await option(name).first().waitFor();
      const chosen = () => dialog.getByRole("option", { name, selected: true }).count();
      for (let presses = 0; await chosen() === 0; presses++) {
        expect(presses).toBeLessThan(40);
        await page.keyboard.press("ArrowDown");
      }
      await page.keyboard.press("Enter");
      await dialog.waitFor({ state: "detached" });
    };
    await page.getByRole("heading", { name: "Workers" }).waitFor();
    await search("invo");
    await option(/^the invoice of/).first().waitFor();
    expect(await findViolations(page)).toEqual([]);
    await choose("Invoices of May");
    await page.waitForURL(`**/console/chat/${session.id}`);
    // Also from the field in which the user writes.
    await page.getByRole("textbox").first().focus();
    await search("echo");
    await choose("Echo");
    await page.waitForURL(`**/console/workers/${echo.id}`);
    await search("müller");
    await dialog.getByRole("group", { name: "Runs" }).waitFor();
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/console/executions/*");
    await search("memo");
    await choose("Memory");
    await page.waitForURL("**/console/memory");
    await search("new sched");
    await choose("New schedule");
    await page.waitForURL("**/console/schedules/new");
    await search("nothing like that");
    await dialog.getByText("Nothing found for nothing like that.").waitFor();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await search("sign");
    await choose("Sign out");
    await page.getByLabel("Password").waitFor();
  });

  it("fits a phone, opens from its menu, and shows a viewer no page and command beyond the role", async () => {
    await using one = await open("/console/workers", { view: PHONE });
    const { app, page } = one;
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("dialog", { name: "More" }).getByRole("button", { name: "Search" }).click();
    await page.getByRole("option", { name: "New worker" }).waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false);
    expect(await findViolations(page)).toEqual([]);
    await createUser(app, "bo", "viewer");
    await using viewer = await visit(app.url, { at: "/console/workers", name: "bo", password: WORD });
    await viewer.page.getByRole("heading", { name: "Workers" }).waitFor();
    await viewer.page.keyboard.press("Control+K");
    await viewer.page.getByRole("option", { name: "Ada" }).waitFor();
    const names = await viewer.page.getByRole("option").allTextContents();
    expect(names).toContain("Show keyboard shortcuts");
    for (const hidden of ["New worker", "Secrets", "Backup", "Settings"]) expect(names).not.toContain(hidden);
  });
});
