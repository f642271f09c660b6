import { join } from "node:path";
import { expect } from "vitest";
import { FAKE_AGENT } from "../fakes/agents.ts";
import { type CommandResult, type ServerProcess, startServer } from "./process.ts";
import { Database } from "../../../src/store/db/database.ts";
import { buildWalkConfig, createStranger, startReceiver } from "../fakes/stranger.ts";
import type { WalkWorld } from "../model/walk.ts";

/** The compiled svc under test, from SVC_PROGRAM. */
export const PROGRAM = Deno.env.get("SVC_PROGRAM");

/** Creates a directory with all programs of this machine except Deno, Node and similar ones, for PATH. */
export async function createPathWithoutRuntimes(folder: string): Promise<string> {
  const bin = join(folder, "path");
  await Deno.mkdir(bin);
  for (const place of ["/bin", "/usr/bin"]) {
    for await (const { name } of Deno.readDir(place)) {
      if (/^(deno|node|nodejs|npm|npx|bun|corepack)$/.test(name)) continue;
      await Deno.symlink(join(place, name), join(bin, name)).catch(() => {});
    }
  }
  return bin;
}

/** Runs a program to its end with only this environment. */
export async function runBare(
  command: string[],
  cwd: string,
  env: Record<string, string>,
  stdin = "",
): Promise<CommandResult> {
  const [program = "", ...args] = command;
  const child = new Deno.Command(program, {
    args,
    cwd,
    clearEnv: true,
    env,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  if (stdin !== "") await writer.write(new TextEncoder().encode(stdin)).catch(() => {});
  await writer.close().catch(() => {});
  const { code, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  return { code, out: decoder.decode(stdout), err: decoder.decode(stderr) };
}

/** The compiled svc serving in an empty directory, without any other files. */
export class CompiledService implements WalkWorld, AsyncDisposable {
  readonly used = new Set<string>();
  code = "";
  to: AsyncDisposable | null = null;
  #token: string;

  private constructor(
    readonly folder: string,
    readonly program: string,
    readonly env: Record<string, string>,
    readonly server: ServerProcess,
    token: string,
  ) {
    this.#token = token;
  }

  get dataDir(): string {
    return this.server.dataDir;
  }

  /** Starts `svc serve` in `<folder>/here`, from a copy of the program in `<folder>`. */
  static async open(env: Record<string, string> = {}): Promise<CompiledService> {
    const folder = await Deno.makeTempDir({ prefix: "svc-alone-" });
    const program = join(folder, "svc");
    await Deno.copyFile(PROGRAM ?? "", program);
    await Deno.chmod(program, 0o755);
    const here = join(folder, "here");
    await Deno.mkdir(here);
    const to = startReceiver();
    const { launchers, platforms, webhooks } = buildWalkConfig(to.url);
    const all = { PATH: await createPathWithoutRuntimes(folder), SVC_SERVER__PORT: "0", ...env };
    await Deno.writeTextFile(
      join(here, "config.yaml"),
      `bee: { quiet_window: 0ms }
engines: { default: fake, fake: { kind: command, command: ${JSON.stringify(FAKE_AGENT)} } }
launchers: ${JSON.stringify(launchers)}
platforms: ${JSON.stringify(platforms)}
webhooks: ${JSON.stringify(webhooks)}
`,
    );
    const start = () =>
      startServer({ dataDir: join(here, "data"), cwd: here, env: all, bare: true, program: [program] });
    const first = await start();
    const password = /with the password (\S+)/.exec(first.stderr)?.[1] ?? "";
    await first.end("SIGTERM");
    // Only a chat platform creates a stranger, so the test inserts this one between two starts.
    const db = await Database.open(`file:${join(here, "data", "svc.db")}`);
    const code = await createStranger(db);
    await db.close();
    const server = await start();
    const response = await fetch(`${server.url}/api/auth/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username: "admin", password }),
    });
    const { access_token: token } = await response.json();
    return Object.assign(new CompiledService(folder, program, all, server, token), { code, to });
  }

  svc(args: string[], stdin = ""): Promise<CommandResult> {
    return runBare([this.program, ...args], join(this.folder, "here"), this.env, stdin);
  }

  async run(command: string, args: string[] = [], err: RegExp = /^$/, stdin = ""): Promise<string> {
    this.used.add(command);
    const ran = await this.svc(["ctl", ...command.split(" "), ...args], stdin);
    expect([command, ran.code, ran.err]).toEqual([command, 0, expect.stringMatching(err)]);
    return ran.out;
  }

  // deno-lint-ignore no-explicit-any
  async call(route: string, body?: unknown, headers: Record<string, string> = {}): Promise<any> {
    const [method = "GET", path = ""] = route.split(" ");
    const response = await fetch(this.server.url + path, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    expect([route, response.ok]).toEqual([route, true]);
    return await response.json();
  }

  stranger(): Promise<string> {
    return Promise.resolve(this.code);
  }

  async settle(): Promise<void> {
    while (true) {
      const { tasks } = await this.call("GET /api/system/overview");
      const open = await this.call("GET /api/messages/inbound?status=received,feeding");
      if (tasks.pending + tasks.running + open.length === 0) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** A test cannot observe another process's wakeups, so the caller polls. */
  until(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, 20));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.end("SIGTERM");
    await this.to?.[Symbol.asyncDispose]();
    await Deno.remove(this.folder, { recursive: true });
  }
}
