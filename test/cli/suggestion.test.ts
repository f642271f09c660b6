import { describe, expect, it } from "vitest";
import { suggestTopCommand } from "../../cli/commands/suggestion.ts";
import { openApp } from "../harness/service/app.ts";
import { ctl } from "../harness/terminal.ts";

describe("svc says what a refused line most likely means", () => {
  it.each([
    ["logs", "Did you mean `svc ctl execution logs`?"],
    ["wrker list", "Did you mean `svc ctl worker`?"],
    ["restore x.tar", "Did you mean `svc restore`?"],
    ["worker show Ada", "Did you mean `svc ctl worker get`?"],
    ["worker rm Ada", "Did you mean `svc ctl worker delete`?"],
    ["worker create --dep x", "Did you mean `--department`?"],
    ["worker create Ada", "Did you mean `svc ctl worker create --name Ada`?"],
    ["worker create Ada -c svc.yaml", "Did you mean `svc ctl worker create --name Ada`?"],
    ["chat hello world", "Quote the text: svc ctl chat 'hello world'"],
    ["run Ada hello world", "Quote the text: svc ctl run Ada 'hello world'"],
    ["run Ada --cron 0 9 * * 1 hi", "Quote the five fields of cron: --cron '0 9 * * 1-5'"],
    ["schedule preview 0 9 * * 1", "Quote the five fields of cron: '0 9 * * 1-5'"],
  ])("ctl %s", async (line, meant) => {
    const { code, err } = await ctl(null, line.split(" "));
    expect([code, err]).toEqual([2, expect.stringContaining(`. ${meant}\n`)]);
    expect(err).toMatch(/^svc: [^\n]+\n$/);
  });

  it("names the help where no flag is close", async () => {
    expect((await ctl(null, "worker list --zzz")).err).toBe(
      "svc: unknown flag '--zzz'. Run `svc ctl help worker list` for the flags.\n",
    );
  });

  it("a command of svc itself", () => {
    expect(suggestTopCommand("serv")).toBe("Did you mean `svc serve` or `svc service`?");
    expect(suggestTopCommand("worker")).toBe("Did you mean `svc ctl worker`?");
    expect(suggestTopCommand("zzzz")).toBe("");
  });

  it("an update without a flag says that nothing would change", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    const { code, err } = await ctl(app, "worker update Ada");
    expect([code, err]).toEqual([
      2,
      "svc: nothing to change: specify at least one flag, such as --name\n",
    ]);
  });
});

describe("a schedule with an invalid cron (contract 8.9)", () => {
  it("says only why on a terminal, and stores the task", async () => {
    await using app = await openApp();
    const { id } = await app.call("POST /api/workers", { name: "Ada" });
    const args = ["schedule", "create", "--worker", "Ada", "--instruction", "x", "--cron", "61 * * * *"];
    const shown = await ctl(app, args, { terminal: true });
    expect([shown.code, shown.out, shown.err]).toEqual([
      8,
      "",
      "svc: the schedule was cancelled: minute: 61 is not 0-59\n",
    ]);
    expect(await app.call(`GET /api/tasks?worker_id=${id}`)).toMatchObject([{ status: "cancelled" }]);
    expect((await ctl(app, args)).out).toContain("reason\tminute: 61 is not 0-59\n");
  });

  it("takes @daily and its like", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    const args = ["schedule", "create", "--worker", "Ada", "--instruction", "x", "--cron", "@daily"];
    expect((await ctl(app, args)).out).toContain("cron\t0 0 * * *\n");
    expect((await ctl(app, ["schedule", "preview", "@weekly", "--count", "1"])).code).toBe(0);
    const run = await ctl(app, ["run", "Ada", "--cron", "@hourly", "x"]);
    expect(run.out).toContain("cron\t0 * * * *\n");
  });
});
