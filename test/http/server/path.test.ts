import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROUTES } from "../../../src/http/app.ts";
import type { AnyRoute } from "../../../src/http/route.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { createTask } from "../../harness/service/runner.ts";
import { fetchAs, upload } from "../requests.ts";
import { waitUntil } from "../../harness/wait.ts";

const SESSIONS = "/api/local/sessions";

describe("media_path (interface 8) [PTH-1]", () => {
  it("accepts every path to a file of the session's upload directory, and no other path [PTH-1]", async () => {
    await using app = await openApp({
      inMemory: true,
      config: { limits: { max_waiting_messages: 1_000 } },
    });
    const [one, two] = [await app.call(`POST ${SESSIONS}`), await app.call(`POST ${SESSIONS}`)];
    const own = await upload(app, one.id, "own");
    const foreign = await upload(app, two.id, "foreign");
    const { uploads, root, secretKey } = app.server.parts.paths;
    const folder = join(uploads, one.id);
    const outside = await Deno.makeTempDir({ prefix: "svc-test-outside-" });
    await Deno.writeTextFile(join(outside, "secret"), "secret");
    const inside = (name: string) => join(folder, name);
    await Deno.symlink(join(outside, "secret"), inside("link"));
    await Deno.symlink(outside, inside("folder-link"));
    await Deno.symlink(join(uploads, two.id), inside("neighbour"));
    await Deno.symlink(inside("link"), inside("link-to-link"));
    await Deno.symlink(inside("loop-b"), inside("loop-a"));
    await Deno.symlink(inside("loop-a"), inside("loop-b"));
    await Deno.symlink("/proc/self/environ", inside("environ"));
    await Deno.symlink("/dev/zero", inside("zero"));
    await Deno.symlink("/no/such/file", inside("dangling"));
    await Deno.link(join(outside, "secret"), inside("hard"));
    await Deno.link(foreign.path, inside("hard-foreign"));
    await Deno.mkdir(inside("folder"));
    await new Deno.Command("mkfifo", { args: [inside("pipe")] }).output();
    await Deno.writeTextFile(inside(".x.part"), "half");
    await Deno.mkdir(`${folder}0`);
    await Deno.writeTextFile(`${folder}0/x`, "prefix");
    await Deno.writeTextFile(`${folder}.txt`, "prefix");
    const up = "../".repeat(20);
    const refused = [
      foreign.path,
      join(outside, "secret"),
      folder,
      `${folder}/`,
      `${folder}/.`,
      `${folder}/..`,
      uploads,
      root,
      secretKey,
      inside("link"),
      inside("folder-link"),
      inside("folder-link/secret"),
      inside(`neighbour/${foreign.name}`),
      inside("link-to-link"),
      inside("loop-a"),
      inside("environ"),
      inside("zero"),
      inside("dangling"),
      inside("hard"),
      inside("hard-foreign"),
      inside("folder"),
      inside("pipe"),
      inside(".x.part"),
      inside("none"),
      `${folder}0/x`,
      `${folder}.txt`,
      `${folder}/../${two.id}/${foreign.name}`,
      `${folder}/${up}etc/passwd`,
      `${folder}/../../secret.key`,
      `${folder}/folder/../../${two.id}/${foreign.name}`,
      `${folder}/folder-link/../${own.name}`,
      own.name,
      `./${own.name}`,
      `${one.id}/${own.name}`,
      `uploads/${one.id}/${own.name}`,
      `~/${own.name}`,
      `${own.path}\0`,
      `${own.path}\0.txt`,
      `\0${own.path}`,
      `${own.path}/`,
      `${own.path}/.`,
      `${own.path}/x`,
      ` ${own.path}`,
      `${own.path} `,
      `${own.path}\n`,
      own.path.replaceAll("/", "%2f"),
      own.path.replaceAll("/", "\\"),
      own.path.replace("/uploads/", "/%75ploads/"),
      own.path.toUpperCase(),
      own.path.replace(one.id, one.id.toUpperCase()),
      `file://${own.path}`,
      `http://127.0.0.1${own.path}`,
      "/dev/null",
      "/dev/stdin",
      "/proc/self/mem",
      "/proc/self/fd/0",
      "/etc/passwd",
      "file:///etc/passwd",
      "\\\\host\\share\\x",
      "C:\\x",
      "/",
      ".",
      "..",
      "~",
      "-",
      "",
      "x".repeat(5_000),
      `/${"a/".repeat(2_000)}`,
    ];
    expect(refused.length).toBeGreaterThanOrEqual(60);
    const send = (media_path: unknown) =>
      app.send(`POST ${SESSIONS}/${one.id}/messages`, { content: "", media_path });
    for (const path of refused) {
      const reply = await send(path);
      expect([path.slice(-60), reply.status, reply.body.code]).toEqual([
        path.slice(-60),
        400,
        "invalid_request",
      ]);
    }
    for (const odd of [1, null, {}, [own.path], true]) expect((await send(odd)).status).toBe(400);
    const accepted = [
      own.path,
      `${folder}/./${own.name}`,
      `${folder}//${own.name}`,
      `${folder}/folder/../${own.name}`,
    ];
    for (const path of accepted) {
      expect([path, (await send(path)).status]).toEqual([path, 202]);
    }
    const [first] = await app.call(`GET ${SESSIONS}/${one.id}/messages`);
    expect(first).toMatchObject({ content: "", media: own });
    const names = [
      "link",
      "hard",
      "hard-foreign",
      "folder",
      "pipe",
      ".x.part",
      "zero",
      "..",
      ".",
      "x\0",
      "%2e%2e",
      "..%2f..%2fsecret.key",
      foreign.name,
      `../${two.id}/${foreign.name}`,
    ];
    for (const name of names) {
      const reply = await app.send(`GET ${SESSIONS}/${one.id}/media/${encodeURIComponent(name)}`);
      expect([name, reply.status]).toEqual([name, 404]);
    }
    await Deno.remove(outside, { recursive: true });
  });
});

