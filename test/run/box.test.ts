import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { type Box, buildBoxLaunch, giveFiles } from "../../src/engine/process/box.ts";
import { BoxEtc } from "../../src/engine/process/box_etc.ts";
import { createBoxGroup, findDelegatedGroup } from "../../src/engine/process/box_group.ts";
import { findBoxFault } from "../../src/engine/process/box_fault.ts";
import { findMarked } from "../../src/engine/process/isolation.ts";
import { makeRunDir } from "../../src/engine/run_dir.ts";
import { BOX_SETTINGS } from "../harness/box.ts";
import { buildFakeEngines, buildShellEngine } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { openClient, PASS_HASH, waitUntilQuiet } from "../harness/service/client.ts";
import { upload } from "../http/requests.ts";
import { startRun } from "../harness/service/run.ts";
import { createTempDir, startServer } from "../harness/service/process.ts";

vi.setConfig({ testTimeout: 120_000 });

const fault = await findBoxFault(BOX_SETTINGS);
const why = fault === null ? "" : ` (skipped: ${fault})`;
const isRoot = Deno.uid() === 0;
const HOST = { box: { network: "host" } };

const openBoxed = (script: string, isolation: object = BOX_SETTINGS) =>
  openApp({
    config: { isolation, engines: { default: "sh", sh: { ...buildShellEngine(script), shell: [] } } },
  });

async function run(app: App, worker: { id: string }) {
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "x" });
  await app.settle();
  return (await app.call("GET /api/executions"))[0];
}

const exists = (path: string) => Deno.stat(path).then(() => true, () => false);

describe(`a worker in a box${why} [BOX-1]`, () => {
  it.skipIf(fault !== null)(
    "runs in its work directory with svc, its own home and no capability",
    async () => {
      const script =
        "svc --version; pwd; touch made; touch $HOME/kept; touch /usr/x 2>/dev/null && echo bad; " +
        'grep CapEff /proc/self/status; cat "$SVC_CONTEXT_FILE" > context';
      await using app = await openBoxed(script);
      const worker = await app.call("POST /api/workers", { name: "Ada", isolation: HOST });
      expect(worker.isolation_effective).toEqual(HOST);
      const { status, result, error } = await run(app, worker);
      expect([status, error]).toEqual(["completed", ""]);
      expect(result).toMatch(new RegExp(`^svc \\d.*\n${worker.work_dir}\nCapEff:\t0+\n?$`));
      expect(await exists(join(worker.work_dir, "made"))).toBe(true);
      expect(await exists(join(app.dataDir, "state", worker.id, ".home", "kept"))).toBe(true);
    },
  );

  it.skipIf(fault !== null)("runs its check and its gate in the box, too", async () => {
    await using app = await openBoxed("touch ran");
    const look = ["sh", "-c", `ls ${app.dataDir}/secret.key && exit 9; touch looked; exit 0`];
    const worker = await app.call("POST /api/workers", {
      name: "Ada",
      isolation: HOST,
      verify: { command: look },
    });
    const execution = await run(app, worker);
    expect(execution).toMatchObject({ status: "completed", verify: { status: "passed" } });
    expect(await exists(join(worker.work_dir, "looked"))).toBe(true);
  });
});

