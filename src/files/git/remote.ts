// Remote repositories: addresses, credentials, fetch and push.
import { isLoopback } from "../../base/address.ts";
import { type GitRequest, readGit, runGit } from "./git.ts";

/** A repository that the service fetches from or pushes to. */
export interface Remote {
  /** An address of https, ssh, or http to loopback; or the absolute path of a repository of this machine. */
  address: string;
  /** A token, or `<user>:<password>`. null for none. Never in arguments, addresses or files. */
  credentials: string | null;
}

type Extras = Pick<GitRequest, "signal" | "timeoutMs" | "fileMaxBytes" | "config"> & {
  /** Only the commit itself, without those before it. */
  isShallow?: boolean;
};

const USER_OF_TOKENS = "x-access-token";
// Git asks this helper for the password of one origin only.
const HELPER =
  `!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' "$SVC_GIT_USER" "$SVC_GIT_PASSWORD"; }; f`;

/** Returns settings and variables that let git use the remote. */
export function buildRemoteOptions({ address, credentials }: Remote): Required<
  Pick<GitRequest, "config" | "env">
> {
  const url = URL.canParse(address) && /^https?:/.test(address) ? new URL(address) : null;
  const config = url?.protocol === "http:" && isLoopback(url.hostname) ? ["protocol.http.allow=always"] : [];
  if (url === null || credentials === null) return { config, env: {} };
  const [user = "", ...rest] = credentials.trim().split(":");
  const [name, password] = rest.length === 0 ? [USER_OF_TOKENS, user] : [user, rest.join(":")];
  return {
    config: [...config, `credential.${url.origin}.helper=${HELPER}`],
    env: { SVC_GIT_USER: name, SVC_GIT_PASSWORD: password },
  };
}

/** Fetches refs into a bare repository. Refspecs without `+` are not forced. Throws GitError. */
export async function fetchRefs(
  gitDir: string,
  remote: Remote,
  refspecs: readonly string[],
  { isShallow = false, config = [], ...extras }: Extras = {},
): Promise<void> {
  const options = ["--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--quiet", "--force"];
  const depth = isShallow ? ["--depth=1"] : [];
  const { config: ofRemote, env } = buildRemoteOptions(remote);
  await runGit({
    args: ["fetch", ...options, ...depth, "--", remote.address, ...refspecs],
    gitDir,
    ...{ config: [...ofRemote, ...config], env },
    ...extras,
  });
}

/** Returns the refs of a remote that match, with their commits. Throws GitError. */
export async function listRemoteRefs(
  remote: Remote,
  patterns: readonly string[],
  extras: Extras = {},
): Promise<Map<string, string>> {
  const text = await readGit({
    args: ["ls-remote", "--quiet", "--", remote.address, ...patterns],
    ...buildRemoteOptions(remote),
    ...extras,
  });
  const lines = text.split("\n").map((line) => line.split("\t"));
  return new Map(lines.flatMap(([commit = "", ref]) => ref === undefined ? [] : [[ref, commit] as const]));
}

/** Returns the branch that a remote's HEAD names. Throws GitError. */
export async function findDefaultBranch(remote: Remote, extras: Extras = {}): Promise<string | null> {
  const text = await readGit({
    args: ["ls-remote", "--quiet", "--symref", "--", remote.address, "HEAD"],
    ...buildRemoteOptions(remote),
    ...extras,
  });
  return /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(text)?.[1] ?? null;
}

/** Pushes a branch unless the remote's differs from `expected`; "" means that it must not exist. Throws GitError. */
export async function pushBranch(
  gitDir: string,
  remote: Remote,
  { branch, commit, expected }: { branch: string; commit: string; expected: string },
  extras: Extras = {},
): Promise<void> {
  const ref = `refs/heads/${branch}`;
  await runGit({
    args: [
      ...["push", "--quiet", "--no-verify", "--no-follow-tags", "--no-recurse-submodules"],
      ...[`--force-with-lease=${ref}:${expected}`, "--", remote.address, `${commit}:${ref}`],
    ],
    gitDir,
    ...buildRemoteOptions(remote),
    ...extras,
  });
}
