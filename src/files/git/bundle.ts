// Bundles: the branch of a run on its way to a runner, and its commits on their way back.
import { basename, dirname, join } from "node:path";
import { removeTree } from "../../base/files/tree_removal.ts";
import { type GitRequest, readGit, runGit } from "./git.ts";
import { fetchRefs, listRemoteRefs } from "./remote.ts";
import { GitError } from "./git_error.ts";

/** Limits of the commits that come from a runner. */
const BUNDLE_HEADER_MAX_BYTES = 64 * 1024;
const BUNDLE_OBJECTS_MAX = 500_000;
const BUNDLE_UNPACKED_MAX_BYTES = 4 * 1024 * 1024 * 1024;
const BUNDLE_MEMORY_MAX_BYTES = 2 * 1024 * 1024 * 1024;
const IMPORT_TIMEOUT_MS = 5 * 60_000;
const OBJECT_NAME_BYTES = 41;
const SIZE_LINE_BYTES = 21;
// Large files are read in pieces, and packs are mapped in small ones, so that the limit of memory is enough.
const IMPORT_CONFIG = [
  "core.bigFileThreshold=16m",
  "core.packedGitWindowSize=16m",
  "core.packedGitLimit=256m",
];

const HEADS = "refs/heads/";
const BASES = "refs/remotes/origin/";

/** The refs of a bundle for a runner: a branch, and the branch of the remote repository where it starts. */
interface BundledBranch {
  branch: string;
  commit: string;
  base: string;
  baseCommit: string;
}

/** Writes a branch with its base into a bundle below the directory of the mirror. Opens it and leaves no file. Throws GitError. */
export async function openBranchBundle(
  mirror: string,
  { branch, commit, base, baseCommit }: BundledBranch,
): Promise<{ file: Deno.FsFile; size: number }> {
  return await useScratch(mirror, async (folder) => {
    const gitDir = join(folder, "repo");
    await runGit({ args: ["init", "--quiet", "--bare", "--template=", gitDir] });
    await Deno.mkdir(join(gitDir, "objects/info"), { recursive: true });
    await Deno.writeTextFile(join(gitDir, "objects/info/alternates"), `${join(mirror, "objects")}\n`);
    await runGit({ args: ["update-ref", `${HEADS}${branch}`, commit], gitDir });
    await runGit({ args: ["update-ref", `${BASES}${base}`, baseCommit], gitDir });
    const path = join(folder, "bundle");
    await runGit({ args: ["bundle", "create", "--quiet", path, "--all"], gitDir });
    const file = await Deno.open(path);
    return { file, size: (await file.stat()).size };
  });
}

/** Takes the bundle of a branch into an empty mirror. Throws GitError. */
export async function fetchBundle(mirror: string, path: string, branch: string): Promise<BundledBranch> {
  const remote = { address: path, credentials: null };
  const refs = await listRemoteRefs(remote, []);
  const commit = refs.get(`${HEADS}${branch}`);
  const [base, baseCommit] = [...refs].find(([ref]) => ref.startsWith(BASES)) ?? [];
  if (commit === undefined || base === undefined || baseCommit === undefined) {
    throw new GitError("failed", `the bundle lacks ${branch} or its base`);
  }
  await fetchRefs(mirror, remote, ["+refs/*:refs/*"]);
  return { branch, commit, base: base.slice(BASES.length), baseCommit };
}

/** Writes the commits after `before` into a bundle. Throws GitError. */
export async function writeCommitBundle(
  mirror: string,
  path: string,
  { branch, before }: { branch: string; before: string },
): Promise<void> {
  await runGit({
    args: ["bundle", "create", "--quiet", path, `^${before}`, `${HEADS}${branch}`],
    gitDir: mirror,
  });
}

/**
 * Takes the commits of a bundle into the mirror if they follow `before`, are whole, and keep to the limits. Moves no branch. Returns the
 * commit of the branch. Throws GitError, and then nothing of the bundle stays.
 */
