import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { ctl } from "../harness/terminal.ts";

const UNKNOWN = "01a1fd23-4a4c-746f-99ac-8860e2641168";

async function createWorker(app: App) {
  const { id } = await app.call("POST /api/workers", { name: "Ada" });
  const create = (...more: string[]) =>
    ctl(app, ["task", "create", "--message-id", "script", "--worker-id", id, "--instruction", "ok", ...more]);
  return { id, create };
}

describe("svc ctl task (interface 4.2, contract 6)", () => {
  it("an invalid cron prints a cancelled task, the reason on stderr, and exit 8 (contract 8.9)", async () => {
    await using app = await openApp();
    const { create } = await createWorker(app);
    const { code, out, err } = await create("--type", "scheduled", "--cron", "61 * * * *");
    expect(code).toBe(8);
    expect(out).toContain("status\tcancelled\n");
    expect(out).toContain("reason\tminute: 61 is not 0-59\n");
    expect(err).toBe("svc: the task was cancelled: minute: 61 is not 0-59\n");
    const empty = await create("--type", "scheduled", "--cron", "");
    expect([empty.code, empty.err]).toEqual([8, expect.stringContaining("empty")]);
  });

  it("a countdown less than 5 s ahead returns exit 2 and creates nothing", async () => {
    await using app = await openApp();
    const { id, create } = await createWorker(app);
    const { code, out, err } = await create(
      "--type",
      "countdown",
      "--scheduled-at",
      String(Date.now() + 2_000),
    );
    expect([code, out]).toEqual([2, ""]);
    expect(err).toMatch(
      /^svc: --scheduled-at: must be at least 5 seconds ahead of .*, which says \d{4}-\d\d-\d\dT[\d:.]+Z\n$/,
    );
    expect((await ctl(app, `task list --worker-id ${id}`)).out).toBe("");
  });

  it("works in a script: create, wait, and the outcome is the exit code", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { id, create } = await createWorker(app);
    const made = await create("--type", "immediate", "-q");
    expect(made.out).toMatch(/^[0-9a-f-]{36}\n$/);
    const waited = await ctl(app, ["task", "wait", made.out.trim(), "--timeout", "30s"]);
    expect(waited.code).toBe(0);
    expect(waited.out).toContain("status\tcompleted\n");
    const failing = await ctl(
      app,
      `task create --message-id s --worker-id ${id} --instruction 'exit 3' --type immediate --wait`,
    );
    expect(failing.code).toBe(8);
    expect(failing.err).toMatch(/^accepted [0-9a-f-]{36}\nsvc: task .* failed: exit_code/);
    const slow = await ctl(
      app,
      `task create --message-id s --worker-id ${id} --instruction 'sleep 20' --type immediate --wait --timeout 300ms`,
    );
    expect(slow.code).toBe(124);
    expect(slow.err).toMatch(/is still (pending|running)/);
    const invalid = await create("--type", "scheduled", "--cron", "x", "--wait");
    expect(invalid.code).toBe(8);
  });

  it("a schedule is run now, waited for, and cancelled", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { create } = await createWorker(app);
    const id =
      (await create("--type", "scheduled", "--cron", "0 0 1 1 *", "--time-zone", "Europe/Berlin", "-q")).out
        .trim();
    const { done } = await app.listening(() => ctl(app, `task wait ${id} --timeout 20s`));
    expect((await ctl(app, `task run ${id}`)).out).toContain("status\tpending\n");
    expect((await done).code).toBe(0);
    expect((await ctl(app, `task get ${id}`)).out).toContain("run_count\t1\n");
    expect((await ctl(app, `task cancel ${id}`)).out).toContain("status\tcancelled\n");
    expect((await ctl(app, `task cancel ${id}`)).code).toBe(5);
    expect((await ctl(app, `task wait ${id}`)).code).toBe(8);
    expect((await ctl(app, `task run ${id}`)).code).toBe(5);
  });

  it("the same idempotency key creates one task", async () => {
    await using app = await openApp();
    const { id, create } = await createWorker(app);
    const first = await create("--type", "scheduled", "--cron", "0 0 1 1 *", "--idempotency-key", "k");
    expect((await create("--type", "scheduled", "--cron", "0 0 1 1 *", "--idempotency-key", "k")).out).toBe(
      first.out,
    );
    expect((await create("--type", "immediate", "--idempotency-key", "k")).code).toBe(5);
    expect((await ctl(app, `task list --worker-id ${id} -q`)).out.trim().split("\n")).toHaveLength(1);
  });

  it("refuses missing, exclusive and wrong flags", async () => {
    await using app = await openApp();
    const { id } = await createWorker(app);
    const given = `create --message-id m --worker-id ${id} --instruction x`;
    const wrong: [string, RegExp][] = [
      ["list", /specify --session-key, --message-id, --worker-id or --after/],
      ["list --session-key a --message-id b", /cannot be used together/],
      ["list --worker-id ''", /--worker-id must not be empty/],
      [`list --worker-id ${id} --status pending,done`, /--status: "done" is not one of/],
      [`list --worker-id ${id} --type later`, /--type: "later" is not one of/],
      ["create", /--message-id is required/],
      [given, /--type is required/],
      [`${given} --type later`, /is not one of immediate, countdown, scheduled/],
      [`${given} --type immediate --cron '* * * * *'`, /cron: does not apply to type immediate/],
      [`${given} --type countdown`, /--scheduled-at: is missing/],
      [`${given} --type countdown --scheduled-at soon`, /is not a time such as/],
      [`${given} --type immediate --timeout 3s`, /--timeout requires --wait/],
      [`${given} --type immediate --wait --timeout 3`, /not a duration/],
      [`${given.replace(id, UNKNOWN)} --type immediate`, /--worker-id: no worker has the id/],
      [`${given.replace(/x$/, "''")} --type immediate`, /--instruction must not be empty/],
    ];
    for (const [line, words] of wrong) {
      const { code, out, err } = await ctl(app, `task ${line}`);
      expect([code, out], line).toEqual([2, ""]);
      expect(err, line).toMatch(words);
    }
    for (const verb of ["get", "cancel", "run", "wait"]) {
      expect((await ctl(app, ["task", verb, UNKNOWN])).code, verb).toBe(3);
    }
    expect((await ctl(app, ["execution", "cancel", UNKNOWN])).code).toBe(3);
    expect(await app.call(`GET /api/tasks?worker_id=${id}`)).toEqual([]);
  });
});

