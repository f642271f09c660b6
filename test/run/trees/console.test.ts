import { expect, it } from "vitest";
import { describeConsole, DESK, PHONE } from "../../harness/browser.ts";
import { openTreeApp } from "../../harness/service/tree_app.ts";

const SCRIPT = "printf 'one\\nTWO\\n' > README.md; mkdir -p src; printf '<b>ünï</b>\\n' > 'src/a b.ts'; " +
  "head -c 2000 /dev/urandom > logo.png; seq 600 > numbers.txt";

describeConsole("the changes of a run", ({ visit }) => {
  async function begin(view = DESK) {
    const one = await openTreeApp();
    const execution = await one.run(SCRIPT);
    const at = `/console/executions/${execution.id}?view=changes`;
    const visitor = await visit(one.app.url, { at, view });
    return {
      ...{ one, execution, page: visitor.page },
      async [Symbol.asyncDispose]() {
        await visitor[Symbol.asyncDispose]();
        await one[Symbol.asyncDispose]();
      },
    };
  }

  for (const [name, view] of Object.entries({ desk: DESK, phone: PHONE })) {
    it(`show each file with its lines, next to the log (${name})`, async () => {
      await using shown = await begin(view);
      const { page, execution } = shown;
      await page.getByText("4 files changed").waitFor();
      const readme = page.getByRole("region", { name: "Changes of README.md" });
      expect(await readme.innerText()).toContain("+TWO");
      await page.getByText("src/a b.ts", { exact: true }).waitFor();
      expect(await page.locator("b", { hasText: "ünï" }).count()).toBe(0);
      const numbers = page.locator("details", { hasText: "numbers.txt" });
      await numbers.locator("summary").click();
      await numbers.getByRole("button", { name: "Show all 601 lines" }).click();
      await numbers.getByText("+600", { exact: true }).last().waitFor();
      const logo = page.locator("details", { hasText: "logo.png" });
      if (await logo.getAttribute("open") === null) await logo.locator("summary").click();
      await logo.getByText("No text to show: the file is binary or empty.").waitFor();
      await page.getByRole("button", { name: "Side by side" }).click();
      await page.locator("table.split").first().waitFor();
      expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
      await page.getByRole("button", { name: "Whole branch" }).click();
      await page.getByText("4 files changed").waitFor();
      expect(await page.getByText(execution.branch, { exact: true }).count()).toBe(1);
    });
  }

  it("pushes the branch, and discards it, after a question", async () => {
    await using shown = await begin();
    const { page, one, execution } = shown;
    await page.getByText("Not pushed").waitFor();
    await page.getByRole("button", { name: "Push", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Push" }).click();
    await page.locator(".changes-branch").getByText("Pushed", { exact: true }).waitFor();
    expect((await one.findTree(execution))?.pushed_commit).toBe(execution.head_commit);
    await page.getByRole("button", { name: "Discard", exact: true }).click();
    await page.getByText("The pushed branch stays.").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click();
    await page.getByText("Discarded").waitFor();
    expect(await one.findTree(execution)).toBeUndefined();
  });
});
