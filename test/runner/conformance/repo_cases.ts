// Cases for runners whose claim says `repo`. The others pass them without a run.
import { join } from "node:path";
import { type Bench, type ConformanceCase, expectEqual, expectTrue, readLog } from "./bench.ts";
import { buildProblem, type ServedRun } from "./service.ts";

const BRANCH = "svc/ada/0af35b1c";
const AUTHOR = { name: "Ada", email: "ada@svc.invalid" };

async function git(cwd: string, ...args: string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command("git", {
    args: ["-c", "user.name=Test", "-c", "user.email=test@example.com", ...args],
    cwd,
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  if (!success) throw new Error(`git ${args[0]}: ${decoder.decode(stderr)}`);
  return decoder.decode(stdout).trim();
}

/** Creates a repository with a branch and its base. Returns its directory, and the bundle for the runner. */
async function createBundle(bench: Bench): Promise<{ dir: string; bundle: Uint8Array; before: string }> {
  const dir = bench.file("origin");
  await git(bench.folder, "init", "-q", "-b", BRANCH, dir);
  await Deno.writeTextFile(join(dir, "one"), "1\n");
  await git(dir, "add", "-A");
  await git(dir, "commit", "-qm", "one");
  await git(dir, "update-ref", "refs/remotes/origin/main", "HEAD");
  await git(dir, "bundle", "create", "-q", "../branch", `refs/heads/${BRANCH}`, "refs/remotes/origin/main");
  return {
    dir,
    bundle: await Deno.readFile(bench.file("branch")),
    before: await git(dir, "rev-parse", "HEAD"),
  };
}

/** Starts the runner with a run of this script in a repository. Returns null for a runner without repositories. */
async function runInRepo(bench: Bench, script: string) {
  const { service } = bench;
  const { dir, bundle, before } = await createBundle(bench);
  await bench.start();
  await bench.wait("a claim", () => service.claims.length > 0);
  if (service.claims[0]?.repo !== true) return null;
  const id = crypto.randomUUID();
  const workDir = join(bench.workRoot, "trees", id, "work", "0af35b1c");
  service.bundles.set(id, bundle);
  bench.add(script, { repo: { branch: BRANCH, author: AUTHOR }, work_dir: workDir }, id);
  return { dir, before, workDir, run: await bench.waitForEnd(id) };
}

async function fetchCommits(bench: Bench, dir: string, { commits }: ServedRun): Promise<void> {
  await Deno.writeFile(bench.file("commits"), commits);
  expectEqual(
    "refs of the bundle",
    (await git(dir, "bundle", "list-heads", "../commits")).split(" ")[1],
    `refs/heads/${BRANCH}`,
  );
  await git(dir, "fetch", "-q", "../commits", `refs/heads/${BRANCH}:refs/heads/sent`);
}

export const REPO_CASES: readonly ConformanceCase[] = [
  {
    name: "a run in a repository gets its branch, and its commits and leftovers arrive before its end",
    rule: "Upload it before the end.",
    async check(bench) {
      const { service } = bench;
      service.interfere = ({ kind }, count) => kind === "commits" && count <= 2 ? "cut after" : null;
      const found = await runInRepo(
        bench,
        `pwd > ${bench.file("dir")}; git rev-parse --abbrev-ref HEAD origin/main > ${bench.file("refs")}; ` +
          "echo ignored > .gitignore; echo 2 > own; git add -A; git commit -qm own; echo 3 > left; echo 4 > ignored; exit 3",
      );
      if (found === null) return;
      const { dir, before, workDir, run } = found;
      expectEqual("directory", (await bench.read("dir")).trim(), workDir);
      expectEqual("refs", (await bench.read("refs")).trim().split("\n"), [BRANCH, "origin/main"]);
      expectEqual("failure", run.ends[0]?.outcome.failure, "exit_code");
      await fetchCommits(bench, dir, run);
      const log = await git(dir, "log", "--reverse", "--format=%an|%ae|%s", `${before}..sent`);
      const [own = "", left = ""] = log.split("\n");
      expectEqual("the program's commit", own, `${AUTHOR.name}|${AUTHOR.email}|own`);
      expectTrue(`commit of leftovers: ${left}`, left.startsWith(`${AUTHOR.name}|${AUTHOR.email}|pwd > `));
      const trailer = await git(dir, "log", "-1", "--format=%cn %(trailers:key=Svc-Run,valueonly)", "sent");
      expectEqual("committer and trailer", trailer, `svc ${run.order.execution.execution_id}`);
      expectEqual("files", (await git(dir, "ls-tree", "--name-only", "sent")).split("\n"), [
        ".gitignore",
        "left",
        "one",
        "own",
      ]);
      await bench.wait("the removal of the worktree", () => Deno.stat(workDir).then(() => false, () => true));
    },
  },
  {
    name: "a run without changes in its repository sends no commits",
    rule: "If there are commits, write a bundle of version 2 with the branch as its only ref",
    async check(bench) {
      const found = await runInRepo(bench, "true");
      if (found !== null) expectEqual("uploads", bench.service.list("commits").length, 0);
    },
  },
  {
    name: "a branch that the service refuses fails the run with setup and the reason",
    rule: "for the branch with `setup` and the words of `detail`",
    async check(bench) {
      bench.service.interfere = ({ kind }) => kind === "repo" ? buildProblem(409, "conflict") : null;
      const found = await runInRepo(bench, `echo started > ${bench.file("started")}`);
      if (found === null) return;
      const outcome = found.run.ends[0]?.outcome;
      expectEqual("outcome", [outcome?.status, outcome?.failure, outcome?.error], [
        "failed",
        "setup",
        "conflict",
      ]);
      expectEqual("starts", await bench.read("started"), "");
    },
  },
  ...([[400, "invalid_request"], [413, "payload_too_large"]] as const).map((
    [status, code],
  ): ConformanceCase => ({
    name: `commits that the service refuses with ${status} are in the log, and the end follows`,
    rule:
      "A refused bundle changes nothing. Write a line about it to the log, and report the end without changes.",
    async check(bench) {
      bench.service.interfere = ({ kind }) => kind === "commits" ? buildProblem(status, code) : null;
      const found = await runInRepo(bench, "echo 1 > made");
      if (found === null) return;
      expectEqual("uploads", bench.service.list("commits").length, 1);
      expectEqual("status", found.run.ends[0]?.outcome.status, "completed");
      expectTrue(`the log has no reason: ${readLog(found.run)}`, readLog(found.run).includes(code));
    },
  })),
];