describe("svc ctl session (interface 4.2, contract 6)", () => {
  async function createLinkedWorkers(app: App, ...names: string[]): Promise<string[]> {
    const ids = [];
    for (const name of names) {
      const { id } = await app.call("POST /api/workers", { name });
      ids.push(id);
      await app.db.write([{
        sql:
          "insert into session_context (session_key, worker_id, engine, session_id, work_dir, updated_at) values ('k', ?, 'e', 's', '/', 1)",
        args: [id],
      }]);
    }
    return ids;
  }

  it("lists contexts, clears one worker's, and clears all", async () => {
    await using app = await openApp();
    const [ada = "", bob = ""] = await createLinkedWorkers(app, "Ada", "Bob");
    expect((await ctl(app, "session list --session-key k -q")).out).toBe(`${bob}\n${ada}\n`);
    expect((await ctl(app, ["session", "clear-worker", "--session-key", "k", "--worker-id", bob])).out).toBe(
      "cancelled_tasks\t0\ncleared_contexts\t1\n",
    );
    expect(await ctl(app, "session clear --session-key k")).toEqual({
      code: 0,
      out: "cancelled_tasks\t0\ncleared_contexts\t1\n",
      err: "",
    });
    expect((await ctl(app, "session list --session-key k")).out).toBe("");
    expect((await ctl(app, "session list")).err).toMatch(/--session-key is required/);
  });

  it("asks before it clears several workers: yes, no, nothing, --force", async () => {
    await using app = await openApp();
    const clear = (stdin: string, ...more: string[]) =>
      ctl(app, ["session", "clear", "--session-key", "k", ...more], { stdin });
    await createLinkedWorkers(app, "Ada", "Bob");
    const no = await clear("n\n");
    expect([no.code, no.out]).toEqual([7, ""]);
    expect(no.err).toMatch(/2 workers are linked \(Bob, Ada\). Clear them all\? \[y\/N\]/);
    const nothing = await clear("");
    expect([nothing.code, nothing.out]).toEqual([2, ""]);
    expect(await app.call("GET /api/contexts?session_key=k")).toHaveLength(2);
    const interrupt = new AbortController();
    const cut = await ctl(app, "session clear --session-key k", {
      stdin: new ReadableStream({ pull: () => interrupt.abort() }, { highWaterMark: 0 }),
      terminal: true,
      signal: interrupt.signal,
    });
    expect([cut.code, cut.out]).toEqual([130, ""]);
    expect(await app.call("GET /api/contexts?session_key=k")).toHaveLength(2);
    expect((await clear("yes\n")).code).toBe(0);
    await createLinkedWorkers(app, "Carl", "Dan");
    expect((await clear("", "--force")).out).toContain("cleared_contexts\t2\n");
    await createLinkedWorkers(app, "Eve", "Fred");
    expect((await clear("", "--yes")).code).toBe(0);
  });
});

