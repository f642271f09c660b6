import { join } from "node:path";
import { EXIT, Exit } from "../terminal/exit.ts";
import {
  createDirectories,
  exists,
  type InitSystem,
  run,
  runOrThrow,
  type ServiceStatus,
  writeAtomically,
} from "./init_system.ts";
import type { Io } from "../terminal/io.ts";
import type { ServicePlan } from "./service_unit.ts";

/** Written from launchd's manual and never tried on macOS (docs/how-to/install.md). */
export class Launchd implements InitSystem {
  readonly #io: Io;

  constructor(io: Io) {
    this.#io = io;
  }

  async install(plan: ServicePlan, unit: string): Promise<void> {
    if (plan.scope === "system" && (await run("id", plan.account)).code !== 0) {
      throw new Exit(
        EXIT.notFound,
        `Cannot install: the account ${plan.account} does not exist. Specify one with --run-as.`,
      );
    }
    for (const one of await createDirectories(plan)) this.#say(`created ${one}`);
    if (plan.scope === "system") await runOrThrow("chown", `${plan.account}:`, plan.dataDir);
    const path = this.#path(plan);
    if ((await run("launchctl", "print", this.#target(plan))).code === 0) {
      await runOrThrow("launchctl", "bootout", this.#target(plan));
    }
    await writeAtomically(path, unit, 0o644);
    await runOrThrow("launchctl", "bootstrap", this.#domain(plan), path);
    this.#say(`wrote ${path}; ${plan.name} is running`);
  }

  async uninstall(plan: ServicePlan): Promise<void> {
    const path = this.#path(plan);
    if (!await exists(path)) {
      throw new Exit(EXIT.notFound, `Cannot uninstall ${plan.name}: ${path} does not exist`);
    }
    await run("launchctl", "bootout", this.#target(plan));
    await Deno.remove(path);
    this.#say(`stopped ${plan.name} and removed ${path}; kept data and configuration`);
  }

  async status(plan: ServicePlan): Promise<ServiceStatus> {
    const path = this.#path(plan);
    const { out } = await run("launchctl", "print", this.#target(plan));
    const pid = /^\s*pid = (\d+)/m.exec(out)?.[1];
    const installed = await exists(path);
    return {
      installed,
      running: pid !== undefined,
      state: /^\s*state = (.+)$/m.exec(out)?.[1] ?? "not loaded",
      starts_at_boot: installed,
      pid: pid === undefined ? null : Number(pid),
      restarts: null,
      says: "",
      unit: installed ? path : "",
    };
  }

  #domain(plan: ServicePlan): string {
    return plan.scope === "system" ? "system" : `gui/${Deno.uid()}`;
  }

  #target(plan: ServicePlan): string {
    return `${this.#domain(plan)}/${plan.name}`;
  }

  #path(plan: ServicePlan): string {
    const folder = plan.scope === "system"
      ? "/Library/LaunchDaemons"
      : join(this.#io.env.HOME ?? "", "Library/LaunchAgents");
    return join(folder, `${plan.name}.plist`);
  }

  #say(words: string): void {
    this.#io.err(`${words}\n`);
  }
}
