// A repository on loopback behind `git http-backend`, as a forge would serve it.
import { join } from "node:path";

interface GitServer extends AsyncDisposable {
  /** The address of the repository. */
  url: string;
  /** The bare repository. */
  dir: string;
  /** Requests so far, as `<method> <path and query>`. */
  requests: string[];
  /** Answers requests instead of git, when set. */
  refuse: { status: number; delayMs?: number } | null;
  /** Commits files to a branch of the repository, and returns the commit. */
  commit: (branch: string, files: Record<string, string | null>, parent?: string) => Promise<string>;
}

interface GitServerOptions {
  dir: string;
  /** `<user>:<password>` that every request needs. Without it, everyone reads and pushes. */
  password?: string;
}

const ENV = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1", LC_ALL: "C" };

/** Runs git as a person would, and returns its output. */
export async function git(cwd: string, ...args: string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command("git", {
    args: ["-c", "user.name=Test", "-c", "user.email=test@example.com", ...args],
    cwd,
    env: ENV,
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  if (!success) throw new Error(`git ${args.join(" ")}: ${decoder.decode(stderr)}`);
  return decoder.decode(stdout).trim();
}

/** Creates a bare repository with one commit on `main`, and returns its path. */
export async function createRepository(dir: string, more: Record<string, string> = {}): Promise<string> {
  const repository = join(dir, "project.git");
  await git(dir, "init", "-q", "--bare", "-b", "main", repository);
  const files = { "README.md": "hello\n", "src/one.txt": "1\n", ...more };
  await commitFiles(repository, { branch: "main", files, parent: undefined });
  return repository;
}

/** Creates a repository with one commit on `main`, and serves it. */
export async function startGitServer({ dir, password }: GitServerOptions): Promise<GitServer> {
  const repository = await createRepository(dir);
  await git(repository, "config", "http.receivepack", "true");
  const requests: string[] = [];
  const state: Pick<GitServer, "refuse"> = { refuse: null };
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const url = new URL(request.url);
    requests.push(`${request.method} ${url.pathname}${url.search}`);
    if (state.refuse !== null) {
      await new Promise((resolve) => setTimeout(resolve, state.refuse?.delayMs ?? 0));
      return new Response(null, { status: state.refuse?.status ?? 500 });
    }
    if (password !== undefined && request.headers.get("authorization") !== `Basic ${btoa(password)}`) {
      return new Response(null, { status: 401, headers: { "www-authenticate": 'Basic realm="git"' } });
    }
    return await answer(dir, request);
  });
  const commit: GitServer["commit"] = (branch, files, parent) =>
    commitFiles(repository, { branch, files, parent });
  return Object.assign(state, {
    url: `http://127.0.0.1:${server.addr.port}/project.git`,
    dir: repository,
    requests,
    commit,
    [Symbol.asyncDispose]: () => server.shutdown(),
  });
}

// A single program instead of a dozen, because many tests start with a repository.
async function commitFiles(
  repository: string,
  { branch, files, parent = branch }: {
    branch: string;
    files: Record<string, string | null>;
    parent?: string | undefined;
  },
): Promise<string> {
  const from = await git(repository, "rev-parse", "--verify", "-q", parent).catch(() => null);
  const child = new Deno.Command("git", {
    args: ["fast-import", "--quiet", "--force"],
    cwd: repository,
    env: ENV,
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(
    [
      `commit refs/heads/${branch}`,
      "mark :1",
      `committer Test <test@example.com> ${Math.floor(Date.now() / 1_000)} +0000`,
      formatData(`change ${Object.keys(files).join(", ")}`),
      ...(from === null ? [] : [`from ${from}`]),
      ...Object.entries(files).map(([name, content]) =>
        content === null
          ? `D ${JSON.stringify(name)}`
          : `M 100644 inline ${JSON.stringify(name)}\n${formatData(content)}`
      ),
      "get-mark :1\n",
    ].join("\n"),
  ));
  await writer.close();
  const { success, stdout } = await child.output();
  if (!success) throw new Error(`git fast-import failed for ${branch}`);
  return new TextDecoder().decode(stdout).trim();
}

function formatData(text: string): string {
  return `data ${new TextEncoder().encode(text).length}\n${text}`;
}

// The program speaks CGI: headers, an empty line, then the body.
async function answer(root: string, request: Request): Promise<Response> {
  const url = new URL(request.url);
  const child = new Deno.Command("git", {
    args: ["http-backend"],
    clearEnv: true,
    env: {
      ...ENV,
      PATH: Deno.env.get("PATH") ?? "",
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method,
      REMOTE_USER: "test",
      CONTENT_TYPE: request.headers.get("content-type") ?? "",
      HTTP_CONTENT_ENCODING: request.headers.get("content-encoding") ?? "",
      GIT_PROTOCOL: request.headers.get("git-protocol") ?? "",
    },
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const sent = (request.body ?? new Blob([]).stream()).pipeTo(child.stdin).catch(() => {});
  const { stdout } = await child.output();
  await sent;
  const text = new TextDecoder("latin1").decode(stdout);
  const end = text.indexOf("\r\n\r\n");
  const headers = new Headers(
    text.slice(0, end).split("\r\n").map((line) => line.split(": ", 2) as [string, string]),
  );
  const status = Number(headers.get("status")?.slice(0, 3) ?? 200);
  headers.delete("status");
  return new Response(stdout.slice(end + 4), { status, headers });
}
