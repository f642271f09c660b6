// Commits what a run has left in its worktree, and brings its commits out of the isolation of the run (contract 26).
import { join } from "node:path";
import { faultPoint } from "../../base/fault_point.ts";
import { type ChangeCounts, formatFiles } from "../../domain/work/change_counts.ts";
import { readStat } from "../../files/git/diff.ts";
import { buildGitEnv, buildSettings, runGit } from "../../files/git/git.ts";
import { setBranch } from "../../files/git/mirror.ts";
import { type CommandContext, runCommand } from "./command.ts";

/** Size of an uncommitted file that is committed. */
const COMMITTED_FILE_MAX_BYTES = 10 * 1024 * 1024;
/** Size of the new commits of one run. */
const PACK_MAX_BYTES = 2 * 1024 * 1024 * 1024;
const SKIPPED_SHOWN_MAX = 20;
const REPORT_MAX_BYTES = 64 * 1024;
const TAKE_OVER_TIMEOUT_MS = 10 * 60_000;
const SUBJECT_MAX_CHARACTERS = 72;

/** The commits of a run. */
interface TakenCommits {
  /** The new head of the branch, which is the old one when nothing changed. */
  head: string;
  /** Whether the service committed what the run had left. */
  isCommitted: boolean;
  /** Paths that were left out: repositories in the worktree, and large files. */
  skipped: string[];
  /** Size of the worktree. */
  bytes: number;
}

interface TakeOverRequest {
  mirror: string;
  branch: string;
  /** The commit of the branch in the mirror. */
  known: string;
  author: { name: string; email: string };
  instruction: string;
  executionId: string;
}

/** Where and how the changes of a run are taken over. */
export type TakeOverContext = Omit<CommandContext, "signal" | "onStart"> & {
  tempDir: string;
  /** Writes a line of the run's log. */
  note: (line: string) => void;
};

/** Takes the commits of a run into the mirror, moves its branch there, and notes what changed. Throws with the reason. */
export async function takeOverRun(
  run: TakeOverContext,
  request: TakeOverRequest,
): Promise<Pick<TakenCommits, "head" | "bytes"> & ChangeCounts> {
  const { mirror, branch, known: before, executionId } = request;
  const pack = join(mirror, `tmp_pack-${executionId}`);
  try {
    let size = 0;
    const write = (file: Deno.FsFile, chunk: Uint8Array) => {
      size += chunk.length;
      if (size > PACK_MAX_BYTES) return;
      for (let at = 0; at < chunk.length;) at += file.writeSync(chunk.subarray(at));
    };
    const taken = await (async () => {
      using file = await Deno.open(pack, { write: true, create: true, truncate: true, mode: 0o600 });
      return await takeOverCommits(run, request, (chunk) => write(file, chunk));
    })();
    if (size > PACK_MAX_BYTES) throw new Error("its commits have more than 2 GiB");
    faultPoint("tree.packed");
    const { head } = taken;
    if (head !== before) await importCommits(mirror, { pack, size, branch, before, head });
    const { files_changed, insertions, deletions } = await readStat(mirror, { base: before, head });
    run.note(formatChanges(branch, taken, files_changed));
    return { head, bytes: taken.bytes, files_changed, insertions, deletions };
  } finally {
    await Deno.remove(pack).catch(() => {});
  }
}

// Takes only objects from the run's repository, and checks that no object is missing.
async function importCommits(
  mirror: string,
  { pack, size, branch, before, head }: {
    pack: string;
    size: number;
    branch: string;
    before: string;
    head: string;
  },
): Promise<void> {
  if (size > 0) {
    await runGit({ args: ["index-pack", "--stdin", "--fix-thin"], gitDir: mirror, stdin: { file: pack } });
  }
  faultPoint("tree.imported");
  await runGit({ args: ["rev-list", "--objects", "--quiet", head, "--not", "--all"], gitDir: mirror });
  await setBranch(mirror, branch, head, before);
  faultPoint("tree.moved");
}

function formatChanges(branch: string, { isCommitted, skipped }: TakenCommits, files: number): string {
  const changed = files === 0 ? `no changes on ${branch}` : `${formatFiles(files)} changed on ${branch}`;
  return [
    `[${changed}${isCommitted ? "; the service committed what was left" : ""}]`,
    ...skipped.map((path) => `[not committed: ${path}, a repository or a file over 10 MiB]`),
  ].join("\n");
}

