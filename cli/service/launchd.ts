import { join } from "node:path";
import { EXIT, Exit } from "../terminal/exit.ts";
import {
  createDirectories,
  exists,
  type InitSystem,
  requireUnit,
  run,
  runOrThrow,
  writeAtomically,
} from "./init_system.ts";
import type { Io } from "../terminal/io.ts";
import type { ServicePlan } from "./service_unit.ts";

/** Creates the init system of macOS. Written from launchd's manual and never tried on macOS (docs/how-to/install.md). */
export function createLaunchd(io: Io): InitSystem {
  const domain = (plan: ServicePlan) => plan.scope === "system" ? "system" : `gui/${Deno.uid()}`;
  const target = (plan: ServicePlan) => `${domain(plan)}/${plan.name}`;
  const findPath = ({ scope, name }: ServicePlan) =>
    scope === "system"
      ? `/Library/LaunchDaemons/${name}.plist`
      : join(io.env.HOME ?? "", "Library/LaunchAgents", `${name}.plist`);
  return {
    async install(plan, unit) {
      if (plan.scope === "system" && (await run("id", plan.account)).code !== 0) {
        throw new Exit(
          EXIT.notFound,
          `Cannot install: the account ${plan.account} does not exist. Specify one with --run-as.`,
        );
      }
      for (const path of await createDirectories(plan)) io.err(`created ${path}\n`);
      if ((await run("launchctl", "print", target(plan))).code === 0) {
        await runOrThrow("launchctl", "bootout", target(plan));
      }
      const path = findPath(plan);
      await writeAtomically(path, unit, 0o644);
      await runOrThrow("launchctl", "bootstrap", domain(plan), path);
      io.err(`wrote ${path}; ${plan.name} is running\n`);
    },
    async uninstall(plan) {
      const path = findPath(plan);
      await requireUnit(plan, path);
      await run("launchctl", "bootout", target(plan));
      await Deno.remove(path);
      io.err(`stopped ${plan.name} and removed ${path}; kept data and configuration\n`);
    },
    async status(plan) {
      const path = findPath(plan);
      const { out } = await run("launchctl", "print", target(plan));
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
    },
  };
}
