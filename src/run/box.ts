// Plans the box of a run: what its processes see, as which user they run, and what is refused (contract-3 21).
import { dirname, join } from "node:path";
import { type DataPaths, getCtlPath, resolveLinks } from "../base/paths.ts";
import {
  type BoxLimits,
  type BoxNetwork,
  type BoxOptions,
  findExcess,
  type IsolationConfig,
  resolveNetwork,
} from "../domain/workers/isolation.ts";
import type { Engine } from "../engine/engine.ts";
import { getInputDir } from "../engine/run_dir.ts";
import { type Box, type BoxUser, giveFile } from "../engine/process/box.ts";
import type { BoxEtc } from "../engine/process/box_etc.ts";
import { NO_BOX_USER } from "../engine/process/box_fault.ts";
import type { OpenBoxSocket } from "../engine/process/box_network.ts";
import { findProgram, SpawnError } from "../engine/process/process.ts";
import { findProgramFiles, type ProgramFiles } from "../engine/process/program_files.ts";
import { findBoxUser } from "../engine/process/box_user.ts";
import { findBoxFault, findProtectedPaths, listProtected } from "../files/box_paths.ts";
import { findAdapter } from "../engine/kinds.ts";

/** The worker and the places of a run. */
interface BoxRequest {
  /** The worker's id, or null for the coordinator. */
  workerId: string | null;
  engine: Engine;
  workDir: string;
  stateDir: string | null;
  runDir: string;
  /** The directory of objects that the repository in the work directory borrows. */
  objects?: string;
  /** The message of the run, whose files the box shows. "" for a gate. */
  messageId: string;
}

/** Returns the box of a run, or null for a run without one. Throws SpawnError with `failure: isolation`. */
export type BoxPlanner = (request: BoxRequest) => Promise<Box | null>;

/** The box that the settings request for a run. */
export interface BoxWish {
  box: BoxOptions;
  /** The bounds of the box. */
  config: IsolationConfig;
  /** Work directories of other workers, which the box must not show. */
  others: readonly string[];
  /** The files of the run's message, or their folder. */
  read?: readonly string[];
}

/** The machine of a box: the service's or a runner's. */
export interface BoxMachine {
  paths: DataPaths;
  /** Configuration files and the token of a runner, which no box shows. */
  configPaths: readonly string[];
  /** Files and directories of the service's own program, for `svc ctl`. */
  ownProgram: ProgramFiles;
  etc: BoxEtc;
  /** The service's port, where the relay of a box listens, too. */
  port: () => number;
  openSocket: OpenBoxSocket;
}

/** Creates a planner. `findWish` returns null for a run without a box. */
export function createBoxPlanner(
  machine: BoxMachine,
  findWish: (request: BoxRequest) => Promise<BoxWish | null>,
): BoxPlanner {
  return async (request) => {
    const wish = await findWish(request);
    if (wish === null) return null;
    try {
      return await planBox(machine, request, wish);
    } catch (error) {
      // A full disk and a directory that cannot be read end here, too.
      throw new SpawnError(error instanceof Error ? error.message : String(error), "isolation");
    }
  };
}

async function planBox(options: BoxMachine, request: BoxRequest, wish: BoxWish): Promise<Box> {
  const { paths, configPaths } = options;
  const { box: wanted, config, others } = wish;
  const { engine, runDir, workerId } = request;
  const excess = findExcess(wanted, config);
  if (excess !== null) throw refuse(`${excess.option}: ${excess.reason}`);
  if (engine.agent && engine.config.state === "shared") {
    throw refuse(`engines.${engine.name}.state is shared, so its login would be shared with every run`);
  }
  const guarded = findProtectedPaths(paths, configPaths, others, config);
  const workDir = resolveLinks(request.workDir);
  const root = resolveLinks(paths.root);
  const relocate = (path: string) => join(root, path.slice(paths.root.length));
  // The default directory may have become a link to another worker's.
  const isMade = workerId === null || request.objects !== undefined ||
    dirname(request.workDir) === paths.homes;
  const isOwn = workDir === relocate(isMade ? request.workDir : join(paths.workers, workerId));
  // Resolved once: an agent can make another link after the check.
  const read = (wanted.read ?? []).map((path) => resolveLinks(path));
  const write = (wanted.write ?? []).map((path) => resolveLinks(path));
  const fault = findBoxFault({ read, write }, isOwn ? null : workDir, guarded);
  if (fault !== null) throw refuse(`${fault.option}: ${fault.reason}`);
  const user = await findUser(config);
  const home = relocate(join(paths.state, workerId ?? "bee", ".home"));
  const stateDir = request.stateDir === null ? null : relocate(request.stateDir);
  for (const folder of [home, ...(stateDir === null ? [] : [stateDir])]) prepareFolder(folder, user);
  if (user !== null) checkOwner(workDir, user, isOwn);
  const files = (wish.read ?? []).map((path) => resolveLinks(path));
  if (user !== null) { for (const path of files) giveFile({ root: dirname(path), path }, user); }
  const programs = findEngineFiles(engine);
  options.etc.refresh();
  return {
    ...{ workDir, stateDir, runDir: relocate(runDir), home, etc: relocate(paths.etc), user },
    ...{ write, readOnly: read },
    read: [
      ...programs.read,
      ...options.ownProgram.read,
      relocate(paths.bin),
      ...(request.objects === undefined ? [] : [relocate(request.objects)]),
    ],
    messageFiles: files,
    // The environment of a run has the paths as they were configured.
    links: [
      ...programs.links,
      ...options.ownProgram.links,
      ...([[paths.root, root], [request.workDir, workDir]] as const).filter(([path, real]) => path !== real),
    ],
    fixed: [getInputDir(relocate(runDir))],
    hidden: listProtected(guarded),
    limits: pickLimits(wanted),
    total: config.box.total,
    network: planNetwork(options, resolveNetwork(wanted, config, findProviderHosts(engine)), relocate),
  };
}

