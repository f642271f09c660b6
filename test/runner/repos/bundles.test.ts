import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import type { Json } from "../../harness/service/client.ts";
import { git } from "../../harness/service/git_server.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { createFakeRunner, FakeRunner, waitUntilLost } from "../../harness/service/runner.ts";
import { createScriptTask, openTreeApp } from "../../harness/service/tree_app.ts";

vi.setConfig({ testTimeout: 120_000 });

type World = Awaited<ReturnType<typeof openTreeApp>>;

/** A runner of requests with a run, whose branch is checked out in `dir`. */
async function openRun(world: World, folder: string) {
  const runner = await createFakeRunner(world.app);
  await createScriptTask(world.app, world.ada.id, { script: "work", conversation: "one" });
  const order = (await runner.claim({ repo: true })).body.run;
  const { execution: { execution_id: id }, repo: { branch } } = order;
  const dir = join(folder, "clone");
  const path = `${world.app.url}/api/runs/${id}/repo`;
  const headers = { authorization: `Bearer ${runner.token}` };
  const download = await fetch(path, { headers });
  expect(download.status).toBe(200);
  await Deno.writeFile(join(folder, "branch"), new Uint8Array(await download.arrayBuffer()));
  await git(folder, "clone", "-q", "-b", branch, "branch", dir);
  const before = await git(dir, "rev-parse", "HEAD");
  const put = async (
    bytes: Uint8Array,
    { offset = 0, size = bytes.length, epoch = 1, token = runner.token } = {},
  ) => {
    const response = await fetch(`${path}?epoch=${epoch}&offset=${offset}&size=${size}`, {
      method: "PUT",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/octet-stream" },
      body: bytes as Uint8Array<ArrayBuffer>,
    });
    return { status: response.status, body: await response.json() as Json };
  };
  const commit = async (name: string, text: string) => {
    await Deno.writeTextFile(join(dir, name), text);
    await git(dir, "add", "-A");
    await git(dir, "commit", "-qm", name);
    return await git(dir, "rev-parse", "HEAD");
  };
  const bundle = async (...refs: string[]) => {
    await git(dir, "bundle", "create", "-q", "../commits", `^${before}`, ...refs);
    return await Deno.readFile(join(folder, "commits"));
  };
  return {
    ...{ runner, id, branch, dir, before, put, commit, bundle, headers, path },
    getTip: () => git(world.getMirror(), "rev-parse", branch),
  };
}

const find = (world: World, id: string): Promise<Json> => world.app.call(`GET /api/executions/${id}`);

/** Lists what a refused or an ended upload must not leave. */
async function listLeftovers(world: World): Promise<string[]> {
  const top = join(world.app.dataDir, "trees", world.ada.id);
  const packs = await Array.fromAsync(Deno.readDir(join(top, "mirror.git/objects/pack")));
  return [...(await Array.fromAsync(Deno.readDir(top))), ...packs].map(({ name }) => name)
    .filter((name) => /^(sent-|\.new|tmp_)/.test(name));
}

