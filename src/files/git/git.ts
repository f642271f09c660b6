// Runs the git commands of the service without user configuration, hooks, filters or prompts, and with limits.
import { concatBytes } from "../../base/bytes.ts";
import { buildProxyBypass } from "../../base/proxy.ts";
import { describeGitFailure, GitError } from "./git_error.ts";

/** A git command of the service. */
export interface GitRequest {
  args: readonly string[];
  /** The repository. A run must not be able to write it. Absent for commands without one, such as ls-remote. */
  gitDir?: string;
  /** The directory of files that the command reads or writes. */
  workTree?: string;
  /** Settings of this command, as `<name>=<value>`. */
  config?: readonly string[];
  /** More variables, such as GIT_INDEX_FILE or those of a remote. */
  env?: Readonly<Record<string, string>>;
  /** Text for stdin, or a file of the service, from `offset` on. */
  stdin?: string | { file: string; offset?: number };
  timeoutMs?: number;
  /** The umask of the files that it writes. Default: that of the service. */
  umask?: number;
  /** Git ends when it writes a larger file. */
  fileMaxBytes?: number;
  /** Git ends when it takes more memory, mapped files included. */
  memoryMaxBytes?: number;
  /** Output after this many bytes is cut. Default: 1 MiB. */
  outputMaxBytes?: number;
  signal?: AbortSignal;
  /** Exit codes besides 0 that are no failure. */
  codes?: readonly number[];
}

interface GitResult {
  code: number;
  stdout: Uint8Array;
  /** Whether `stdout` was cut. */
  isCut: boolean;
}

const GIT_TIMEOUT_MS = 10 * 60_000;
export const GIT_OUTPUT_MAX_BYTES = 1024 * 1024;
const GIT_STDERR_MAX_BYTES = 16 * 1024;

// The service's own settings come last, so that a command cannot lift them.
const SETTINGS = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.quotePath=false",
  "core.attributesFile=/dev/null",
  "core.excludesFile=/dev/null",
  "core.autocrlf=false",
  "credential.helper=",
  "credential.interactive=never",
  "diff.external=",
  "fetch.recurseSubmodules=false",
  "submodule.recurse=false",
  "push.recurseSubmodules=no",
  "gc.auto=0",
  "maintenance.auto=false",
  "http.followRedirects=false",
  "http.lowSpeedLimit=1",
  "http.lowSpeedTime=60",
  "protocol.allow=never",
  "protocol.https.allow=always",
  "protocol.ssh.allow=always",
  "protocol.file.allow=always",
  "transfer.fsckObjects=true",
];

/** Runs git to its end. Throws GitError, whose message says in plain words what failed. */
export async function runGit(request: GitRequest): Promise<GitResult> {
  const { signal, timeoutMs = GIT_TIMEOUT_MS, stdin } = request;
  const child = spawn(request);
  const ending = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal === undefined ? [] : [signal])]);
  const kill = () => killProcess(child.pid);
  ending.addEventListener("abort", kill, { once: true });
  if (ending.aborted) kill();
  const [stdout, stderr, status] = await Promise.all([
    readBounded(child.stdout, request.outputMaxBytes ?? GIT_OUTPUT_MAX_BYTES, kill),
    readBounded(child.stderr, GIT_STDERR_MAX_BYTES),
    child.status,
    ...(stdin === undefined ? [] : [feed(child.stdin, stdin)]),
  ]);
  ending.removeEventListener("abort", kill);
  const words = new TextDecoder().decode(stderr.bytes);
  if (ending.aborted) {
    throw new GitError("timeout", signal?.aborted ? "it was ended" : `no end within ${timeoutMs / 1000} s`);
  }
  const { code } = status;
  if (code !== 0 && !stdout.isCut && !(request.codes ?? []).includes(code)) {
    throw describeGitFailure(words, code);
  }
  return { code, stdout: stdout.bytes, isCut: stdout.isCut };
}

/** Runs git and returns its output as text, without the last line break. */
export async function readGit(request: GitRequest): Promise<string> {
  const { stdout } = await runGit(request);
  return new TextDecoder().decode(stdout).replace(/\n$/, "");
}

/** Returns the version of git, or null when git is missing. */
export async function findGitVersion(): Promise<string | null> {
  try {
    return /\d+(\.\d+)+/.exec(await readGit({ args: ["--version"], timeoutMs: 10_000 }))?.[0] ?? null;
  } catch {
    return null;
  }
}

