import { join } from "node:path";
import { EXIT, Exit } from "./exit.ts";
import {
  exists,
  type InitSystem,
  makePlaces,
  must,
  run,
  type ServiceStatus,
  writeFresh,
} from "./init_system.ts";
import type { Io } from "./io.ts";
import type { ServicePlan } from "./service_unit.ts";

/** Written after launchd's manual; there was no such machine to try it on (docs/how-to/install.md). */
export class Launchd implements InitSystem {
  readonly #io: Io;

  constructor(io: Io) {
    this.#io = io;
  }

  async install(plan: ServicePlan, unit: string): Promise<void> {
    if (plan.scope === "system" && (await run("id", plan.account)).code !== 0) {
      throw new Exit(
        EXIT.notFound,
        `Cannot install: there is no account ${plan.account}; name one with --run-as`,
      );
    }
    for (const one of await makePlaces(plan)) this.#say(`made ${one}`);
    if (plan.scope === "system") await must("chown", `${plan.account}:`, plan.dataDir);
    const path = this.#path(plan);
    if ((await run("launchctl", "print", this.#target(plan))).code === 0) {
      await must("launchctl", "bootout", this.#target(plan));
    }
    await writeFresh(path, unit, 0o644);
    await must("launchctl", "bootstrap", this.#domain(plan), path);
    this.#say(`wrote ${path}; ${plan.name} runs`);
  }

  async uninstall(plan: ServicePlan): Promise<void> {
    const path = this.#path(plan);
    if (!await exists(path)) {
      throw new Exit(EXIT.notFound, `Cannot uninstall ${plan.name}: there is no ${path}`);
    }
    await run("launchctl", "bootout", this.#target(plan));
    await Deno.remove(path);
    this.#say(`stopped ${plan.name} and removed ${path}; its data and configuration stay`);
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
