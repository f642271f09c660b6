import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildGitEnv, findGitVersion, readGit, runGit } from "../../../src/files/git/git.ts";
import { describeGitFailure } from "../../../src/files/git/git_error.ts";
import {
  buildRemoteOptions,
  fetchRefs,
  findDefaultBranch,
  listRemoteRefs,
  pushBranch,
} from "../../../src/files/git/remote.ts";
import { git, startGitServer } from "../../harness/service/git_server.ts";
import { createTempDir } from "../../harness/service/process.ts";

const KEY = "ada:s3cret-token";

async function createBare(dir: string): Promise<string> {
  const bare = join(dir, "own.git");
  await runGit({ args: ["init", "-q", "--bare", bare] });
  return bare;
}

describe("git of the service (contract 26)", () => {
  it("fetches and pushes with credentials that appear in no argument and no file", async () => {
    await using folder = await createTempDir();
    await using server = await startGitServer({ dir: folder.path, password: KEY });
    const remote = { address: server.url, credentials: KEY };
    const bare = await createBare(folder.path);
    expect(await findDefaultBranch(remote)).toBe("main");
    await fetchRefs(bare, remote, ["refs/heads/main:refs/remotes/origin/main"]);
    const main = await readGit({ args: ["rev-parse", "refs/remotes/origin/main"], gitDir: bare });
    const branch = { branch: "svc/ada/1", commit: main, expected: "" };
    await pushBranch(bare, remote, branch);
    expect(await listRemoteRefs(remote, ["refs/heads/svc/*"])).toEqual(
      new Map([["refs/heads/svc/ada/1", main]]),
    );
    expect(JSON.stringify(buildRemoteOptions(remote).config)).not.toContain("s3cret");
    expect(await git(bare, "config", "--list", "--local")).not.toMatch(/s3cret|ada/);
  });

  it("names a refused password, and never sends it to another address", async () => {
    await using folder = await createTempDir();
    await using server = await startGitServer({ dir: folder.path, password: KEY });
    const wrong = { address: server.url, credentials: "ada:wrong" };
    await expect(findDefaultBranch(wrong)).rejects.toMatchObject({ failure: "denied" });
    await expect(findDefaultBranch({ ...wrong, credentials: null })).rejects.toMatchObject({
      failure: "denied",
      message: expect.not.stringContaining("wrong"),
    });
    const { config } = buildRemoteOptions({ address: "https://forge.example/x", credentials: KEY });
    expect(config[0]).toMatch(/^credential\.https:\/\/forge\.example\.helper=/);
  });

  it("names an unknown repository, branch and host", async () => {
    await using folder = await createTempDir();
    await using server = await startGitServer({ dir: folder.path });
    const bare = await createBare(folder.path);
    const remote = { address: server.url, credentials: null };
    await expect(fetchRefs(bare, remote, ["refs/heads/gone:refs/x"])).rejects.toMatchObject({
      failure: "unknown_ref",
    });
    const other = server.url.replace("project", "other");
    await expect(findDefaultBranch({ ...remote, address: other })).rejects.toMatchObject({
      failure: "not_found",
    });
    const closed = { ...remote, address: "http://127.0.0.1:9/x.git" };
    await expect(findDefaultBranch(closed)).rejects.toMatchObject({ failure: "network" });
    await expect(findDefaultBranch({ ...remote, address: join(folder.path, "none") })).rejects
      .toMatchObject({ failure: "not_found" });
  });

  it("refuses a push over commits that it has not seen", async () => {
    await using folder = await createTempDir();
    await using server = await startGitServer({ dir: folder.path });
    const remote = { address: server.url, credentials: null };
    const bare = await createBare(folder.path);
    await fetchRefs(bare, remote, ["refs/heads/main:refs/heads/main"]);
    const main = await readGit({ args: ["rev-parse", "main"], gitDir: bare });
    await server.commit("svc/ada/1", { "other.txt": "x" }, main);
    await expect(pushBranch(bare, remote, { branch: "svc/ada/1", commit: main, expected: "" })).rejects
      .toMatchObject({ failure: "exists" });
  });

  it("uses http for loopback only, and no other protocol", async () => {
    const far = { address: "http://forge.example/x.git", credentials: null };
    await expect(findDefaultBranch(far)).rejects.toMatchObject({ message: /'http' not allowed/ });
    const odd = { address: "ext::sh -c 'echo no'", credentials: null };
    await expect(findDefaultBranch(odd)).rejects.toMatchObject({ message: /'ext' not allowed/ });
  });

  it("uses no configuration of the account or of the machine", async () => {
    await using folder = await createTempDir();
    await Deno.writeTextFile(join(folder.path, ".gitconfig"), "[user]\n\tname = Someone\n");
    const env = buildGitEnv({ HOME: folder.path, PATH: "/bin", GIT_DIR: "/x", HTTPS_PROXY: "http://p:1" });
    expect(env).toMatchObject({ HOME: "/nonexistent", PATH: "/bin", HTTPS_PROXY: "http://p:1" });
    expect(env).not.toHaveProperty("GIT_DIR");
    expect(await readGit({ args: ["config", "--get", "user.name"], codes: [1] })).toBe("");
  });

  it("runs no hook of the repository", async () => {
    await using folder = await createTempDir();
    const bare = await createBare(folder.path);
    const proof = join(folder.path, "ran");
    for (const name of ["reference-transaction", "post-index-change"]) {
      await Deno.writeTextFile(join(bare, "hooks", name), `#!/bin/sh\ntouch ${proof}\n`, { mode: 0o755 });
    }
    const tree = await readGit({
      args: ["hash-object", "-t", "tree", "-w", "--stdin"],
      gitDir: bare,
      stdin: "",
    });
    const env = {
      GIT_AUTHOR_NAME: "a",
      GIT_AUTHOR_EMAIL: "a@b",
      GIT_COMMITTER_NAME: "a",
      GIT_COMMITTER_EMAIL: "a@b",
    };
    const commit = await readGit({ args: ["commit-tree", "-m", "x", tree], gitDir: bare, env });
    await runGit({ args: ["update-ref", "refs/heads/x", commit], gitDir: bare });
    await expect(Deno.stat(proof)).rejects.toThrow(Deno.errors.NotFound);
  });

  it("cuts long output, and ends a command that takes too long", async () => {
    await using folder = await createTempDir();
    const bare = await createBare(folder.path);
    await Deno.writeTextFile(join(folder.path, "big"), "x".repeat(300_000));
    const id = await readGit({ args: ["hash-object", "-w", join(folder.path, "big")], gitDir: bare });
    const cut = await runGit({ args: ["cat-file", "blob", id], gitDir: bare, outputMaxBytes: 1_000 });
    expect(cut).toMatchObject({ isCut: true, stdout: { length: 1_000 } });
    await using server = await startGitServer({ dir: folder.path });
    server.refuse = { status: 500, delayMs: 1_000 };
    const remote = { address: server.url, credentials: null };
    await expect(findDefaultBranch(remote, { timeoutMs: 300 })).rejects.toMatchObject({ failure: "timeout" });
  });

  it("says that git is missing, and knows its version", async () => {
    expect(await findGitVersion()).toMatch(/^\d+\.\d+/);
    const missing = readGit({ args: ["--version"], env: { PATH: "/nonexistent" } });
    await expect(missing).rejects.toMatchObject({ failure: "missing" });
    expect(describeGitFailure("fatal: unable to access 'https://u:p@x/': odd", 128).message).not.toMatch(
      /u:p/,
    );
  });
});