describe(`what else belongs to a run in a box${why} [BOX-1]`, () => {
  it.skipIf(fault !== null)("the files of its message can be read, and other uploads cannot", async () => {
    const script =
      'sed -n \'s/.*"path": *"\\([^"]*uploads[^"]*\\)".*/\\1/p\' "$SVC_CONTEXT_FILE" | head -1 > name; ' +
      'cat "$(cat name)"; echo " changed" >> "$(cat name)" && echo bad; ls "$(dirname "$(cat name)")" | wc -l';
    await using app = await openBoxed(script);
    const worker = await app.call("POST /api/workers", { name: "Ada", isolation: HOST });
    const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await upload(app, session.id, "of another message");
    const { path } = await upload(app, session.id, "the attachment\n");
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "x", media_path: path });
    await app.settle();
    const [{ status, result, error }] = await app.call("GET /api/executions");
    expect([status, error]).toEqual(["completed", ""]);
    expect(result.trim()).toBe("the attachment\n1");
  });

  it.skipIf(fault !== null)(
    "the processes that it leaves have ended when its outcome is stored",
    async () => {
      await using app = await openBoxed(
        "for i in $(seq 50); do (exec sleep 300 </dev/null >/dev/null 2>&1) & done; echo left",
      );
      const worker = await app.call("POST /api/workers", { name: "Ada", isolation: HOST });
      const { status, result } = await run(app, worker);
      const marks = await app.db.read<{ run_id: string }>("select run_id from execution");
      expect(await findMarked(new Set(marks.map(({ run_id }) => run_id)))).toEqual([]);
      expect([status, result]).toEqual(["completed", "left"]);
    },
  );

  it.skipIf(fault !== null)("the check of an engine in the service runs in the box", async () => {
    const commands = { kind: "echo", shell: [] };
    await using app = await openApp({
      config: { isolation: BOX_SETTINGS, engines: { default: "own", own: commands } },
    });
    const look = ["sh", "-c", `ls ${app.dataDir}/secret.key && exit 9; touch looked`];
    const worker = await app.call("POST /api/workers", {
      name: "Ada",
      isolation: HOST,
      verify: { command: look },
    });
    const execution = await run(app, worker);
    expect(execution).toMatchObject({ status: "completed", verify: { status: "passed" } });
    expect(await exists(join(worker.work_dir, "looked"))).toBe(true);
  });
});