describe("svc ctl task create --batch (contract 3, Task; contract 6)", () => {
  const batch = (app: App, lines: (object | string)[], ...more: string[]) =>
    ctl(app, ["task", "create", "--batch", "-", ...more], {
      stdin: lines.map((line) => typeof line === "string" ? line : JSON.stringify(line)).join("\n"),
    });

  it("prints the IDs in order, and accepts worker names, stdin and files", async () => {
    await using app = await openApp();
    const { id: worker_id } = await createWorker(app);
    const task = { message_id: "s", worker_id, instruction: "one", type: "immediate" };
    const lines = [task, "", { ...task, worker_id: "Ada", instruction: "two" }];
    const { code, out, err } = await batch(app, lines);
    expect([code, err]).toEqual([0, ""]);
    const ids = out.trimEnd().split("\n");
    const tasks = await Promise.all(ids.map((id) => app.call(`GET /api/tasks/${id}`)));
    expect(tasks.map(({ instruction }) => instruction)).toEqual(["one", "two"]);
    const file = join(app.dataDir, "tasks.jsonl");
    await Deno.writeTextFile(file, JSON.stringify(task));
    const twice = ["task", "create", "--batch", file, "--idempotency-key", "k", "--json"];
    const made = await ctl(app, twice);
    expect(JSON.parse(made.out)).toEqual({
      tasks: [{ id: expect.any(String), status: "pending", reason: "" }],
    });
    expect((await ctl(app, twice)).out).toBe(made.out);
  });

  it("names the wrong line, creates nothing, and returns the usual exit codes", async () => {
    await using app = await openApp();
    const { id: worker_id } = await createWorker(app);
    const task = { message_id: "s", worker_id, instruction: "one", type: "immediate" };
    const refused: [lines: (object | string)[], code: number, err: RegExp, more?: string[]][] = [
      [[task, "", "{"], 2, /^svc: --batch: line 3 is not JSON\n$/],
      [[task, "[1]"], 2, /^svc: --batch: line 2 is not a JSON object\n$/],
      [[""], 2, /no tasks/],
      [Array.from({ length: 501 }, () => task), 2, /more than 500 tasks/],
      [[task, "", { ...task, type: "never" }], 2, /^svc: line 3: type: must be one of/],
      [
        [task, "", { ...task, after: ["#0"] }],
        2,
        /^svc: line 3: after: no task that you may read has the id "#0"\n$/,
      ],
      [
        [{ ...task, type: "never" }, { ...task, instruction: "" }],
        2,
        /^svc: line 1: type: must be .*; line 2: instruction: must not be empty\n$/,
      ],
      [
        ["", { ...task, worker_id: "Nobody" }],
        3,
        /^svc: line 2: Cannot find worker "Nobody": no such worker\n$/,
      ],
      [[task], 2, /^svc: --worker-id cannot be used with --batch/, ["--worker-id", worker_id]],
      [[task], 2, /^svc: --wait cannot be used with --batch/, ["--wait"]],
    ];
    for (const [lines, code, words, more = []] of refused) {
      const { code: got, out, err } = await batch(app, lines, ...more);
      expect([got, out, err]).toEqual([code, "", expect.stringMatching(words)]);
    }
    expect((await ctl(app, "task create --batch /nowhere")).code).toBe(2);
    expect((await ctl(app, "task create --type immediate")).err).toMatch(/--message-id is required/);
    expect((await ctl(app, `task list --worker-id ${worker_id}`)).out).toBe("");
    const never = await batch(app, [task, { ...task, type: "scheduled", cron: "61 * * * *" }]);
    expect([never.code, never.out.trimEnd().split("\n").length]).toEqual([8, 2]);
    expect(never.err).toContain("line 2: minute: 61 is not 0-59");
  });
});
