import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { buildShellEngine } from "../harness/fakes/agents.ts";
import { createTask } from "../harness/service/runner.ts";
import { describeConsole, PHONE } from "../harness/browser.ts";

// The process number differs from run to run, and the error in the log has a color.
const BREAKS = buildShellEngine(`printf '\\033[31mno route\\033[0m from %s\\n' $$ >&2; exit 3`);

describeConsole("the inbox", ({ visit }) => {
  it("a long inbox and a long system page scroll in their box, and the window does not", async () => {
    await using app = await openApp({ config: { engines: { breaks: BREAKS } } });
    for (let number = 0; number < 30; number++) {
      const { id } = await app.call("POST /api/workers", { name: `Worker ${number}`, engine: "breaks" });
      await createTask(app, id, "fetch the report");
      await app.settle();
      await app.call(`PUT /api/workers/${id}`, { paused: true });
    }
    await using visitor = await visit(app.url, { at: "/", view: PHONE });
    const { page } = visitor;
    await page.getByRole("link", { name: /Worker 29 is paused/ }).waitFor();
    const read = () => page.evaluate("[document.documentElement.scrollHeight, innerHeight].join(' ')");
    expect(await read()).toBe("844 844");
    await visitor.goto("/console/system");
    await page.getByText("Recent runs").first().waitFor();
    expect(await read()).toBe("844 844");
  });

  it("a failure that was dismissed or repeated has left with the notice of it, and no late answer brings it back", async () => {
    await using app = await openApp({ config: { engines: { breaks: BREAKS } } });
    const eve = await app.call("POST /api/workers", { name: "Eve", engine: "breaks" });
    for (const text of ["fetch the report", "fetch the pictures"]) await createTask(app, eve.id, text);
    await app.settle();
    await using visitor = await visit(app.url, { at: "/" });
    const { page } = visitor;
    await page.getByRole("button", { name: /2 × .*no route/ }).click();
    // The page gets the answer to its first request after the answers to all later ones.
    const held = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    let late: Promise<void> | undefined;
    await page.route("**/api/inbox", async (route) => {
      if (late !== undefined) return await route.continue();
      const answered = Promise.withResolvers<void>();
      late = answered.promise;
      const response = await route.fetch();
      asked.resolve();
      await held.promise;
      await route.fulfill({ response });
      answered.resolve();
    });
    // An event makes the page read the inbox.
    await app.call(`PUT /api/workers/${eve.id}`, { paused: true });
    await asked.promise;
    await page.getByRole("button", { name: "Dismiss: fetch the report" }).click();
    await page.getByText("Dismissed").waitFor();
    expect(await page.getByRole("link", { name: /fetch the report/ }).count()).toBe(0);
    await page.getByRole("button", { name: "Run again: fetch the pictures" }).click();
    await page.getByText("Run started again").waitFor();
    const failures = page.getByRole("navigation", { name: "Inbox" }).getByRole("link", {
      name: "Failures (0)",
    });
    await failures.waitFor();
    held.resolve();
    await late;
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
    expect(await failures.count()).toBe(1);
  });

  it("groups equal failures, and dismisses, snoozes and repeats one, several or all of them", async () => {
    await using app = await openApp({ config: { engines: { breaks: BREAKS } } });
    const eve = await app.call("POST /api/workers", { name: "Eve", engine: "breaks" });
    const max = await app.call("POST /api/workers", { name: "Max", engine: "breaks" });
    for (const text of ["fetch the report", "fetch the pictures", "fetch the mail"]) {
      await createTask(app, eve.id, text);
    }
    await createTask(app, max.id, "sweep the floor");
    await app.settle();
    await app.call(`PUT /api/workers/${max.id}`, { paused: true });
    await using visitor = await visit(app.url, { at: "/" });
    const { page } = visitor;
    const tabs = page.getByRole("navigation", { name: "Inbox" });
    await tabs.getByRole("link", { name: "Failures (4)" }).click();
    const group = page.getByRole("button", { name: /3 × .*no route/ });
    await group.click();
    // No code of a terminal is left as a box.
    expect(await page.locator("main").innerText()).not.toContain("[31m");
    await page.getByRole("button", { name: "Dismiss: fetch the mail" }).click();
    await page.getByRole("link", { name: /fetch the mail/ }).waitFor({ state: "detached" });
    await tabs.getByRole("link", { name: "Failures (3)" }).waitFor();
    await page.getByRole("button", { name: "Snooze: sweep the floor" }).click();
    await page.getByRole("button", { name: "For 1 day" }).click();
    await page.getByRole("link", { name: /sweep the floor/ }).waitFor({ state: "detached" });
    await page.getByRole("checkbox", { name: "Select fetch the report" }).check();
    await page.getByRole("checkbox", { name: "Select fetch the pictures" }).check();
    await page.getByRole("button", { name: "Run 2 again" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run 2 again" }).click();
    await page.getByText("Started 2 of 2 runs again").waitFor();
    await app.settle();
    // The two runs fail once more: these are two new failures.
    await page.getByRole("checkbox", { name: /^Select (?!fetch)/ }).check();
    await page.getByRole("button", { name: "Dismiss 2" }).click();
    await page.getByText("Nothing here.").waitFor();
    await tabs.getByRole("link", { name: "Blocked and paused (1)" }).click();
    await page.getByRole("link", { name: /Max is paused/ }).waitFor();
    // A state cannot be dismissed, only snoozed.
    expect(await page.getByRole("button", { name: /^Dismiss/ }).count()).toBe(0);
    await page.getByRole("button", { name: /^Snooze: Max/ }).click();
    await page.getByRole("button", { name: "For 1 hour" }).click();
    await page.getByText("Nothing needs your attention.").waitFor();
    expect(await app.call("GET /api/inbox")).toEqual([]);
  });
});