describe("DELETE with delete_work_dir (contract 3) [PTH-3]", () => {
  it("deletes only the worker's own directory, whatever its path [PTH-3]", async () => {
    await using app = await openApp({ inMemory: true });
    await using folder = await createTempDir();
    const base = folder.path;
    const home = Deno.env.get("HOME") ?? "/root";
    const { root } = app.server.parts.paths;
    await Deno.mkdir(join(base, "outer/inner"), { recursive: true });
    await Deno.mkdir(join(base, "home/canary"), { recursive: true });
    const links = { home, root: "/", data: root, etc: "/etc", outer: join(base, "outer") };
    for (const [name, target] of Object.entries(links)) await Deno.symlink(target, join(base, `to-${name}`));
    const canaries = [join(base, "outer/inner/canary"), join(base, "outer/canary")];
    for (const canary of canaries) await Deno.writeTextFile(canary, "alive");
    const make = async (work_dir: string): Promise<string> =>
      (await app.call("POST /api/workers", { name: "w", work_dir })).id;
    await make(join(base, "outer/inner"));
    const guarded = [
      "/",
      "//",
      "/.",
      "/tmp/..",
      home,
      `${home}/`,
      `${home}/.`,
      join(home, ".."),
      "/root",
      "/home",
      "/home/somebody",
      "/etc",
      "/usr",
      "/usr/local",
      "/usr/bin",
      "/var",
      "/var/lib",
      "/bin",
      "/boot",
      "/dev",
      "/dev/shm",
      "/proc",
      "/proc/self",
      "/sys",
      "/run",
      "/tmp",
      "/opt",
      "/srv",
      "/mnt",
      "/lib",
      "/sbin",
      join(root, ".."),
      join(base, "outer"),
      `${base}/outer/`,
      join(base, "outer/inner/deeper"),
      base,
      join(base, "to-home"),
      join(base, "to-root"),
      join(base, "to-etc"),
      join(base, "to-outer"),
      join(base, "to-outer/inner"),
    ];
    expect(guarded.length).toBeGreaterThanOrEqual(30);
    for (const dir of guarded) {
      const id = await make(dir);
      const reply = await app.send(`DELETE /api/workers/${id}?delete_work_dir=true`);
      expect([dir, reply.status, reply.body.code]).toEqual([dir, 409, "conflict"]);
      expect((await app.send(`GET /api/workers/${id}`)).status).toBe(200);
      await app.call(`DELETE /api/workers/${id}`);
    }
    for (const canary of canaries) expect(await Deno.readTextFile(canary)).toBe("alive");
    expect((await Deno.stat("/etc/passwd")).isFile).toBe(true);

    // Only the link is removed, not its target.
    await Deno.mkdir(join(base, "target"));
    await Deno.writeTextFile(join(base, "target/canary"), "alive");
    await Deno.symlink(join(base, "target"), join(base, "link"));
    await Deno.mkdir(join(base, "own"));
    await Deno.symlink(join(base, "target"), join(base, "own/link"));
    for (const dir of ["link", "own", "deep/er/still", "file", "ünïcode dir", "-rf"]) {
      const id = await make(join(base, dir));
      // An agent replaced its directory with a file.
      if (dir === "file") {
        await Deno.remove(join(base, dir));
        await Deno.writeTextFile(join(base, dir), "x");
      }
      expect([dir, (await app.send(`DELETE /api/workers/${id}?delete_work_dir=true`)).status]).toEqual([
        dir,
        200,
      ]);
      await expect(Deno.lstat(join(base, dir)), dir).rejects.toThrow();
    }
    expect(await Deno.readTextFile(join(base, "target/canary"))).toBe("alive");
  });

  it.skipIf(Deno.uid() !== 0)(
    "deletes neither a mount point nor a directory with a mount [PTH-3]",
    async () => {
      await using folder = await createTempDir();
      const [source, dir] = [join(folder.path, "source"), join(folder.path, "dir")];
      await Deno.mkdir(source);
      await Deno.mkdir(join(dir, "deep/bound"), { recursive: true });
      await Deno.writeTextFile(join(source, "canary"), "alive");
      const bind = ["--bind", source, join(dir, "deep/bound")];
      if (!(await new Deno.Command("mount", { args: bind, stderr: "null" }).output()).success) return;
      try {
        await using app = await openApp({ inMemory: true });
        for (const work_dir of [dir, join(dir, "deep/bound")]) {
          const { id } = await app.call("POST /api/workers", { name: "w", work_dir });
          expect((await app.send(`DELETE /api/workers/${id}?delete_work_dir=true`)).status).toBe(409);
        }
        expect(await Deno.readTextFile(join(source, "canary"))).toBe("alive");
      } finally {
        await new Deno.Command("umount", { args: [join(dir, "deep/bound")] }).output();
      }
    },
  );

  it("does not delete a directory that other users can replace [PTH-3]", async () => {
    await using app = await openApp({ inMemory: true });
    await using folder = await createTempDir();
    const work_dir = join(folder.path, "open/dir");
    const { id } = await app.call("POST /api/workers", { name: "w", work_dir });
    await Deno.chmod(join(folder.path, "open"), 0o777);
    const reply = await app.send(`DELETE /api/workers/${id}?delete_work_dir=true`);
    expect([reply.status, reply.body.detail]).toEqual([
      409,
      expect.stringContaining("other users can replace it"),
    ]);
    expect((await Deno.stat(work_dir)).isDirectory).toBe(true);
  });

  it("deletes nothing when a dying agent replaces a parent directory with a link [PTH-3]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await using folder = await createTempDir();
    const parent = join(folder.path, "mine");
    await Deno.mkdir(`${parent}.other/dir`, { recursive: true });
    await Deno.writeTextFile(`${parent}.other/dir/canary`, "alive");
    const { id } = await app.call("POST /api/workers", { name: "Ada", work_dir: join(parent, "dir") });
    await createTask(app, id, `swap-parent ${parent}`);
    await waitUntil(
      "the agent is ready",
      async () => (await Deno.lstat(`${parent}.ready`).catch(() => null)) !== null,
    );
    const reply = await app.send(`DELETE /api/workers/${id}?delete_work_dir=true`);
    expect((await Deno.lstat(parent)).isSymlink).toBe(true);
    expect(await Deno.readTextFile(join(parent, "dir/canary"))).toBe("alive");
    expect([reply.status, reply.body.detail]).toEqual([409, expect.stringContaining("was replaced")]);
    expect((await app.send(`GET /api/workers/${id}`)).status).toBe(404);
  });
});

