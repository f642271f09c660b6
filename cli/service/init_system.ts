import { dirname } from "node:path";
import { EXIT, Exit } from "../terminal/exit.ts";
import type { ServicePlan } from "./service_unit.ts";

interface ServiceStatus {
  installed: boolean;
  running: boolean;
  /** The state as the init system words it, such as `active (running)`. */
  state: string;
  starts_at_boot: boolean;
  pid: number | null;
  restarts: number | null;
  /** The latest status that the service reported. */
  says: string;
  unit: string;
}

/** The service manager of a machine: systemd or launchd. */
export interface InitSystem {
  /** Writes the unit and starts the service, now and at boot. Idempotent. */
  install(plan: ServicePlan, unit: string): Promise<void>;
  /** Stops the service and removes the unit. Throws Exit 3 without a unit. */
  uninstall(plan: ServicePlan): Promise<void>;
  status(plan: ServicePlan): Promise<ServiceStatus>;
}

interface ProgramResult {
  code: number;
  out: string;
  err: string;
}

/** Runs a program to its end. Returns code 127 for an unknown program. */
export async function run(command: string, ...args: string[]): Promise<ProgramResult> {
  try {
    const { code, stdout, stderr } = await new Deno.Command(command, { args, stdin: "null" }).output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes).trim();
    return { code, out: text(stdout), err: text(stderr) };
  } catch {
    return { code: 127, out: "", err: `${command}: not found` };
  }
}

/** Runs a program. Throws an Exit with its output if it fails. */
export async function runOrThrow(command: string, ...args: string[]): Promise<string> {
  const { code, out, err } = await run(command, ...args);
  if (code === 0) return out;
  throw new Exit(
    EXIT.unexpected,
    `${[command, ...args].join(" ")} failed with exit code ${code}: ${err || out}`,
  );
}

/** Writes a file under a temporary name first. Returns whether its content changed. */
export async function writeAtomically(path: string, text: string, mode: number): Promise<boolean> {
  if (await Deno.readTextFile(path).catch(() => null) === text) return false;
  await Deno.mkdir(dirname(path), { recursive: true });
  await Deno.writeTextFile(`${path}.new`, text, { mode });
  await Deno.chmod(`${path}.new`, mode);
  await Deno.rename(`${path}.new`, path);
  return true;
}

/** Throws Exit 3 unless the file of a unit exists. */
export async function requireUnit(plan: ServicePlan, path: string): Promise<void> {
  if (await exists(path)) return;
  throw new Exit(EXIT.notFound, `Cannot uninstall ${plan.name}: ${path} does not exist`);
}

export async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

/** Creates the configuration and the data directory of a service if missing. Returns the created paths. */
export async function createDirectories(plan: ServicePlan): Promise<string[]> {
  const made: string[] = [];
  if (!await exists(plan.config)) {
    const words = "# All keys and defaults: svc ctl config schema\n";
    await writeAtomically(plan.config, `${words}data_dir: ${JSON.stringify(plan.dataDir)}\n`, 0o644);
    made.push(plan.config);
  }
  if (!await exists(plan.dataDir)) {
    await Deno.mkdir(plan.dataDir, { recursive: true, mode: 0o700 });
    made.push(plan.dataDir);
  }
  if (plan.scope === "system") await runOrThrow("chown", `${plan.account}:`, plan.dataDir);
  return made;
}