describe("the commits of a run on a runner (contract 33.11)", () => {
  it("arrive in parts that may be repeated, and move the branch once with the end of the run", async () => {
    await using folder = await createTempDir();
    await using world = await openTreeApp({ worker: { runs_on: ["x"], engine: "echo" } });
    const run = await openRun(world, folder.path);
    const head = await run.commit("a", "1\n");
    const bytes = await run.bundle(run.branch);
    const [half, size] = [Math.floor(bytes.length / 2), bytes.length];
    expect((await run.put(bytes.slice(half), { offset: half, size })).body).toEqual({ size: 0 });
    for (let times = 0; times < 2; times++) {
      expect((await run.put(bytes.slice(0, half), { size })).body).toEqual({ size: half });
    }
    expect(await run.getTip()).toBe(run.before);
    for (let times = 0; times < 3; times++) {
      expect((await run.put(bytes.slice(half), { offset: half, size })).body).toEqual({ size });
    }
    expect(await run.getTip()).toBe(run.before);
    expect((await find(world, run.id)).head_commit).toBe("");
    for (let times = 0; times < 2; times++) expect((await run.runner.end(run.id)).status).toBe(200);
    expect(await run.getTip()).toBe(head);
    expect(await find(world, run.id)).toMatchObject({
      ...{ base_commit: run.before, head_commit: head, files_changed: 1, insertions: 1, branch: run.branch },
    });
    expect(await listLeftovers(world)).toEqual([]);
    expect((await run.put(bytes)).status).toBe(409);
    expect((await fetch(run.path, { headers: run.headers })).status).toBe(409);
  });

  it("are refused for another ref, for other history, and for missing or malformed objects, and change nothing", async () => {
    await using folder = await createTempDir();
    await using world = await openTreeApp({ worker: { runs_on: ["x"], engine: "echo" } });
    const run = await openRun(world, folder.path);
    const head = await run.commit("a", "1\n");
    await run.commit("b", "2\n");
    const ref = `refs/heads/${run.branch}`;
    await git(run.dir, "branch", "other");
    const good = await run.bundle(run.branch);
    const text = (bytes: Uint8Array) => new TextDecoder("latin1").decode(bytes);
    const join_ = (header: string, bytes: Uint8Array) => {
      const pack = bytes.slice(text(bytes).indexOf("\n\n") + 2);
      return new Uint8Array([...new TextEncoder().encode(header), ...pack]);
    };
    const tip = await git(run.dir, "rev-parse", "HEAD");
    const makeTree = async (entry: string) => {
      const hash = async (type: string, bytes: Uint8Array) => {
        await Deno.writeFile(join(folder.path, "object"), bytes);
        return await git(run.dir, "hash-object", "--literally", "-t", type, "-w", "../object");
      };
      const blob = await hash("blob", new TextEncoder().encode("x"));
      const id = new Uint8Array(blob.match(/../g)?.map((hex) => parseInt(hex, 16)) ?? []);
      const tree = await hash(
        "tree",
        new Uint8Array([...new TextEncoder().encode(`100644 ${entry}\0`), ...id]),
      );
      const commit = await git(run.dir, "commit-tree", tree, "-p", run.before, "-m", "bad");
      await git(run.dir, "update-ref", ref, commit);
      const bytes = await run.bundle(ref);
      await git(run.dir, "update-ref", ref, tip);
      return bytes;
    };
    const root = await git(run.dir, "commit-tree", `${head}^{tree}`, "-m", "root");
    await git(run.dir, "update-ref", "refs/heads/root", root);
    const cases: [string, Uint8Array, RegExp][] = [
      ["another ref", await run.bundle("other"), /no other ref/],
      ["two refs", await run.bundle(ref, "other"), /no other ref/],
      ["a ref outside", join_(`# v2 git bundle\n${tip} ../../${ref}\n\n`, good), /no other ref/],
      [
        "many refs",
        join_(`# v2 git bundle\n${`${tip} ${ref}\n`.repeat(5_000)}\n\n`, good),
        /version 2|no other ref/,
      ],
      ["no bundle", new TextEncoder().encode("hello"), /no bundle of version 2/],
      ["version 3", join_(`# v3 git bundle\n@filter=blob:none\n${tip} ${ref}\n\n`, good), /version 2/],
      [
        "an unknown commit",
        join_(`# v2 git bundle\n${"1".repeat(40)} ${ref}\n\n`, good),
        /follow the branch/,
      ],
      [
        "a commit that does not follow",
        join_(`# v2 git bundle\n${root} ${ref}\n\n`, await run.bundle("root")),
        /follow/,
      ],
      ["a cut pack", good.slice(0, -30), /cut off/],
      ["a changed pack", good.map((byte, at) => at === good.length - 40 ? byte ^ 1 : byte), /git failed/],
      ["a name ..", await makeTree(".."), /git failed.*hasDotdot/],
      ["a name .git", await makeTree(".git"), /git failed.*hasDotgit/],
    ];
    // The tip is whole, but the commit before it is missing.
    await Deno.writeTextFile(join(folder.path, "list"), `${tip}\n`);
    const packed = await new Deno.Command("sh", {
      args: ["-c", `git pack-objects -q --stdout < ../list`],
      cwd: run.dir,
    }).output();
    const header = new TextEncoder().encode(`# v2 git bundle\n${tip} ${ref}\n\n`);
    cases.push([
      "a missing commit",
      new Uint8Array([...header, ...packed.stdout]),
      /follow the branch|git failed/,
    ]);
    for (const [name, bytes, words] of cases) {
      const { status, body } = await run.put(bytes);
      expect([name, status, body.detail]).toEqual([name, 400, expect.stringMatching(words)]);
      expect([name, await listLeftovers(world)]).toEqual([name, []]);
    }
    expect((await run.put(good, { size: 256 * 1024 * 1024 + 1 })).status).toBe(413);
    expect((await run.put(good, { size: 10 })).status).toBe(400);
    expect(await run.getTip()).toBe(run.before);
    // No refused bundle left an object.
    await expect(git(world.getMirror(), "cat-file", "-e", tip)).rejects.toThrow();
    expect((await run.put(good)).body).toEqual({ size: good.length });
    expect((await run.runner.end(run.id)).status).toBe(200);
    expect(await run.getTip()).toBe(tip);
  });

  it("of a runner that lost the run, or of another runner, are refused, also after they arrived", async () => {
    await using folder = await createTempDir();
    await using world = await openTreeApp({ worker: { runs_on: ["x"], engine: "echo" } });
    const run = await openRun(world, folder.path);
    await run.commit("a", "1\n");
    const bytes = await run.bundle(run.branch);
    const stranger = await createFakeRunner(world.app, "r2");
    expect((await run.put(bytes, { token: stranger.token })).status).toBe(409);
    expect((await fetch(run.path, { headers: { authorization: `Bearer ${stranger.token}` } })).status).toBe(
      409,
    );
    expect((await run.put(bytes, { epoch: 2 })).status).toBe(409);
    expect((await run.put(bytes)).status).toBe(200);
    // The next process of this runner has its place, so the run is lost.
    const next = new FakeRunner(world.app, run.runner.token, run.runner.place);
    const again = (await next.claim({ repo: true })).body.run;
    await waitUntilLost(world.app, run.id);
    expect((await run.put(bytes)).status).toBe(409);
    expect((await run.runner.end(run.id)).status).toBe(409);
    expect(await run.getTip()).toBe(run.before);
    const order = again ?? (await next.claim({ repo: true })).body.run;
    const id = order.execution.execution_id;
    expect([id === run.id, order.repo.branch]).toEqual([false, run.branch]);
    const path = `${world.app.url}/api/runs/${id}/repo`;
    const bundle = await fetch(path, { headers: run.headers });
    expect(new TextDecoder("latin1").decode(await bundle.arrayBuffer())).toContain(
      `${run.before} refs/heads/${run.branch}\n`,
    );
    expect((await next.end(id)).status).toBe(200);
    expect(await find(world, id)).toMatchObject({
      base_commit: run.before,
      head_commit: run.before,
      files_changed: 0,
    });
  });
});