describe("a work directory in the service's own data [PTH-4]", () => {
  it("is refused at creation, cannot be set by an update, and is checked before a run [PTH-4]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await using folder = await createTempDir();
    const { root, workers, uploads, logs, secretKey } = app.server.parts.paths;
    await Deno.symlink(root, join(folder.path, "to-data"));
    await Deno.symlink(workers, join(folder.path, "to-workers"));
    const refused = [
      root,
      `${root}/`,
      `${root}/.`,
      `${root}/x`,
      workers,
      uploads,
      logs,
      secretKey,
      join(root, "svc.db"),
      join(root, "bin"),
      `${root}/workers/../uploads/x`,
      `${workers}/..`,
      join(folder.path, "to-data"),
      join(folder.path, "to-data/logs"),
      join(folder.path, "to-data/new/deep"),
      join(folder.path, "to-workers"),
    ];
    for (const work_dir of refused) {
      const reply = await app.send("POST /api/workers", { name: "w", work_dir });
      expect([work_dir, reply.status, reply.body.errors?.[0]?.path]).toEqual([work_dir, 400, "work_dir"]);
    }
    await app.call("POST /api/workers", { name: "w", work_dir: join(workers, "own") });
    const { id } = await app.call("POST /api/workers", { name: "w", work_dir: join(folder.path, "fine") });
    for (const work_dir of refused) {
      expect((await app.send(`PUT /api/workers/${id}`, { work_dir })).status).toBe(400);
    }

    // The agent replaces the directory with a link.
    await Deno.remove(join(folder.path, "fine"));
    await Deno.symlink(root, join(folder.path, "fine"));
    await createTask(app, id, "touch evil");
    await app.settle();
    for (const execution of await app.call("GET /api/executions")) {
      expect(execution).toMatchObject({
        status: "failed",
        failure: "spawn_failed",
        error: expect.stringContaining("data directory"),
      });
    }
    await expect(Deno.stat(join(root, "evil"))).rejects.toThrow();
  });
});

