import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { buildShellEngine } from "../harness/fakes/agents.ts";
import { createTask } from "../harness/service/runner.ts";
import { describeConsole, DESK, PHONE } from "../harness/browser.ts";

const BREAKS = buildShellEngine(
  "for i in $(seq 200); do echo ok $i >&2; done; echo 'FAIL cursor: expected 50' >&2; " +
    "for i in $(seq 200); do echo cleaning $i >&2; done; exit 3",
);
const CALLS = buildShellEngine(
  "echo '> Bash: deno test' >&2; echo '< failed: 3 tests (1.2 KB)' >&2; echo '> Read: main.ts' >&2; " +
    "echo '< 40 lines (3.2 KB)' >&2; echo done",
);

describeConsole("the page of a run", ({ visit }) => {
  async function begin(engine: ReturnType<typeof buildShellEngine>, view = DESK, query = "") {
    const app = await openApp({ config: { engines: { script: engine } } });
    const ada = await app.call("POST /api/workers", { name: "Ada", engine: "script" });
    await createTask(app, ada.id, "test the shop");
    await app.settle();
    const [execution] = await app.call("GET /api/executions");
    const visitor = await visit(app.url, { at: `/console/executions/${execution.id}${query}`, view });
    return {
      ...{ app, execution, visitor, page: visitor.page },
      async [Symbol.asyncDispose]() {
        await visitor[Symbol.asyncDispose]();
        await app[Symbol.asyncDispose]();
      },
    };
  }

  for (const [name, view] of Object.entries({ desk: DESK, phone: PHONE })) {
    it(`the log of a failed run opens at its error, inside the first screen (${name})`, async () => {
      await using one = await begin(BREAKS, view);
      const { page } = one;
      const box = page.getByRole("list", { name: "Log lines" });
      const line = box.getByText("FAIL cursor: expected 50");
      await line.waitFor();
      const [outer, inner] = [await box.boundingBox(), await line.boundingBox()];
      expect(inner?.y).toBeGreaterThan(outer?.y ?? Infinity);
      const end = (outer?.y ?? 0) + (outer?.height ?? 0);
      expect((inner?.y ?? 0) + (inner?.height ?? 0)).toBeLessThan(end);
      expect(end).toBeLessThanOrEqual(view.height);
      expect(outer?.height).toBeGreaterThan(200);
    });
  }

  it("saves the log as a file", async () => {
    await using one = await begin(BREAKS);
    const { execution, page } = one;
    await page.getByText("403 lines").or(page.getByText(/^4\d\d lines$/)).first().waitFor();
    const press = page.getByRole("button", { name: "Download log" }).click();
    const [download] = await Promise.all([page.waitForEvent("download"), press]);
    expect(download.suggestedFilename()).toContain(execution.id.slice(-6));
    expect(await Deno.readTextFile(await download.path())).toContain("FAIL cursor: expected 50");
  });

  it("a timeline shows the wait, the run and its tool calls, each with its line of the log", async () => {
    await using one = await begin(CALLS, DESK, "?view=timeline");
    const { page } = one;
    const spans = page.getByRole("list", { name: "Timeline" }).getByRole("listitem");
    await spans.filter({ hasText: "Bash" }).waitFor();
    expect(
      await spans.evaluateAll((all) =>
        all.map((each) =>
          (each as unknown as { innerText: string }).innerText.split(/\s+/).slice(0, 2).join(" ")
        )
      ),
    ).toEqual([
      "idle Waiting",
      "completed Run",
      "failed Bash",
      "completed Read",
    ]);
    await page.getByRole("button", { name: "Read", exact: true }).click();
    await page.getByRole("list", { name: "Log lines" }).locator(".chosen").getByText("> Read: main.ts")
      .waitFor();
  });
});
