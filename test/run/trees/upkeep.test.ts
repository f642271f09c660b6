import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { packMirror } from "../../../src/files/git/mirror.ts";
import { World } from "../../harness/model/scenario.ts";
import { git, startGitServer } from "../../harness/service/git_server.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { openTreeApp } from "../../harness/service/tree_app.ts";
import { waitForValue } from "../../harness/wait.ts";

describe("worktrees over time (contract 26)", () => {
  it("an idle worktree goes, its branch stays, and the next run has it again", async () => {
    await using world = await openTreeApp({ config: { retention: { trees: "1s" } } });
    const run = await world.run("echo 1 > a");
    const { app } = world;
    await waitForValue(async () => {
      await app.runStage("trees");
      return (await world.findTree(run)).removed_at;
    });
    await expect(Deno.stat(world.getWorktree(run))).rejects.toThrow(Deno.errors.NotFound);
    expect(await git(world.getMirror(), "rev-parse", run.branch)).toBe(run.head_commit);
    const next = await world.run("cat a; git log --format=%H -1");
    expect(next.result).toBe(`1\n${run.head_commit}`);
    expect((await world.findTree(run)).removed_at).toBeNull();
  });

  it("many loose objects of a mirror become one pack, and worktrees keep those that no branch has [WSP-2]", async () => {
    await using world = await openTreeApp();
    await using folder = await createTempDir();
    const run = await world.run("echo 1 > a");
    const [mirror, worktree] = [world.getMirror(), world.getWorktree(run)];
    const files = Array.from({ length: 600 }, (_, n) => join(folder.path, `${n}`));
    for (const file of files) await Deno.writeTextFile(file, file);
    const blobs = (await git(mirror, "hash-object", "-w", ...files)).split("\n");
    await world.app.runStage("trees");
    const counts = await git(mirror, "count-objects", "-v");
    expect(Number(/^in-pack: (\d+)/m.exec(counts)?.[1])).toBeGreaterThanOrEqual(blobs.length);
    // The loose copies of packed objects go with the next packing.
    await packMirror(mirror, new AbortController().signal);
    expect(await git(mirror, "count-objects", "-v")).toMatch(/^count: 0$/m);
    for (const blob of blobs.slice(0, 3)) expect(await git(worktree, "cat-file", "-t", blob)).toBe("blob");
    expect(await world.run("cat a; echo 2 > b")).toMatchObject({ status: "completed", result: "1" });
  });

  it("beyond limits.max_tree_bytes no new worktree is made, and idle ones go early", async () => {
    await using world = await openTreeApp({ config: { limits: { max_tree_bytes: 1024 * 1024 } } });
    const big = await world.run("head -c 2000000 /dev/urandom > big");
    expect((await world.findTree(big)).bytes).toBeGreaterThan(2_000_000);
    expect(await world.run("true", "two")).toMatchObject({
      failure: "setup",
      error: expect.stringContaining("limits.max_tree_bytes is 1048576"),
    });
    await world.app.runStage("trees");
    expect(await world.run("true", "two")).toMatchObject({ status: "completed" });
  });

  it("a worktree whose changes were not taken over is never removed", async () => {
    await using world = await openTreeApp({ config: { retention: { trees: "1s" } } });
    const run = await world.run("echo 1 > a");
    await world.app.db.write([{ sql: "update tree set dirty = 1, updated_at = 0", args: [] }]);
    await world.app.runStage("trees");
    expect((await world.findTree(run)).removed_at).toBeNull();
    expect((await Deno.stat(world.getWorktree(run))).isDirectory).toBe(true);
  });

  it("a run whose agent cannot start leaves nothing that keeps the worktree or the worker", async () => {
    await using world = await openTreeApp();
    const { id } = world.ada;
    await world.app.call("PUT /api/secrets/key", { value: "hush-hush-hush", workers: [id] });
    await world.app.call(`PUT /api/workers/${id}`, { env: { KEY: "secret:key" } });
    await world.app.call("PUT /api/secrets/key", { workers: [] });
    const run = await world.run("true");
    expect(run).toMatchObject({ status: "failed", failure: "setup" });
    expect((await world.findTree(run)).dirty).toBe(false);
    expect((await world.app.send(`DELETE /api/workers/${id}`)).status).toBeLessThan(300);
  });

  it("a machine without the branch gets what was pushed", async () => {
    await using world = await openTreeApp({ repo: { push: "auto" } });
    const run = await world.run("echo 1 > a");
    await world.app.until("tree.pushed");
    await Deno.remove(join(world.app.dataDir, "trees", world.ada.id), { recursive: true });
    const next = await world.run("cat a; echo 2 > b");
    expect(next).toMatchObject({ result: "1", base_commit: run.head_commit, files_changed: 1 });
    await world.app.until("tree.pushed", 2);
    expect(await git(world.forge.dir, "rev-parse", run.branch)).toBe(next.head_commit);
  });

  it("the fleet file has the repository, and the secret knows its user", async () => {
    await using world = await openTreeApp({
      password: "ada:pass-word-of-ada",
      repo: { push: "ask", base: "main" },
    });
    const exported = await world.app.call("GET /api/fleet");
    expect(exported.workers).toEqual([
      {
        name: "Ada",
        repo: {
          ...{ url: world.forge.url, base: "main", credentials: "secret:forge" },
          ...{ per: "conversation", push: "ask" },
        },
      },
    ]);
    const again = await world.app.call("POST /api/fleet/plan", { fleet: exported, adopt: true });
    expect(again.changes.map(({ action }: { action: string }) => action)).toEqual(["adopt"]);
    const other = {
      ...exported,
      workers: [{ name: "Ada", repo: { url: "https://forge.example.org/x.git" } }],
    };
    const refused = await world.app.send("POST /api/fleet/plan", { fleet: other, adopt: true });
    expect([refused.status, refused.body.detail]).toEqual([
      400,
      expect.stringContaining("another repository"),
    ]);
    expect(await world.app.call("GET /api/secrets/forge")).toMatchObject({
      used_by: [`worker:${world.ada.id}`],
      workers: [world.ada.id],
    });
    await world.app.call("PUT /api/secrets/forge", { workers: [] });
    expect(await world.run("true")).toMatchObject({
      failure: "setup",
      error: expect.stringContaining("may not use the secret"),
    });
  });

  it("no run sets a repository, and it sees no secret's name", async () => {
    await using world = await openTreeApp({ password: "ada:pass-word-of-ada" });
    const { token } = await world.app.call("POST /api/tokens", {
      name: "viewer",
      scopes: ["read:*", "write:workers"],
    });
    const headers = { authorization: `Bearer ${token}` };
    const seen = await world.app.call(`GET /api/workers/${world.ada.id}`, undefined, headers);
    expect(seen.repo).toEqual({ url: world.forge.url, per: "conversation", push: "never" });
    // A client may send back what it got.
    await world.app.call(`PUT /api/workers/${world.ada.id}`, { repo: seen.repo }, headers);
    const refused = await world.app.send(
      `PUT /api/workers/${world.ada.id}`,
      { repo: { ...seen.repo, push: "auto" } },
      headers,
    );
    expect([refused.status, refused.body.required_scope]).toEqual([403, "write:commands"]);
  });

  it("without git a run says so, and so does doctor", async () => {
    await using folder = await createTempDir();
    await using forge = await startGitServer({ dir: folder.path });
    const programs = join(folder.path, "bin");
    await Deno.mkdir(programs);
    for (const name of ["sh", "cat", "sed", "grep", "setsid", "nice", "unshare", "setpriv"]) {
      await Deno.symlink(`/usr/bin/${name}`, join(programs, name)).catch(() => {});
    }
    await using world = await World.serve({ env: { PATH: programs } });
    const { api } = world;
    const worker = await api.call("POST /api/workers", { name: "Ada", repo: { url: forge.url } });
    const body = { message_id: "m", worker_id: worker.id, instruction: "ok", type: "immediate" };
    const { id } = await api.call("POST /api/tasks", body);
    const task = await api.call(`GET /api/tasks/${id}/wait?timeout_ms=20000`);
    expect(task.reason).toBe(
      "setup: Cannot prepare the worktree: git is not installed on the service's machine.",
    );
    const { checks } = await api.call("GET /api/system/doctor");
    expect(checks.find(({ name }: { name: string }) => name === "git")).toMatchObject({
      status: "fail",
      detail: "git is not installed; workers with a repository: 1",
    });
  });
});