// Runs in the isolation of the run, with separate settings and a separate index, so that no lock, merge or setting of the agent's repository
// matters. The branch there moves along. A repository that cannot be used is made anew, and only the files count.
const SCRIPT = `
wt=$1 mirror=$2 branch=$3 known=$4 limit=$5
fail() { echo "error $1" >&2; exit 3; }
cd "$wt" || fail 'its worktree is gone'
tmp=$(mktemp -d) || fail 'there is no temporary directory'
trap 'rm -rf "$tmp"' EXIT
own=$wt/.git
look() { git --git-dir="$own" rev-parse --verify --quiet "$1^{commit}" 2>/dev/null; }
is_ancestor() { git merge-base --is-ancestor "$1" "$2" 2>/dev/null; }
# Returns large files and repositories in the worktree to their state in the last commit.
leave_out() {
  while IFS= read -r path; do
    git update-index --force-remove -- "$path"
    git ls-tree "$base" -- "$path" | git update-index --index-info
  done
}
attempt() {
  tip=$1 head=$2
  unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
  rm -rf "$tmp/repo" "$tmp/index"
  git init --quiet --bare --template= "$tmp/repo" || return 1
  [ -z "$tip$head" ] || export GIT_OBJECT_DIRECTORY="$own/objects"
  export GIT_ALTERNATE_OBJECT_DIRECTORIES="$mirror/objects"
  export GIT_DIR="$tmp/repo" GIT_WORK_TREE="$wt" GIT_INDEX_FILE="$tmp/index"
  base=$known other=
  if [ -n "$tip" ] && ! is_ancestor "$tip" "$known"; then base=$tip; fi
  if [ -n "$head" ] && ! is_ancestor "$head" "$base"; then
    if is_ancestor "$base" "$head"; then base=$head; else other=$head; fi
  fi
  if [ -n "$tip$head" ] && [ -f "$own/index" ] && [ ! -L "$own/index" ]; then cp -p "$own/index" "$tmp/index"; fi
  if [ ! -f "$tmp/index" ] || ! git ls-files >/dev/null 2>&1; then
    rm -f "$tmp/index"
    git read-tree "$base" || return 1
  fi
  find . -path ./.git -prune -o -name .git -print -o -type f -size "+$limit"c -print 2>/dev/null |
    sed -e 's,^\\./,,' -e 's,/\\.git$,,' >"$tmp/left_out"
  if [ -s "$tmp/left_out" ]; then
    sed -e 's/^/:(exclude,literal)/' "$tmp/left_out" >"$tmp/pathspec"
    git add --all --ignore-errors --pathspec-from-file="$tmp/pathspec" >/dev/null 2>&1
    leave_out <"$tmp/left_out" || return 1
  else git add --all --ignore-errors >/dev/null 2>&1
  fi
  tree=$(git write-tree) || return 1
  commit=$base made=0
  if [ "$tree" != "$(git rev-parse "$base^{tree}")" ]; then made=1; fi
  if [ $made = 1 ] || [ -n "$other" ]; then
    commit=$(printf '%s' "$SVC_COMMIT_MESSAGE" | git commit-tree "$tree" -p "$base" \${other:+-p "$other"}) || return 1
  fi
  [ "$commit" = "$known" ] || printf '%s\\n' "$commit" "^$known" |
    git pack-objects --quiet --revs --thin --stdout --delta-base-offset >"$tmp/pack" || return 1
}
# Moves the agent's repository to the commit, and ends what it has left open there.
settle() {
  unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
  if [ -z "$tip$head" ]; then
    rm -rf "$own" && mv "$tmp/repo" "$own" || return 1
    mkdir -p "$own/objects/info"
    echo "$mirror/objects" >"$own/objects/info/alternates"
    git --git-dir="$own" config core.bare false
    git --git-dir="$own" config user.name "$GIT_AUTHOR_NAME"
    git --git-dir="$own" config user.email "$GIT_AUTHOR_EMAIL"
  else
    find "$own" -name '*.lock' -type f -exec rm -f {} +
    for name in MERGE_HEAD MERGE_MODE MERGE_MSG AUTO_MERGE CHERRY_PICK_HEAD REVERT_HEAD; do rm -f "$own/$name"; done
    for name in rebase-merge rebase-apply sequencer; do rm -rf "$own/$name"; done
  fi
  git --git-dir="$own" update-ref "refs/heads/$branch" "$commit" &&
    git --git-dir="$own" symbolic-ref HEAD "refs/heads/$branch" &&
    cp -p "$tmp/index" "$own/index.svc" && mv "$own/index.svc" "$own/index"
}
tip=$(look "refs/heads/$branch")
head=$(look HEAD)
attempt "$tip" "$head" 2>/dev/null || attempt '' '' || fail 'git cannot read the worktree'
settle >&2 || fail 'its repository cannot be written'
[ "$commit" = "$known" ] || cat "$tmp/pack"
size=$(du -sk . 2>/dev/null | cut -f1)
head -n ${SKIPPED_SHOWN_MAX} "$tmp/left_out" | sed 's,^,skipped ,' >&2
echo "taken $commit $made \${size:-0}" >&2
`;