/** Returns the environment of a git command. Nothing of the service's own passes but its proxy and its certificates. */
export function buildGitEnv(inherited: Readonly<Record<string, string>> = Deno.env.toObject()) {
  const passed = Object.fromEntries(
    ["HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "GIT_SSL_CAINFO"].flatMap((name) => {
      const value = inherited[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  return {
    ...passed,
    ...buildProxyBypass(passed),
    PATH: inherited.PATH ?? "/usr/local/bin:/usr/bin:/bin",
    // Git and what it starts look here for settings.
    HOME: "/nonexistent",
    XDG_CONFIG_HOME: "/nonexistent",
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_NO_REPLACE_OBJECTS: "1",
    GIT_LITERAL_PATHSPECS: "1",
    GIT_LFS_SKIP_SMUDGE: "1",
    // The account's own keys and known hosts count, its settings do not.
    GIT_SSH_COMMAND: "ssh -F /dev/null -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=20",
  };
}

/** Returns the arguments that carry settings to git. */
export function buildSettings(config: readonly string[] = []): string[] {
  return [...SETTINGS, ...config].flatMap((setting) => ["-c", setting]);
}

function spawn(request: GitRequest): Deno.ChildProcess {
  const { args, gitDir, workTree, config, env, stdin } = request;
  const places = [
    ...(gitDir === undefined ? [] : [`--git-dir=${gitDir}`]),
    ...(workTree === undefined ? [] : [`--work-tree=${workTree}`]),
  ];
  const words = [...buildShell(request), "git", ...buildSettings(config), ...places, ...args];
  // Git ends with the service, also after a kill: a leftover one would write next to the one of the next start.
  const setpriv = findSetpriv();
  const [command = "", ...rest] = setpriv === null ? words : [setpriv, "--pdeathsig", "KILL", "--", ...words];
  const cwd = workTree ?? gitDir ?? "/";
  try {
    return new Deno.Command(command, {
      args: rest,
      cwd,
      env: { ...buildGitEnv(), ...env },
      clearEnv: true,
      stdin: stdin === undefined ? "null" : "piped",
      stdout: "piped",
      stderr: "piped",
      detached: true,
    }).spawn();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    // The same error means a missing program and a missing directory.
    if (exists(cwd)) throw describeGitFailure("git: not found", 127);
    throw new GitError("not_found", "the service's copy of the repository is gone");
  }
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

const LIMIT_UNIT_BYTES = 512;

// The shell sets what a process hands on to its children.
function buildShell({ umask, fileMaxBytes, memoryMaxBytes }: GitRequest): string[] {
  const lines = [
    ...(umask === undefined ? [] : [`umask ${umask.toString(8)}`]),
    ...(fileMaxBytes === undefined ? [] : [`ulimit -f ${Math.ceil(fileMaxBytes / LIMIT_UNIT_BYTES)}`]),
    ...(memoryMaxBytes === undefined ? [] : [`ulimit -v ${Math.ceil(memoryMaxBytes / 1024)}`]),
  ];
  return lines.length === 0 ? [] : ["/bin/sh", "-c", `${lines.join("; ")}; exec "$@"`, "sh"];
}

let setpriv: string | null | undefined;

function findSetpriv(): string | null {
  setpriv ??= ["/usr/bin/setpriv", "/bin/setpriv"].find((path) => {
    try {
      return Deno.build.os === "linux" && Deno.statSync(path).isFile;
    } catch {
      return false;
    }
  }) ?? null;
  return setpriv;
}

// Git starts programs for transports, which end with its session.
function killProcess(pid: number): void {
  for (const target of [-pid, pid]) {
    try {
      Deno.kill(target, "SIGKILL");
    } catch {
      // The process has ended.
    }
  }
}

async function readBounded(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
  onFull?: () => void,
): Promise<{ bytes: Uint8Array; isCut: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  let isCut = false;
  for await (const chunk of stream) {
    const room = maxBytes - size;
    if (chunk.length > room) {
      isCut = true;
      onFull?.();
    }
    if (room > 0) chunks.push(chunk.slice(0, room));
    size += chunk.length;
  }
  return { bytes: concatBytes(chunks), isCut };
}

async function feed(
  stream: WritableStream<Uint8Array>,
  source: string | { file: string; offset?: number },
): Promise<void> {
  if (typeof source !== "string") {
    const file = await Deno.open(source.file);
    await file.seek(source.offset ?? 0, Deno.SeekMode.Start);
    // Git may end without reading its stdin.
    return await file.readable.pipeTo(stream).catch(() => {});
  }
  const writer = stream.getWriter();
  try {
    await writer.write(new TextEncoder().encode(source));
    await writer.close();
  } catch {
    // Git may end without reading its stdin.
  }
}
