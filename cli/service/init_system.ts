import { dirname } from "node:path";
import { EXIT, Exit } from "../terminal/exit.ts";
import type { ServicePlan } from "./service_unit.ts";

/** What an init system says about a service. */
export interface ServiceStatus {
  installed: boolean;
  running: boolean;
  /** Its own word, such as `active (running)`. */
  state: string;
  starts_at_boot: boolean;
  pid: number | null;
  restarts: number | null;
  /** The last status that the service reported. */
  says: string;
  unit: string;
}

/** What starts services on a kind of machine: systemd or launchd. */
export interface InitSystem {
  /** Writes the unit, and starts the service now and at every boot. Doing it again changes what differs. */
  install(plan: ServicePlan, unit: string): Promise<void>;
  /** Stops the service and removes the unit. Throws Exit (3) when there is none. */
  uninstall(plan: ServicePlan): Promise<void>;
  status(plan: ServicePlan): Promise<ServiceStatus>;
}

interface ProgramResult {
  code: number;
  out: string;
  err: string;
}

/** Runs a program of the machine to its end; 127 when there is none of that name. */
export async function run(command: string, ...args: string[]): Promise<ProgramResult> {
  try {
    const { code, stdout, stderr } = await new Deno.Command(command, { args, stdin: "null" }).output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes).trim();
    return { code, out: text(stdout), err: text(stderr) };
  } catch {
    return { code: 127, out: "", err: `${command}: not found` };
  }
}

/** As run(), but throws an Exit that names the program unless it succeeds. */
export async function runOrThrow(command: string, ...args: string[]): Promise<string> {
  const { code, out, err } = await run(command, ...args);
  if (code === 0) return out;
  throw new Exit(EXIT.unexpected, `${[command, ...args].join(" ")} ended with ${code}: ${err || out}`);
}

/** Writes a file under a temporary name first; answers whether anything changed. */
export async function writeAtomically(path: string, text: string, mode: number): Promise<boolean> {
  if (await Deno.readTextFile(path).catch(() => null) === text) return false;
  await Deno.mkdir(dirname(path), { recursive: true });
  await Deno.writeTextFile(`${path}.new`, text, { mode });
  await Deno.chmod(`${path}.new`, mode);
  await Deno.rename(`${path}.new`, path);
  return true;
}

/** Whether something is at that path. */
export async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

/** The configuration and data directory that the unit names, made where they are missing. Answers what was made. */
export async function createDirectories(plan: ServicePlan): Promise<string[]> {
  const made: string[] = [];
  if (!await exists(plan.config)) {
    const words = "# Every key and its default: svc ctl config schema\n";
    await writeAtomically(plan.config, `${words}data_dir: ${JSON.stringify(plan.dataDir)}\n`, 0o644);
    made.push(plan.config);
  }
  if (!await exists(plan.dataDir)) {
    await Deno.mkdir(plan.dataDir, { recursive: true, mode: 0o700 });
    made.push(plan.dataDir);
  }
  return made;
}
