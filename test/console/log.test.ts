import { join } from "node:path";
import type { Request } from "playwright-core";
import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { buildShellEngine } from "../harness/fakes/agents.ts";
import { createTask } from "../harness/service/runner.ts";
import { describeConsole } from "../harness/browser.ts";

describeConsole("a log that is followed for longer than a token is valid", ({ visit }) => {
  /** Starts a run that has written "before", and follows its log with a short token. */
  async function begin() {
    const dir = await Deno.makeTempDir({ prefix: "svc-test-" });
    const go = join(dir, "go");
    const waits = buildShellEngine(
      `echo before >&2; until [ -e ${go} ]; do sleep 0.05; done; echo after >&2; echo done`,
    );
    const app = await openApp({ config: { auth: { access_ttl: "2s" }, engines: { waits } } });
    const { id } = await app.call("POST /api/workers", { name: "Ada", engine: "waits" });
    await createTask(app, id, "wait");
    await app.until("execution.started");
    const [execution] = await app.call("GET /api/executions");
    const visitor = await visit(app.url);
    const { page } = visitor;
    let cuts = 0;
    const count = (request: Request) => void (request.url().includes("/logs?") && cuts++);
    // Chromium reports the end of a stream as finished or as failed.
    page.on("requestfinished", count).on("requestfailed", count);
    await visitor.goto(`/console/executions/${execution.id}`);
    await visitor.signIn();
    const lines = page.getByRole("list", { name: "Log lines" });
    await lines.getByText("before").waitFor();
    return {
      app,
      page,
      lines,
      /** Resolves when the next answer with the log has ended. */
      cut: async () => {
        const before = cuts;
        await expect.poll(() => cuts, { timeout: 30_000 }).toBeGreaterThan(before);
      },
      goOn: () => Deno.writeTextFile(go, ""),
      [Symbol.asyncDispose]: async () => {
        await visitor[Symbol.asyncDispose]();
        await app[Symbol.asyncDispose]();
        await Deno.remove(dir, { recursive: true });
      },
    };
  }

  it("continues with the next token, without repeated lines, until the run ends", async () => {
    await using one = await begin();
    const { page, lines } = one;
    // Each following token expires, too.
    for (let ends = 0; ends < 2; ends++) await one.cut();
    await page.getByText(/^\d+ lines?, live$/).waitFor();
    await one.goOn();
    await lines.getByText("after").waitFor();
    await page.getByText(/^\d+ lines$/).waitFor();
    expect(await lines.getByText("before").count()).toBe(1);
  });

  it("shows the last lines of a run that ends right after the token", async () => {
    await using one = await begin();
    const { app, page, lines } = one;
    const ended = Promise.withResolvers<void>();
    await page.route(
      /\/api\/executions\/[\w-]+$/,
      async (route) => (await ended.promise, await route.continue()),
    );
    await one.cut();
    await one.goOn();
    await app.settle();
    ended.resolve();
    await lines.getByText("after").waitFor();
    expect(await lines.getByText("before").count()).toBe(1);
  });
});
