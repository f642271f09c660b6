import { describe, expect, it } from "vitest";
import { findCandidates } from "../../cli/completion/candidates.ts";
import type { Io } from "../../cli/terminal/io.ts";
import { openApp } from "../harness/service/app.ts";
import { ctl } from "../harness/terminal.ts";

const TERMINAL = { terminal: true, env: { NO_COLOR: "1" } };
const URL = "https://example.org/hook";

describe("svc ctl takes names and printed IDs wherever it takes IDs (contract 8.11)", () => {
  it("an ID as tables print it, for every kind", async () => {
    await using app = await openApp();
    const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada" });
    const plan = { message_id: "m", worker_id, instruction: "ok", type: "scheduled", cron: "0 0 1 1 *" };
    const made = {
      "worker get": worker_id,
      "task get": (await app.call("POST /api/tasks", plan)).id,
      "schedule get": (await app.call("POST /api/tasks", plan)).id,
      "user get": (await app.call("POST /api/users", { name: "eve", role: "viewer" })).id,
      "department get": (await app.call("POST /api/departments", { name: "Sales" })).id,
      "webhook get": (await app.call("POST /api/webhooks", { name: "ci", url: URL, events: ["task.*"] })).id,
      "runner get": (await app.call("POST /api/runners", { name: "mac1" })).id,
    };
    for (const [command, id] of Object.entries(made)) {
      const found = await ctl(app, [...command.split(" "), `…${id.slice(-6)}`]);
      expect([command, found.err, found.out]).toEqual([command, "", expect.stringContaining(`id\t${id}\n`)]);
    }
    const { id: token } = await app.call("POST /api/tokens", { name: "ci", scopes: ["read:tasks"] });
    expect((await ctl(app, ["token", "delete", `…${token.slice(-6)}`])).code).toBe(0);
  });

  it("the name of a schedule and of a token", async () => {
    await using app = await openApp();
    const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada" });
    const plan = { message_id: "m", worker_id, instruction: "ok", type: "scheduled", cron: "0 0 1 1 *" };
    const old = await app.call("POST /api/tasks", { ...plan, name: "weekly" });
    await app.call(`POST /api/tasks/${old.id}/cancel`);
    const { id } = await app.call("POST /api/tasks", { ...plan, name: "weekly" });
    expect((await ctl(app, "schedule pause weekly -q")).out).toBe(`${id}\n`);
    await app.call("POST /api/tokens", { name: "ci", scopes: ["read:tasks"] });
    expect((await ctl(app, "token delete ci")).code).toBe(0);
  });

  it("lists for people show the names of workers, pipes their IDs", async () => {
    await using app = await openApp();
    const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada" });
    const plan = { message_id: "m", worker_id, instruction: "ok", type: "scheduled", cron: "0 0 1 1 *" };
    await app.call("POST /api/tasks", plan);
    for (
      const command of ["task list --worker Ada", "task list --worker-id Ada", "queue list", "schedule list"]
    ) {
      const shown = await ctl(app, command, TERMINAL);
      expect([command, shown.out]).toEqual([command, expect.stringMatching(/WORKER.*\n.* Ada /)]);
      expect(shown.out).not.toContain("WORKER_ID");
      expect((await ctl(app, command)).out).toContain(worker_id);
    }
  });

  it("exit 3 for the name of no worker in every command with --worker", async () => {
    await using app = await openApp();
    const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada" });
    const commands = [
      ...["task", "queue", "execution", "question", "schedule"].map((noun) => `${noun} list`),
      ...["search invoice", "events", "queue cancel --expected 0", "message list-outbound"],
      "schedule create --instruction ok --cron '0 0 1 1 *'",
    ];
    for (const command of commands) {
      const found = await ctl(app, `${command} --worker nope`);
      expect([command, found]).toEqual([command, {
        code: 3,
        out: "",
        err: (await ctl(app, "worker get nope")).err,
      }]);
    }
    const plan = { message_id: "m", worker_id, instruction: "ok", type: "scheduled", cron: "0 0 1 1 *" };
    await app.call("POST /api/tasks", plan);
    for (const command of ["search invoice", "events", "queue cancel --expected 1"]) {
      const { code, err } = await ctl(app, `${command} --worker Ada`);
      expect([command, code, err]).toEqual([command, 0, ""]);
    }
  });

  it("a filter by the sender of messages also takes senders that are no workers", async () => {
    await using app = await openApp();
    const filter = "message list-outbound --source-id token:ci";
    expect(await ctl(app, filter)).toEqual({ code: 0, out: "", err: "" });
    expect((await ctl(app, `${filter} --worker x`)).err).toBe(
      "svc: --source-id cannot be used with --worker\n",
    );
  });

  it("completion offers names", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    await app.call("POST /api/users", { name: "eve", role: "viewer" });
    const io = {
      env: { SVC_DATA_DIR: app.dataDir, SVC_SERVER__PORT: "0", XDG_CONFIG_HOME: `${app.dataDir}/config` },
      cwd: "/tmp",
      signal: new AbortController().signal,
      err: () => {},
      out: () => {},
    } as unknown as Io;
    const complete = async (line: string) =>
      (await findCandidates(line.split(" "), io)).map(({ value }) => value);
    expect(await complete("ctl worker get ")).toEqual(["Ada"]);
    expect(await complete("ctl task list --worker-id ")).toEqual(["Ada"]);
    expect(await complete("ctl user get ")).toContain("eve");
  });
});
