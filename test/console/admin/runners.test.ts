import { expect, it } from "vitest";
import { type App, openApp } from "../../harness/service/app.ts";
import { describeConsole, PHONE } from "../../harness/browser.ts";
import { createRemoteWorker, createTask, FakeRunner } from "../../harness/service/runner.ts";
import { waitUntil } from "../../harness/wait.ts";

const WHISPER = [{ name: "whisper", agent: true }];

/** Creates a runner that has connected. */
async function connectRunner(app: App, name: string, labels: string[], engines: object[] = WHISPER) {
  const { token } = await app.call("POST /api/runners", { name, labels });
  const runner = new FakeRunner(app, token);
  await runner.claim({ wait_ms: 0, engines });
  return runner;
}

describeConsole("runners in the console", ({ visit }) => {
  it("adds a runner with a one-time token, sees it connect, drains, resumes and removes it", async () => {
    await using app = await openApp();
    await using visitor = await visit(app.url, { at: "/console/runners", view: PHONE });
    const { page } = visitor;
    await page.getByText("No runners yet.").waitFor();
    await page.getByRole("button", { name: "Add runner" }).click();
    await page.getByLabel("Name").fill("mac1");
    await page.getByLabel("Labels").fill("Mac OS");
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByText(/^Labels must be 1-50 of/).waitFor();
    await page.getByLabel("Labels").fill("macos, gpu");
    await page.getByRole("button", { name: "Create token" }).click();
    await page.locator(".secret code").nth(1).waitFor();
    const [token = "", command] = await page.locator(".secret code").allTextContents();
    expect(command).toBe(`svc runner --url ${app.url} --token-file runner.token`);
    await page.getByText("must start with https:").waitFor();
    await page.getByRole("button", { name: "Done" }).click();
    expect(await page.content()).not.toContain(token);
    await page.getByRole("button", { name: /mac1.*not connected yet/ }).waitFor();

    const runner = new FakeRunner(app, token);
    await runner.claim({ wait_ms: 0, version: "4.9.0" });
    await page.getByText("macos, gpu · echo · 4.9.0").waitFor();
    await page.getByRole("button", { name: /mac1.*0 of 4 runs/ }).click();
    await page.getByRole("heading", { name: "mac1" }).waitFor();
    await page.getByRole("button", { name: "Drain" }).click();
    await page.getByText("The runner gets no new runs.").waitFor();
    expect(await app.call("GET /api/runners/mac1")).toMatchObject({ draining: true });
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Drain" }).waitFor();

    const worker = await createRemoteWorker(app, "echo", { runs_on: ["gpu"] });
    await createTask(app, worker, "hello");
    expect((await runner.claim()).body.run).not.toBeNull();
    await page.getByText("1 of 4", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByText("1 run is lost and retried later. The directory of 1 worker is on it.")
      .waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false);
    await page.getByRole("button", { name: "Remove runner" }).click();
    await page.getByText("No runners yet.").waitFor();
    expect(await app.call("GET /api/runners")).toEqual([]);
  });

  it("creates a worker for the labels and an engine of runners, moves it, and shows that it waits", async () => {
    await using app = await openApp();
    for (const name of ["r1", "r2"]) await connectRunner(app, name, ["gpu", "linux"]);
    await connectRunner(app, "r3", ["macos"], [{ name: "claude", agent: true }]);
    await using visitor = await visit(app.url, { at: "/console/workers/new" });
    const { page } = visitor;
    await page.getByLabel("Name").fill("Ada");
    await page.locator("summary").getByText("More options").click();
    await page.getByLabel("Runner labels").fill("gpu");
    await page.getByLabel("Engine", { exact: true }).selectOption("whisper");
    expect(await page.getByLabel("Engine", { exact: true }).locator("option").allTextContents()).not
      .toContain("claude");
    await page.getByRole("button", { name: "Create worker" }).click();
    await page.getByText("first runner that claims it").waitFor();
    await page.getByRole("button", { name: "Move" }).click();
    await page.getByText("Nothing is copied").waitFor();
    const home = page.getByLabel("New runner");
    await home.locator("option", { hasText: "r2" }).waitFor({ state: "attached" });
    expect(await home.locator("option").allTextContents()).toEqual([
      "first runner that claims it",
      "none, with a new directory for each run",
      "r2",
      "r1",
    ]);
    await home.selectOption("r2");
    await page.getByRole("button", { name: "Move worker" }).click();
    await page.getByText("Ada moved").waitFor();
    const [{ id }] = await app.call("GET /api/workers");
    expect(await app.call(`GET /api/workers/${id}`)).toMatchObject({
      engine: "whisper",
      runs_on: ["gpu"],
      home: "r2",
    });
    // Saving without changes does not move the worker.
    await page.getByRole("link", { name: "Edit" }).click();
    await page.getByLabel("Description").fill("Listens");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Listens").waitFor();
    expect((await app.call(`GET /api/workers/${id}`)).home).toBe("r2");

    await app.call("POST /api/runners/r2/drain", {});
    const task = await createTask(app, id, "hello");
    await waitUntil(
      "the task is blocked",
      async () => (await app.call(`GET /api/tasks/${task}`)).held_by !== null,
    );
    await visitor.goto(`/console/tasks/${task}`);
    await page.getByText("On hold: no runner available").waitFor();
    await page.locator("main").getByRole("link", { name: "Open runners" }).click();
    await page.getByRole("button", { name: /r2/ }).click();
    await page.getByRole("dialog").getByRole("link", { name: "Ada" }).waitFor();
  });

  it("filters runners by name, label, engine and state in the address; a viewer cannot change them", async () => {
    await using app = await openApp();
    for (let number = 1; number <= 9; number++) await connectRunner(app, `linux${number}`, ["linux"]);
    const { token } = await app.call("POST /api/runners", { name: "mac1", labels: ["macos"] });
    await new FakeRunner(app, token).claim({ wait_ms: 0 });
    await app.db.write([{
      sql: "update runner set last_seen_at = 1, draining = 1 where name = 'mac1'",
      args: [],
    }]);
    await app.call("POST /api/users", { name: "grace", role: "viewer", password: "a long secret" });
    await using visitor = await visit(app.url, {
      at: "/console/runners",
      name: "grace",
      password: "a long secret",
    });
    const { page } = visitor;
    await page.getByText("10 of 10").waitFor();
    await page.getByLabel("Name, label or engine").fill("MACOS");
    await page.getByText("1 of 10").waitFor();
    await page.getByLabel("Name, label or engine").fill("");
    await page.getByLabel("State").selectOption("silent");
    await page.getByText("1 of 10").waitFor();
    await expect.poll(() => new URL(page.url()).search).toBe("?state=silent");
    await page.reload();
    // The row shows both states: not responding and draining.
    await page.getByRole("button", { name: /not responding mac1.*draining/ }).click();
    await page.getByText("The runner is not responding").waitFor();
    expect(await page.getByRole("button", { name: /Drain|Remove|Resume|Add/ }).count()).toBe(0);
  });
});
