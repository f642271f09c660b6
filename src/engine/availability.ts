import { LRUCache } from "lru-cache";
import { delimiter, join } from "node:path";
import { createLogger } from "../base/log.ts";
import type { Adapter } from "./protocol/adapter.ts";
import type { AgentSetup } from "./launch.ts";
import type { Availability } from "./engine.ts";
import { isFile } from "./process/isolation.ts";
import { findProgram } from "./process/process.ts";

const log = createLogger("engine");
const VERSION_MAX_MS = 20_000;

/** Checks whether an agent can be started: its program exists, its version is recent enough, and a login exists. */
export async function probeAgent(
  name: string,
  parts: AgentSetup,
  stateDir: string | null,
): Promise<Availability> {
  const { machine, adapter } = parts;
  const { program, problem: missing } = findAgentProgram(name, parts);
  if (missing !== null) return { usable: false, version: "", detail: missing };
  // The configuration may name any program, so there is no version to compare with.
  if (adapter.tested === null) return { usable: true, version: "", detail: program };
  const { version: tested } = adapter.tested;
  const version = await readVersion(program, machine.inherited);
  if (version === null) {
    return {
      usable: false,
      version: "",
      detail: `${program} does not report its version. Check that it runs.`,
    };
  }
  if (isOlder(version, tested)) {
    const detail = `${program} is version ${version}; at least ${formatMinor(tested)} is needed`;
    return { usable: false, version, detail };
  }
  const problem = findLoginProblem(parts, stateDir);
  return { usable: problem === null, version, detail: problem ?? program };
}

/** Returns what prevents a start, or null: a missing program or login. Reads no version, because that would start the program. */
export function findAgentProblem(name: string, parts: AgentSetup, stateDir: string | null): string | null {
  const { problem } = findAgentProgram(name, parts);
  return problem ?? (parts.adapter.tested === null ? null : findLoginProblem(parts, stateDir));
}

function findAgentProgram(name: string, parts: AgentSetup): { program: string; problem: string | null } {
  const { config, machine, adapter } = parts;
  try {
    return { program: findProgram(config.command || adapter.program, machine.path), problem: null };
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    return { program: "", problem: `${words}; ${formatAdvice(name, parts)}` };
  }
}

// When engines.<name>.command is set, the advice is to correct it, not to install another program.
function formatAdvice(name: string, { config, machine, adapter }: AgentSetup): string {
  if (config.command !== "") return `correct engines.${name}.command`;
  const other = `or set engines.${name}.command (docs/how-to/set-up-engines.md)`;
  return machine.path.split(delimiter).some((folder) => isFile(join(folder, "npm")))
    ? `install it with: ${formatInstall(adapter)}, ${other}`
    : `install npm, which is part of Node.js, and then: ${formatInstall(adapter)}, ${other}`;
}

export function formatInstall({ tested, install, needs }: Adapter): string {
  const version = tested?.release ?? tested?.version ?? "";
  const command = (install ?? `npm install -g ${tested?.package}@<version>`).replace("<version>", version);
  return needs === undefined ? command : `${command}, on ${needs}`;
}

/** Returns why no login was found, or null. Only the provider knows whether a login is valid. */
function findLoginProblem({ config, machine, adapter }: AgentSetup, stateDir: string | null): string | null {
  const { login } = adapter;
  const { inherited } = machine;
  // The gateway has the key of the provider.
  if (config.gateway !== undefined) return null;
  if (login.variables.some((name) => inherited[name])) return null;
  const configured = {
    ...config.env,
    ...Object.fromEntries(config.pass_env.map((name) => [name, inherited[name]])),
  };
  // Any other key in the configuration counts as a provider login.
  if (
    Object.entries(configured).some(([name, value]) =>
      value && (login.variables.includes(name) || OWN_KEY.test(name))
    )
  ) {
    return null;
  }
  const home = join(config.env.HOME ?? inherited.HOME ?? "/", login.home);
  const apart = config.state === "per_worker" && !login.isLoginInHome;
  const holds = (place: string | null) =>
    place !== null && login.files.some((file) => isFile(join(place, file)));
  if (holds(apart ? stateDir : home)) return null;
  if (apart && holds(home)) {
    return `each worker has a separate login. To use the one in ${home}, set state: shared; otherwise ${login.advice}`;
  }
  return `no login was found; ${login.advice}`;
}

const OWN_KEY = /_(KEY|TOKEN)$/;

// Enough for a few versions of each program.
const VERSIONS_MAX = 100;
const versions = new LRUCache<string, Promise<string | null>>({ max: VERSIONS_MAX });

/** Reads the output of `<program> --version`, once for each version of the file. */
async function readVersion(
  program: string,
  inherited: Readonly<Record<string, string | undefined>>,
): Promise<string | null> {
  const info = await Deno.stat(program).catch(() => null);
  const key = `${program} ${info?.mtime?.getTime()} ${info?.size}`;
  const pending = versions.get(key) ?? askVersion(program, inherited);
  versions.set(key, pending);
  const version = await pending;
  // The next call tries again after a failure.
  if (version === null) versions.delete(key);
  return version;
}

async function askVersion(
  program: string,
  inherited: Readonly<Record<string, string | undefined>>,
): Promise<string | null> {
  const { PATH = "/usr/local/bin:/usr/bin:/bin", HOME = "/" } = inherited;
  try {
    const { stdout } = await new Deno.Command(program, {
      args: ["--version"],
      clearEnv: true,
      env: { PATH, HOME, NO_COLOR: "1", LANG: "C.UTF-8", TERM: "dumb" },
      stdin: "null",
      stderr: "null",
      signal: AbortSignal.timeout(VERSION_MAX_MS),
    }).output();
    return /\d+\.\d+\.\d+/.exec(new TextDecoder().decode(stdout))?.[0] ?? null;
  } catch (error) {
    log.debug("{program} --version failed: {error}", { program, error });
    return null;
  }
}

function formatMinor(version: string): string {
  return version.split(".").slice(0, 2).join(".");
}

// Whether a version before the tested minor version works is unknown. Later versions are assumed to work.
function isOlder(version: string, tested: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [majorTested = 0, minorTested = 0] = tested.split(".").map(Number);
  return major < majorTested || major === majorTested && minor < minorTested;
}