function planNetwork(
  { paths, port, openSocket }: BoxMachine,
  network: BoxNetwork,
  relocate: (path: string) => string,
): Box["network"] {
  if (network === "host") return "host";
  return {
    hosts: network === "none" ? [] : network,
    port: port(),
    relay: relocate(getCtlPath(paths)),
    open: openSocket,
  };
}

function pickLimits({ memory, pids, cpu }: BoxOptions): BoxLimits {
  return {
    ...(memory === undefined ? {} : { memory }),
    ...(pids === undefined ? {} : { pids }),
    ...(cpu === undefined ? {} : { cpu }),
  };
}

/**
 * Returns the hosts of the engine's model: those of its usual provider, and of the addresses that the operator gave it. A model behind a
 * gateway needs none.
 */
function findProviderHosts({ kind, config }: Engine): string[] {
  if (config.gateway !== undefined) return [];
  const adapter = findAdapter(kind);
  const usual = adapter?.driver === "agent" ? adapter.providerHosts ?? [] : [];
  const given = Object.values(config.env).flatMap((value) => {
    const url = URL.parse(value);
    return url !== null && /^https?:$/.test(url.protocol) ? [url.hostname] : [];
  });
  return [...new Set([...usual, ...given])];
}

function refuse(reason: string): SpawnError {
  return new SpawnError(`a box cannot have this: ${reason}`, "isolation");
}

async function findUser({ box }: IsolationConfig): Promise<BoxUser | null> {
  if (Deno.uid() !== 0) return null;
  if (box.user === "") throw new SpawnError(NO_BOX_USER, "isolation");
  return await findBoxUser(box.user);
}

function prepareFolder(path: string, user: BoxUser | null): void {
  Deno.mkdirSync(path, { recursive: true, mode: 0o700 });
  if (user !== null) checkOwner(path, user, true);
}

// Directories of a worker that ran without a box belong to root. A recursive change of owners is the operator's to decide.
function checkOwner(path: string, { name, uid, gid }: BoxUser, isOwn: boolean): void {
  const info = Deno.lstatSync(path);
  if (!info.isDirectory) throw new SpawnError(`${path} is a symbolic link or a file`, "isolation");
  if (info.uid === uid) return;
  const isEmpty = Deno.readDirSync(path)[Symbol.iterator]().next().done === true;
  if (isOwn && isEmpty) return Deno.chownSync(path, uid, gid);
  throw new SpawnError(
    `${path} must belong to ${name}, the user of boxes. Run: chown -R ${name}: ${path}`,
    "isolation",
  );
}

function findEngineFiles({ kind, config, external }: Engine): ProgramFiles {
  const path = Deno.env.get("PATH") ?? "";
  const command = config.command || findAdapter(kind)?.program || "";
  const files = external ? findProgramFiles(findProgram(command, path), path) : { read: [], links: [] };
  // A script that the operator names is an argument of its interpreter.
  const scripts = [...config.args, ...(config.shell ?? [])].filter((word) =>
    word.startsWith("/") && isFile(word)
  );
  for (const script of scripts) {
    const real = Deno.realPathSync(script);
    files.read.push(real);
    if (real !== script) files.links.push([script, real]);
  }
  return files;
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile && dirname(path) !== "/";
  } catch {
    return false;
  }
}