// Runs the script in the isolation of the run. Throws an Error with the reason when the changes stay in the worktree.
async function takeOverCommits(
  run: TakeOverContext,
  request: TakeOverRequest,
  onPack: (chunk: Uint8Array) => void,
): Promise<TakenCommits> {
  const { mirror, branch, known, author } = request;
  const words = [
    ...["/bin/sh", "-c", SCRIPT, "svc-take-over"],
    ...[run.workDir, mirror, branch, known, String(COMMITTED_FILE_MAX_BYTES)],
  ];
  let report = "";
  const decoder = new TextDecoder();
  const { words: end } = await runCommand({
    ...run,
    env: { ...buildEnv(run, request), ...buildAuthor(author) },
    // The run may have been ended. Its changes still count.
    signal: new AbortController().signal,
  }, {
    words,
    timeout_ms: TAKE_OVER_TIMEOUT_MS,
    onOutput(stream, chunk) {
      if (stream === "stdout") onPack(chunk);
      else report = (report + decoder.decode(chunk, { stream: true })).slice(-REPORT_MAX_BYTES);
    },
  });
  const taken = /^taken ([0-9a-f]{40}) ([01]) (\d+)$/m.exec(report);
  if (taken === null) throw new Error(/^error (.*)$/m.exec(report)?.[1] ?? end);
  const [, head = "", made, size] = taken;
  return {
    head,
    isCommitted: made === "1",
    skipped: [...report.matchAll(/^skipped (.*)$/gm)].map(([, path = ""]) => path),
    bytes: Number(size) * 1024,
  };
}

function buildEnv({ runId, env, tempDir }: { runId: string; env: Record<string, string>; tempDir: string }, {
  instruction,
  executionId,
}: TakeOverRequest): Record<string, string> {
  const plain = buildGitEnv({ PATH: env.PATH ?? "/usr/local/bin:/usr/bin:/bin" });
  const settings = buildSettings().filter((word) => word !== "-c");
  // Pathspecs of the script are not literal.
  const { GIT_LITERAL_PATHSPECS: _literal, ...rest } = plain;
  return {
    ...rest,
    TMPDIR: tempDir,
    SVC_RUN_ID: runId,
    SVC_COMMIT_MESSAGE: `${formatSubject(instruction)}\n\nSvc-Run: ${executionId}\n`,
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(settings.flatMap((setting, at) => {
      const equals = setting.indexOf("=");
      return [
        [`GIT_CONFIG_KEY_${at}`, setting.slice(0, equals)],
        [`GIT_CONFIG_VALUE_${at}`, setting.slice(equals + 1)],
      ];
    })),
  };
}

function buildAuthor({ name, email }: TakeOverRequest["author"]): Record<string, string> {
  return {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: "svc",
    GIT_COMMITTER_EMAIL: "svc@svc.invalid",
  };
}

function formatSubject(instruction: string): string {
  const line = instruction.split("\n").map((one) => one.trim()).find((one) => one !== "") ?? "";
  const characters = [...line.replaceAll("\0", "")];
  if (characters.length === 0) return "Changes of a run";
  return characters.length <= SUBJECT_MAX_CHARACTERS
    ? characters.join("")
    : `${characters.slice(0, SUBJECT_MAX_CHARACTERS - 1).join("")}…`;
}
