import { describe, expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { ctl } from "../harness/terminal.ts";

const URL = "https://example.org/hook";

describe("svc ctl asks on a terminal before it deletes (contract 8.11)", () => {
  it("asks for every kind, with --yes or in a pipe never", async () => {
    await using app = await openApp();
    const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada" });
    const plan = { message_id: "m", worker_id, instruction: "ok", type: "scheduled", cron: "0 0 1 1 *" };
    const make = {
      "worker delete": async () => (await app.call("POST /api/workers", { name: "Bob" })).id,
      "user delete": async () => (await app.call("POST /api/users", { name: "eve", role: "viewer" })).name,
      "department delete": async () => (await app.call("POST /api/departments", { name: "Sales" })).name,
      "webhook delete": async () =>
        (await app.call("POST /api/webhooks", { name: "ci", url: URL, events: ["task.*"] })).name,
      "schedule delete": async () => (await app.call("POST /api/tasks", plan)).id,
      "token delete": async () =>
        (await app.call("POST /api/tokens", { name: "ci", scopes: ["read:tasks"] })).id,
      "runner remove": async () => (await app.call("POST /api/runners", { name: "mac1" })).name,
      "budget delete": async () =>
        (await app.call("POST /api/budgets", { name: "Day", unit: "runs", limit: 1, period: "24h" })).name,
    };
    for (const [command, create] of Object.entries(make)) {
      const args = [...command.split(" "), await create()];
      const no = await ctl(app, args, { terminal: true, stdin: "\n" });
      expect([command, no.code, no.out]).toEqual([command, 7, ""]);
      expect(no.err).toMatch(/^Delete \w+ .+\? .+ \[y\/N\] svc: Canceled. Deleted nothing.\n$/);
      expect([command, (await ctl(app, args, { terminal: true, stdin: "y\n" })).code]).toEqual([command, 0]);
      const again = [...command.split(" "), await create()];
      expect([command, (await ctl(app, [...again, "--yes"], { terminal: true })).code]).toEqual([command, 0]);
      const piped = await ctl(app, [...command.split(" "), await create()]);
      expect([command, piped.code, piped.err]).toEqual([command, 0, ""]);
    }
  });

  it("names what is lost with a worker", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    const { err } = await ctl(app, "worker delete Ada", { terminal: true, stdin: "n\n" });
    expect(err).toMatch(/^Delete worker Ada\? Its tasks are canceled and its runs end. \[y\/N\] /);
  });
});

describe("svc ctl -q keeps a secret that no later request returns (contract 6.3)", () => {
  it("prints the ID on stdout and the secret on stderr", async () => {
    await using app = await openApp();
    const id = /^[0-9a-f-]{36}\n$/;
    const token = await ctl(app, "token create -n ci --scopes read:tasks -q");
    expect([token.out, token.err]).toEqual([
      expect.stringMatching(id),
      expect.stringMatching(/^token \S+\n$/),
    ]);
    const user = await ctl(app, "user create -n eve --role viewer -q");
    expect([user.out, user.err]).toEqual([
      expect.stringMatching(id),
      expect.stringMatching(/^password \S+\n$/),
    ]);
    const webhook = await ctl(app, `webhook create -n ci --url ${URL} --events task.* -q`);
    expect([webhook.out, webhook.err]).toEqual([
      expect.stringMatching(id),
      expect.stringMatching(/^secret whsec_\S+\n$/),
    ]);
    const runner = await ctl(app, "runner add mac1 -q");
    expect([runner.out, runner.err]).toEqual([
      expect.stringMatching(id),
      expect.stringMatching(/^token \S+\n$/),
    ]);
    expect((await ctl(app, "webhook get ci -q")).err).toBe("");
  });
});

describe("token create refuses a scope that names nothing", () => {
  it("with the scope that was meant", async () => {
    await using app = await openApp();
    const typo = await ctl(app, "token create -n ci --scopes read:taks");
    expect([typo.code, typo.err]).toEqual([
      2,
      'svc: --scopes: "read:taks" names no resource. Did you mean read:tasks?\n',
    ]);
    expect((await ctl(app, "token create -n ci --scopes raed:tasks")).err).toContain("must start with read:");
    expect((await ctl(app, "token create -n ci --scopes read:*")).code).toBe(0);
  });
});
