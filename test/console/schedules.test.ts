import { expect, it } from "vitest";
import { storeSetting } from "../../src/store/db/setting.ts";
import { describeConsole, PHONE } from "../harness/browser.ts";

describeConsole("schedules in the console", ({ open }) => {
  it("says that a restore paused all schedules, and resumes them", async () => {
    await using one = await open("/console/schedules");
    const { app, page, visitor } = one;
    await app.db.write([storeSetting("schedules_paused", "1")]);
    for (const path of ["/console/system", "/console/schedules"]) {
      await visitor.goto(path);
      await page.getByText("A restore paused all schedules.").waitFor();
    }
    await page.getByRole("button", { name: "Resume all schedules" }).click();
    await page.getByText("A restore paused all schedules.").waitFor({ state: "detached" });
    expect((await app.call("GET /api/system/overview")).schedules_paused).toBe(false);
  });

  it("creates a schedule with a preview, keeps the input over a reload, and edits it", async () => {
    await using one = await open("/console/schedules", { view: PHONE });
    const { app, page, visitor } = one;
    await page.getByText("No schedules yet.").waitFor();
    await page.getByRole("link", { name: "New schedule" }).click();
    await page.getByLabel("Instruction").fill("write the report");
    const times = page.getByRole("list", { name: "Upcoming" });
    await page.getByLabel("Cron expression").fill("61 * * * *");
    await page.getByRole("alert").first().waitFor();
    await page.getByLabel("Cron expression").fill("30 7 * * 1");
    await page.getByLabel("Time zone").selectOption("Europe/Berlin");
    await times.getByText(/07:30$/).first().waitFor();
    expect(await times.getByRole("listitem").count()).toBe(5);
    await page.reload();
    expect(await page.getByLabel("Instruction").inputValue()).toBe("write the report");
    await page.getByLabel("Name").fill("Report");
    await page.getByRole("button", { name: "Create schedule" }).click();
    await page.getByRole("heading", { name: "Report" }).waitFor();
    await page.getByText("Mondays at 07:30 Europe/Berlin").waitFor();
    await page.getByRole("link", { name: "Edit" }).click();
    await page.locator("summary").click();
    await page.getByLabel(/^Gate/).fill("test\n-d\n.");
    await page.getByLabel(/^Overlap/).selectOption("queue");
    await page.getByLabel(/^Check/).fill("test\n-e\nnews");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("test -e news").waitFor();
    const [schedule] = await app.call("GET /api/schedules");
    expect(schedule).toMatchObject({
      name: "Report",
      gate: { command: ["test", "-d", "."] },
      overlap: "queue",
      verify: { command: ["test", "-e", "news"] },
    });
    await visitor.goto("/console/schedules");
    await page.getByRole("link", { name: /Report.*Mondays at 07:30/ }).waitFor();
  });

  it("creates a one-time schedule", async () => {
    await using one = await open("/console/schedules/new");
    const { app, page } = one;
    await page.getByLabel("Instruction").fill("order paper");
    await page.getByLabel("Frequency").selectOption("countdown");
    await page.getByLabel("Time", { exact: true }).fill("2037-03-01T08:00");
    await page.getByRole("button", { name: "Create schedule" }).click();
    await page.getByRole("heading", { name: "order paper" }).waitFor();
    expect(await app.call("GET /api/schedules")).toMatchObject([
      { type: "countdown", scheduled_at: Date.UTC(2037, 2, 1, 8) },
    ]);
  });
});