describe(`a box that cannot be set up${why} [BOX-2]`, () => {
  it("fails the run of a service that runs as root without a user for boxes", async (context) => {
    if (!isRoot) context.skip("the tests do not run as root");
    await using app = await openBoxed("touch ran", {});
    const worker = await app.call("POST /api/workers", { name: "Ada", isolation: "box" });
    const execution = await run(app, worker);
    expect(execution).toMatchObject({ status: "failed", failure: "isolation" });
    expect(execution.error).toContain("set isolation.box.user");
    expect(await exists(join(worker.work_dir, "ran"))).toBe(false);
    const { checks } = await app.call("GET /api/system/doctor");
    expect(checks.find(({ name }: { name: string }) => name === "isolation")).toMatchObject({
      status: "fail",
      detail: expect.stringContaining("isolation.box.user"),
    });
    const [task] = await app.call(`GET /api/tasks?worker_id=${worker.id}`);
    expect(task.reason).toContain("set isolation.box.user");
  });

  it.skipIf(fault !== null).each<
    [string, (worker: { work_dir: string; id: string }, app: App) => Promise<unknown>, RegExp]
  >([
    [
      "a work directory that has become a link",
      async ({ work_dir }, app) => {
        await Deno.remove(work_dir);
        await Deno.symlink(join(app.dataDir, "uploads"), work_dir);
      },
      /data directory|link/,
    ],
    [
      "a home that has become a link",
      async ({ id }, app) => {
        const state = join(app.dataDir, "state", id);
        await Deno.mkdir(state, { recursive: true });
        await Deno.symlink(app.dataDir, join(state, ".home"));
      },
      /symbolic link/,
    ],
    [
      "a home that is a file",
      async ({ id }, app) => {
        await Deno.mkdir(join(app.dataDir, "state", id), { recursive: true });
        await Deno.writeTextFile(join(app.dataDir, "state", id, ".home"), "x");
      },
      /exists|director/i,
    ],
  ])("fails the run without running anything: %s", async (_, change, words) => {
    await using app = await openBoxed(
      `touch ran; touch ${Deno.makeTempDirSync({ prefix: "svc-test-" })}/ran`,
    );
    const worker = await app.call("POST /api/workers", { name: "Ada", isolation: HOST });
    await change(worker, app);
    const execution = await run(app, worker);
    expect(execution.status).toBe("failed");
    expect(execution.error).toMatch(words);
    expect(await exists(join(worker.work_dir, "ran"))).toBe(false);
  });

  it.skipIf(fault !== null)(
    "fails the run when the agent puts a link in place of a directory of its box",
    async () => {
      await using app = await openBoxed("mv $TMPDIR $TMPDIR.old; ln -s /etc $TMPDIR");
      const verify = { command: ["sh", "-c", "touch checked"] };
      const worker = await app.call("POST /api/workers", { name: "Ada", isolation: HOST, verify });
      const execution = await run(app, worker);
      expect(execution).toMatchObject({ status: "failed", failure: "isolation" });
      expect(execution.error).toContain("symbolic link");
      expect(await exists(join(worker.work_dir, "checked"))).toBe(false);
    },
  );

  it.skipIf(fault !== null)(
    "never shows what a link leads to that an agent makes of a path to read after the check",
    async () => {
      await using folder = await createTempDir();
      await Deno.chmod(folder.path, 0o755);
      const [shown, away] = ["shown", "away"].map((name) => join(folder.path, name)) as [string, string];
      for (const path of [shown, away]) await Deno.mkdir(path);
      await Deno.writeTextFile(join(away, "foreign"), "foreign");
      const box = buildBox(folder.path, { readOnly: [shown] });
      const read = async () => {
        const { command, args, env } = buildBoxLaunch(box, {
          ...{ command: "/bin/cat", args: [join(shown, "foreign")], cwd: "/", env: {}, umask: 0o022 },
        });
        const { stdout, stderr } = await new Deno.Command(command, { args, env, clearEnv: true }).output();
        return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
      };
      expect(await read()).toMatch(/svc-box-started\n.*No such file/);
      await Deno.remove(shown);
      await Deno.symlink(away, shown);
      expect(await read()).toMatch(/^svc: .*shown is missing or a symbolic link/);
    },
  );

  it.skipIf(fault !== null)("makes no directory where a link in its /tmp leads", async (context) => {
    await using folder = await createTempDir();
    const [, top, name = ""] = folder.path.split("/");
    if (top !== "tmp") context.skip("the folder of the tests is not in /tmp");
    const victim = join(folder.path, "victim");
    await Deno.mkdir(victim);
    const box = buildBox(folder.path, {});
    await Deno.symlink(join("/oldroot", victim), join(box.runDir, "tmp", name));
    const { command, args, env } = buildBoxLaunch(box, {
      ...{ command: "/bin/true", args: [], cwd: "/", env: {}, umask: 0o022 },
    });
    await new Deno.Command(command, { args, env, clearEnv: true }).output();
    expect([...Deno.readDirSync(victim)]).toEqual([]);
  });

  it("gives no file outside its directories to the user of the box", async (context) => {
    if (!isRoot) context.skip("the tests do not run as root");
    await using folder = await createTempDir();
    const box = buildBox(folder.path, { user: { name: "nobody", uid: 65534, gid: 65534 } });
    const { runDir, stateDir = null } = box;
    const victim = join(folder.path, "victim");
    await Deno.mkdir(victim);
    for (const name of ["settings.json", "token"]) await Deno.writeTextFile(join(victim, name), "");
    await Deno.symlink(victim, join(stateDir ?? "", "config"));
    const fixed = [join(stateDir ?? "", "config", "settings.json")];
    expect(() => giveFiles({ ...box, fixed })).toThrow("symbolic link");
    await Deno.remove(join(runDir, "input"));
    await Deno.symlink(victim, join(runDir, "input"));
    expect(() => giveFiles(box)).toThrow("symbolic link");
    for (const name of ["", "settings.json", "token"]) {
      expect((await Deno.stat(join(victim, name))).uid, name).toBe(0);
    }
  });

  it.skipIf(fault !== null)("fails the run for each fault of bubblewrap, and says the way out", async () => {
    await using folder = await createTempDir();
    await Deno.chmod(folder.path, 0o755);
    const fake = join(folder.path, "bin", "bwrap");
    await Deno.mkdir(join(folder.path, "bin"));
    const set = (script: string) => Deno.writeTextFile(fake, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    await set("exit 1");
    await using server = await startServer({
      dataDir: folder.path,
      env: {
        PATH: `${join(folder.path, "bin")}:${Deno.env.get("PATH")}`,
        SVC_AUTH__PASSWORD_HASH: PASS_HASH,
        SVC_ENGINES__DEFAULT: "sh",
        SVC_ENGINES__SH__KIND: "command",
        SVC_ENGINES__SH__COMMAND: "/usr/bin/touch",
        SVC_ENGINES__SH__ARGS: '["ran"]',
        SVC_ISOLATION__BOX__USER: BOX_SETTINGS.box.user,
      },
    });
    const api = await openClient(server.url);
    const worker = await api.call("POST /api/workers", { name: "Ada", isolation: HOST });
    const refused =
      "echo 'bwrap: No permissions to create new namespace, likely because the kernel does not allow it' >&2; exit 1";
    for (
      const [script, words] of [
        ["exit 0", /ended without a reason/],
        ["echo 'bwrap: Unknown option --bind-fd' >&2; exit 1", /newer bubblewrap/],
        [refused, /unprivileged_userns_clone/],
        ['echo "bwrap: Can\'t create file at /x: No space left on device" >&2; exit 1', /Free some space/],
        ["exec /nowhere/bwrap", /nowhere/],
      ] as const
    ) {
      await set(script);
      const session = await api.call("POST /api/local/sessions", { worker_id: worker.id });
      await api.call(`POST /api/local/sessions/${session.id}/messages`, { content: "x" });
      await waitUntilQuiet(api);
      const [execution] = await api.call("GET /api/executions");
      expect([script, execution.status, execution.failure]).toEqual([script, "failed", "isolation"]);
      expect(execution.error).toMatch(words);
      expect(await exists(join(worker.work_dir, "ran")), script).toBe(false);
    }
  });
});

describe("a box that a worker cannot have is refused with the field", () => {
  it.each<[string, (paths: Record<string, string>) => object, RegExp]>([
    ["the data directory", ({ data = "" }) => ({ isolation: box({ read: [data] }) }), /data directory/],
    ["its parent", ({ data = "" }) => ({ isolation: box({ read: [join(data, "..")] }) }), /./],
    ["/", () => ({ isolation: box({ read: ["/"] }) }), /path of the system/],
    ["/proc", () => ({ isolation: box({ read: ["/proc/1"] }) }), /path of the system/],
    ["/tmp", () => ({ isolation: box({ write: ["/tmp"] }) }), /path of the system/],
    ["a home", () => ({ isolation: box({ write: ["/root"] }) }), /home|system/],
    ["/run", () => ({ isolation: box({ read: ["/run/dbus"] }) }), /path of the system/],
    [
      "a work directory in /usr",
      () => ({ isolation: "box", work_dir: "/usr/lib/work" }),
      /path of the system/,
    ],
    ["a work directory that is a home", () => ({ isolation: "box", work_dir: "/root" }), /home|system/],
    [
      "a work directory in another worker's",
      ({ other = "" }) => ({ isolation: "box", work_dir: join(other, "in") }),
      /another worker/,
    ],
    [
      "a work directory that holds another worker's",
      ({ other = "" }) => ({ isolation: "box", work_dir: join(other, "..") }),
      /another worker/,
    ],
    [
      "a link to the data directory",
      ({ link = "" }) => ({ isolation: box({ read: [link] }) }),
      /data directory/,
    ],
    ["an engine with a shared login", () => ({ isolation: "box", engine: "shared" }), /shared/],
    ["a relative path", () => ({ isolation: box({ read: ["x"] }) }), /absolute/],
    ["an unknown option", () => ({ isolation: { box: { colour: "red" } } }), /colour|isolation/],
  ])("%s", async (_, build, words) => {
    await using folder = await createTempDir();
    const dataDir = join(folder.path, "data");
    await using app = await openApp({
      dataDir,
      config: {
        isolation: { box: { ...BOX_SETTINGS.box, read: ["/"], write: ["/"] } },
        engines: { shared: { kind: "claude", state: "shared" } },
      },
    });
    const other = join(folder.path, "work", "other");
    await app.call("POST /api/workers", { name: "Other", work_dir: other });
    await Deno.symlink(dataDir, join(folder.path, "link"));
    const reply = await app.send("POST /api/workers", {
      name: "Ada",
      ...build({ data: dataDir, other, link: join(folder.path, "link") }),
    });
    expect([reply.status, JSON.stringify(reply.body)]).toEqual([400, expect.stringMatching(words)]);
  });

  it("a path or a network beyond the bounds of the configuration", async () => {
    await using app = await openApp({
      config: { isolation: { box: { read: ["/srv/docs"], max_network: "none" } } },
    });
    const send = (options: object) =>
      app.send("POST /api/workers", { name: "Ada", isolation: { box: options } });
    expect((await send({ read: ["/srv/other"] })).body.detail).toContain("isolation.box.read");
    expect((await send({ write: ["/srv/docs"] })).body.detail).toContain("isolation.box.write");
    expect((await send({ network: "host" })).body.detail).toContain("max_network");
    expect((await send({ read: ["/srv/docs/a"], network: "none" })).status).toBe(201);
  });

  it("a path that leads out of the bounds of the configuration [BOX-2]", async () => {
    await using folder = await createTempDir();
    const inside = join(folder.path, "inside");
    await Deno.mkdir(inside);
    await Deno.mkdir(join(folder.path, "outside"));
    await Deno.symlink(join(folder.path, "outside"), join(inside, "link"));
    await using app = await openApp({
      config: { isolation: { box: { read: [inside], write: [inside] } } },
    });
    for (const path of [`${inside}/../outside`, join(inside, "link"), join(inside, "link", "new")]) {
      for (const option of ["read", "write"]) {
        const isolation = { box: { [option]: [path] } };
        const { status, body } = await app.send("POST /api/workers", { name: "Ada", isolation });
        expect([path, status, body.detail]).toEqual([
          path,
          400,
          expect.stringContaining("not in isolation.box"),
        ]);
      }
    }
  });
});

const box = (options: object) => ({ box: options });

/** Builds a box with its directories in a folder, on the machine's network. */
function buildBox(folder: string, more: Partial<Box>): Box {
  const [workDir, runDir, home] = ["work", "runs/one", "home"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const stateDir = join(folder, "state", "worker", "engine");
  makeRunDir(runDir);
  for (const path of [workDir, home, stateDir]) Deno.mkdirSync(path, { recursive: true });
  const etc = join(folder, "etc");
  new BoxEtc(etc).refresh();
  return {
    ...{ workDir, runDir, home, etc, stateDir, network: "host", user: null },
    ...{
      read: [],
      messageFiles: [],
      readOnly: [],
      write: [],
      links: [],
      fixed: [],
      hidden: [],
      limits: {},
      total: {},
    },
    ...more,
  };
}

it("a worker that a run creates has the box of the run's worker", async () => {
  await using app = await openApp({ config: { engines: buildFakeEngines() } });
  const run = await startRun(app, ["*:*"]);
  const isolation = { box: { network: "none" } };
  await app.call(`PUT /api/workers/${run.workerId}`, { isolation });
  const made = await app.call("POST /api/workers", { name: "New" }, { authorization: `Bearer ${run.token}` });
  expect(made).toMatchObject({ isolation, isolation_effective: isolation });
  expect((await app.call(`GET /api/workers/${made.id}`)).isolation).toEqual(isolation);
});

describe("control groups of boxes", () => {
  it("are made in a delegated group of version 2 only, with the limits of the box and of all boxes", async () => {
    await using root = await createTempDir();
    const group = join(root.path, "sys/fs/cgroup/system.slice/svc.service");
    await Deno.mkdir(group, { recursive: true });
    await Deno.mkdir(join(root.path, "proc/self"), { recursive: true });
    await Deno.writeTextFile(join(root.path, "proc/self/cgroup"), "0::/system.slice/svc.service\n");
    expect(findDelegatedGroup(root.path)).toBeNull();
    await Deno.writeTextFile(join(group, "cgroup.controllers"), "cpu io memory pids\n");
    await Deno.writeTextFile(join(group, "cgroup.subtree_control"), "");
    await Deno.writeTextFile(join(group, "cgroup.procs"), "4711\n");
    expect(findDelegatedGroup(root.path)).toBe(group);
    const own = createBoxGroup(group, "one", { memory: "2G", cpu: 0.5 }, { pids: 9 });
    const read = (path: string) => Deno.readTextFile(path);
    expect(await Promise.all(["memory.max", "pids.max", "cpu.max"].map((name) => read(join(own, name)))))
      .toEqual(["2G", "max", "50000 100000"]);
    expect(await read(join(group, "boxes", "pids.max"))).toBe("9");
    expect(await read(join(group, "service", "cgroup.procs"))).toBe("4711");
    expect(await read(join(group, "cgroup.subtree_control"))).toBe("+memory +pids +cpu");
    await Deno.writeTextFile(join(root.path, "proc/self/cgroup"), "0::/system.slice/svc.service/service\n");
    expect(findDelegatedGroup(root.path)).toBe(group);
  });
});
