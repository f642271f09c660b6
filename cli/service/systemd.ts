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

/** Creates the init system of Linux, for services of the machine or of one user (decision 0018). */
export function createSystemd(io: Io): InitSystem {
  const say = (words: string) => io.err(`${words}\n`);
  return {
    async install(plan, unit) {
      refuseHiddenProgram(plan);
      const scopeFlags = await findScopeFlags(plan, "install");
      const created = plan.scope === "system" ? await createAccount(plan) : [];
      created.push(...await createDirectories(plan));
      const path = findPath(plan, io.env);
      const isChanged = await writeAtomically(path, unit, 0o644);
      for (const one of created) say(`created ${one}`);
      say(isChanged ? `wrote ${path}` : `${path} is unchanged`);
      await runOrThrow("systemctl", ...scopeFlags, "daemon-reload");
      await runOrThrow("systemctl", ...scopeFlags, "enable", "--quiet", plan.name);
      await startUnit(plan, scopeFlags, isChanged ? "restart" : "start");
      const when = plan.scope === "user" ? "when you log in" : "at boot";
      say(`${plan.name} is running and starts ${when}`);
      if (plan.scope === "user") say("to run without a login: loginctl enable-linger");
      const journal = ["journalctl", ...scopeFlags, "-u", plan.name].join(" ");
      say(`log, with the password of the first start: ${journal}`);
      say(`to control it: svc ctl -c ${plan.config} worker list`);
    },
    async uninstall(plan) {
      const scopeFlags = await findScopeFlags(plan, "uninstall");
      const path = findPath(plan, io.env);
      await requireUnit(plan, path);
      await runOrThrow("systemctl", ...scopeFlags, "disable", "--now", "--quiet", plan.name);
      await Deno.remove(path);
      await runOrThrow("systemctl", ...scopeFlags, "daemon-reload");
      await run("systemctl", ...scopeFlags, "reset-failed", plan.name);
      say(`stopped ${plan.name} and removed ${path}; kept data and configuration`);
    },
    async status(plan) {
      const scopeFlags = await findScopeFlags(plan, "show the status");
      const names = "LoadState,ActiveState,SubState,UnitFileState,MainPID,NRestarts,StatusText,FragmentPath";
      const unit = `${plan.name}.service`;
      const out = await runOrThrow("systemctl", ...scopeFlags, "show", unit, `--property=${names}`);
      const values: Record<string, string | undefined> = Object.fromEntries(
        out.split("\n").map((line) => line.split(/=(.*)/s)),
      );
      return {
        installed: values.LoadState === "loaded",
        running: values.ActiveState === "active",
        state: `${values.ActiveState} (${values.SubState})`,
        starts_at_boot: values.UnitFileState === "enabled",
        pid: Number(values.MainPID ?? 0) || null,
        restarts: Number(values.NRestarts ?? 0),
        says: values.StatusText ?? "",
        unit: values.FragmentPath ?? "",
      };
    },
  };
}

// ProtectHome hides programs in a home directory from the service.
function refuseHiddenProgram(plan: ServicePlan): void {
  if (plan.scope !== "system" || !/^\/(home|root|tmp|var\/tmp|run\/user)\//.test(plan.program)) return;
  throw new Exit(
    EXIT.usage,
    `Cannot install: the service cannot read ${plan.program} in a home or temporary directory. ` +
      `Copy it first: install -m 755 ${plan.program} /usr/local/bin/svc`,
  );
}

/** Returns the flags with which systemctl reaches the units of a scope. Throws Exit 1 if systemctl cannot reach them. */
async function findScopeFlags(plan: ServicePlan, action: string): Promise<string[]> {
  if (!await exists("/run/systemd/system")) {
    throw new Exit(
      EXIT.unexpected,
      `Cannot ${action}: this machine does not use systemd. Adapt the output of \`svc service print\` to your service manager.`,
    );
  }
  if (plan.scope === "system") return [];
  const { code, err } = await run("systemctl", "--user", "show-environment");
  if (code === 0) return ["--user"];
  throw new Exit(
    EXIT.unexpected,
    `Cannot ${action}: systemd has no user session (${err}). Log in directly, without su or sudo, or use --system.`,
  );
}

async function startUnit({ name }: ServicePlan, scopeFlags: string[], verb: string): Promise<void> {
  const { code, err } = await run("systemctl", ...scopeFlags, verb, name);
  if (code === 0) return;
  const last = ["-u", name, "-n", "10", "--no-pager", "-o", "cat"];
  const { out } = await run("journalctl", ...scopeFlags, ...last);
  throw new Exit(EXIT.unexpected, `Cannot start ${name}: ${err}\n${out}`);
}

async function createAccount(plan: ServicePlan): Promise<string[]> {
  if ((await run("getent", "passwd", plan.account)).code === 0) return [];
  await runOrThrow(
    "useradd",
    ...["--system", "--user-group", "--no-create-home", "--home-dir", plan.dataDir],
    ...["--shell", "/usr/sbin/nologin", plan.account],
  );
  return [`the account ${plan.account}`];
}

function findPath({ scope, name }: ServicePlan, env: Io["env"]): string {
  const folder = scope === "system"
    ? "/etc/systemd/system"
    : join(env.XDG_CONFIG_HOME || join(env.HOME ?? "", ".config"), "systemd/user");
  return join(folder, `${name}.service`);
}
