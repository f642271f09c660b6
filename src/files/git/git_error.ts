/** Why a git command failed. */
type GitFailure =
  | "missing"
  | "network"
  | "denied"
  | "not_found"
  | "unknown_ref"
  | "exists"
  | "owner"
  | "timeout"
  | "full"
  | "failed";

/** A git command failed. The message is for people and has no credential. */
export class GitError extends Error {
  readonly failure: GitFailure;

  constructor(failure: GitFailure, message: string) {
    super(message);
    this.name = "GitError";
    this.failure = failure;
  }
}

const GIT_WORDS_MAX_CHARACTERS = 500;

// Git has no stable codes, so its English words decide. The first match wins.
const SIGNS: readonly (readonly [GitFailure, RegExp, string])[] = [
  [
    "missing",
    /failed to execute git|git: not found|git: No such file/i,
    "git is not installed on the service's machine",
  ],
  ["full", /No space left on device|Disk quota exceeded/i, "the disk is full"],
  [
    "owner",
    /dubious ownership/i,
    "the repository belongs to another user. Give it to the user of the service",
  ],
  [
    "unknown_ref",
    /couldn't find remote ref|invalid refspec|unknown revision|not our ref/i,
    "the repository has no such branch or commit",
  ],
  [
    "failed",
    /fatal: bad object|did not send all necessary objects/i,
    "the service's copy of the repository, or the remote one, lacks objects",
  ],
  [
    "exists",
    /\[(remote )?rejected\].*(stale info|fetch first|non-fast-forward|already exists)|cannot lock ref/i,
    "the branch has other commits in the remote repository. Delete it there, or discard it here",
  ],
  [
    "denied",
    /Authentication failed|could not read (Username|Password)|terminal prompts disabled|returned error: 40[13]|Permission denied|Host key verification failed|pre-receive hook declined|\[remote rejected\]/i,
    "the remote repository denied access",
  ],
  [
    "not_found",
    /repository .* not found|does not appear to be a git repository|returned error: 404|does not exist|No such file or directory/i,
    "no such repository",
  ],
  [
    "network",
    /Could not resolve (host|proxy)|Failed to connect|Connection (refused|timed out|reset)|Network is unreachable|timed out|Could not connect|unable to access|early EOF|hung up unexpectedly|No route to host|returned error: 5\d\d/i,
    "the remote repository cannot be reached",
  ],
];

/** Classifies the output of a failed git command. */
export function describeGitFailure(stderr: string, code: number): GitError {
  const [failure, , words] = SIGNS.find(([, sign]) => sign.test(stderr)) ?? ["failed", null, "git failed"];
  const said = stderr.split("\n").map((line) => line.trim())
    .filter((line) => /^(fatal|error|remote|! |ssh|setpriv)/i.test(line)).join("; ")
    .replace(/\/\/[^/@\s]*@/g, "//").replace(/\.$/, "").slice(0, GIT_WORDS_MAX_CHARACTERS);
  const detail = failure === "missing" ? "" : said || `exit code ${code}`;
  return new GitError(failure, detail === "" ? words : `${words} (${detail})`);
}