export async function importBundle(
  mirror: string,
  path: string,
  { branch, before }: { branch: string; before: string },
): Promise<string> {
  const { head, offset } = await readHeader(path, `${HEADS}${branch}`);
  return await useScratch(mirror, async (folder) => {
    const objects = join(mirror, "objects");
    const options: Omit<GitRequest, "args"> = {
      gitDir: mirror,
      config: IMPORT_CONFIG,
      env: { GIT_OBJECT_DIRECTORY: folder, GIT_ALTERNATE_OBJECT_DIRECTORIES: objects },
      memoryMaxBytes: BUNDLE_MEMORY_MAX_BYTES,
      timeoutMs: IMPORT_TIMEOUT_MS,
    };
    await runGit({
      args: ["index-pack", "--stdin", "--fix-thin", "--fsck-objects", "--threads=1"],
      ...options,
      stdin: { file: path, offset },
    }).catch((error) => {
      const isCut = error instanceof GitError && error.failure === "network";
      throw isCut ? refuse("its pack is cut off") : error;
    });
    await checkCommits(options, before, head);
    await keepPack(folder, objects);
    return head;
  });
}

// A bundle has a line for each commit that it requires and for each ref, then an empty line and a pack.
async function readHeader(path: string, ref: string): Promise<{ head: string; offset: number }> {
  using file = await Deno.open(path);
  const bytes = new Uint8Array(BUNDLE_HEADER_MAX_BYTES);
  let size = 0;
  for (let count: number | null = 0; count !== null && size < bytes.length; size += count ?? 0) {
    count = await file.read(bytes.subarray(size));
  }
  const text = new TextDecoder("latin1").decode(bytes.subarray(0, size));
  const end = text.indexOf("\n\n");
  const [first, ...lines] = text.slice(0, Math.max(0, end)).split("\n");
  if (end === -1 || first !== "# v2 git bundle") throw refuse("it is no bundle of version 2");
  const refs = lines.filter((line) => !line.startsWith("-"));
  const [, head = "", name] = /^([0-9a-f]{40}) (.*)$/.exec(refs[0] ?? "") ?? [];
  if (refs.length !== 1 || name !== ref) throw refuse(`it must have ${ref} and no other ref`);
  return { head, offset: end + 2 };
}

async function checkCommits(options: Omit<GitRequest, "args">, before: string, head: string): Promise<void> {
  const { code } = await runGit({
    args: ["merge-base", "--is-ancestor", before, head],
    ...options,
    codes: [1, 128],
  });
  if (code !== 0) throw refuse("its commits do not follow the branch");
  // Fails for a missing object.
  const { stdout, isCut } = await runGit({
    args: ["rev-list", "--objects", "--no-object-names", head, "--not", "--all"],
    ...options,
    outputMaxBytes: BUNDLE_OBJECTS_MAX * OBJECT_NAME_BYTES,
  });
  if (isCut) throw refuse(`it has more than ${BUNDLE_OBJECTS_MAX} objects`);
  const sizes = await readGit({
    args: ["cat-file", "--batch-check=%(objectsize)"],
    ...options,
    stdin: new TextDecoder().decode(stdout),
    outputMaxBytes: BUNDLE_OBJECTS_MAX * SIZE_LINE_BYTES,
  });
  const bytes = sizes.split("\n").reduce((sum, size) => sum + Number(size), 0);
  if (!(bytes <= BUNDLE_UNPACKED_MAX_BYTES)) throw refuse("its files have more than 4 GiB");
}

function refuse(reason: string): GitError {
  return new GitError("failed", `the bundle is refused: ${reason}`);
}

// The index comes last, because git looks for packs by their indexes.
async function keepPack(folder: string, objects: string): Promise<void> {
  const packs = join(folder, "pack");
  const names = (await Array.fromAsync(Deno.readDir(packs))).map(({ name }) => name)
    .filter((name) => name.startsWith("pack-"));
  for (
    const name of names.toSorted((one, other) =>
      Number(one.endsWith(".idx")) - Number(other.endsWith(".idx"))
    )
  ) {
    await Deno.rename(join(packs, name), join(objects, "pack", name));
  }
}

// Mirrors.use() removes what a kill leaves.
async function useScratch<T>(mirror: string, work: (folder: string) => Promise<T>): Promise<T> {
  const top = dirname(mirror);
  const folder = join(top, `.new-${basename(mirror)}-${crypto.randomUUID()}`);
  await Deno.mkdir(folder, { mode: 0o700 });
  try {
    return await work(folder);
  } finally {
    await removeTree({ root: top, path: folder }).catch(() => {});
  }
}