describe("ids in paths [PTH-5]", () => {
  it("are 404 unless well-formed, on every route, before any query or file access [PTH-5]", async () => {
    await using app = await openApp();
    const odd = [
      "1",
      "0",
      "-1",
      "null",
      "undefined",
      "true",
      "*",
      "%25",
      "%00",
      "%2e%2e%2f%2e%2e%2fsecret.key",
      "..%2f..%2fetc%2fpasswd",
      "..%5c..%5cwindows",
      "%2fetc%2fpasswd",
      "x'%20or%20'1'='1",
      "1;drop%20table%20task",
      "%F0%9F%91%BB",
      "%ff",
      "%",
      "x".repeat(500),
      "01a1fd23-4a4c-746f-99ac-8860e264116",
      "01a1fd23-4a4c-746f-99ac-8860e26411680",
      "01a1fd23-4a4c-046f-99ac-8860e2641168",
      "01a1fd23-4a4c-746f-99ac-8860e2641168.log",
      "01a1fd23-4a4c-746f-99ac-8860e2641168%00",
      "%2001a1fd23-4a4c-746f-99ac-8860e2641168",
      "{01a1fd23-4a4c-746f-99ac-8860e2641168}",
      "__proto__",
      "constructor",
    ];
    let tried = 0;
    for (
      const { method, path, access } of (ROUTES as readonly AnyRoute[]).filter((route) =>
        /\/:(id|worker_id)\b/.test(route.path)
      )
    ) {
      for (const id of odd) {
        // A department or message may have any name, and none exists.
        const url = path.replace(/:\w+/g, id) + (path.includes("contexts") ? "?session_key=k" : "");
        const response = await fetchAs(app, `${method} ${url}`, {
          headers: { "content-type": "application/json" },
          ...(method === "GET" || method === "DELETE" ? {} : { body: "{}" }),
        });
        const text = await response.text();
        // Bodies are validated before the object is read.
        // Routes of runners, and those of the engine of a run, refuse other callers first.
        const isOfRuns = access === "write:runs" || path.startsWith("/api/approvals/");
        const expected = isOfRuns
          ? [403, 404]
          : method === "PUT" || method === "POST"
          ? [400, 404, 415]
          : [404];
        expect(expected, `${method} ${url} ${text}`).toContain(response.status);
        expect(text).not.toMatch(/os error|SQLITE|no such table|\.ts:/);
        tried++;
      }
    }
    expect(tried).toBeGreaterThan(500);
  });
});
