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

/** ProtectHome hides programs in a home directory from the service. */
function refuseHiddenProgram(plan: ServicePlan): void {
  if (plan.scope !== "system" || !/^\/(home|root|tmp|var\/tmp|run\/user)\//.test(plan.program)) return;
  throw new Exit(
    EXIT.usage,
    `Cannot install: the service cannot read ${plan.program} in a home or temporary directory. ` +
      `Copy it first: install -m 755 ${plan.program} /usr/local/bin/svc`,
  );
}

/** Installs a service under systemd, for the machine or one user (decision 0018). */
export class Systemd implements InitSystem {
  readonly #io: Io;

  constructor(io: Io) {
    this.#io = io;
  }

  async install(plan: ServicePlan, unit: string): Promise<void> {
    refuseHiddenProgram(plan);
    const control = await this.#control(plan, "install");
    const made = plan.scope === "system" ? await this.#makeAccount(plan) : [];
    made.push(...await createDirectories(plan));
    if (plan.scope === "system") await runOrThrow("chown", `${plan.account}:`, plan.dataDir);
    const path = this.#path(plan);
    const changed = await writeAtomically(path, unit, 0o644);
    for (const one of made) this.#say(`created ${one}`);
    this.#say(changed ? `wrote ${path}` : `${path} is unchanged`);
    await runOrThrow("systemctl", ...control, "daemon-reload");
    await runOrThrow("systemctl", ...control, "enable", "--quiet", plan.name);
    const { code, err } = await run("systemctl", ...control, changed ? "restart" : "start", plan.name);
    if (code !== 0) {
      const { out } = await run(
        "journalctl",
        ...control,
        "-u",
        plan.name,
        "-n",
        "10",
        "--no-pager",
        "-o",
        "cat",
      );
      throw new Exit(EXIT.unexpected, `Cannot start ${plan.name}: ${err}\n${out}`);
    }
    const scope = control.join(" ");
    this.#say(
      `${plan.name} is running and starts ${plan.scope === "user" ? "when you log in" : "at boot"}`,
    );
    if (plan.scope === "user") this.#say("to run without a login: loginctl enable-linger");
    this.#say(
      `log, with the password of the first start: journalctl ${scope}${scope && " "}-u ${plan.name}`,
    );
    this.#say(`to control it: svc ctl -c ${plan.config} worker list`);
  }

  async uninstall(plan: ServicePlan): Promise<void> {
    const control = await this.#control(plan, "uninstall");
    const path = this.#path(plan);
    if (!await exists(path)) {
      throw new Exit(EXIT.notFound, `Cannot uninstall ${plan.name}: ${path} does not exist`);
    }
    await runOrThrow("systemctl", ...control, "disable", "--now", "--quiet", plan.name);
    await Deno.remove(path);
    await runOrThrow("systemctl", ...control, "daemon-reload");
    await run("systemctl", ...control, "reset-failed", plan.name);
    this.#say(`stopped ${plan.name} and removed ${path}; kept data and configuration`);
  }

  async status(plan: ServicePlan): Promise<ServiceStatus> {
    const control = await this.#control(plan, "show the status");
    const names = "LoadState,ActiveState,SubState,UnitFileState,MainPID,NRestarts,StatusText,FragmentPath";
    const out = await runOrThrow(
      "systemctl",
      ...control,
      "show",
      `${plan.name}.service`,
      `--property=${names}`,
    );
    const values = new Map(
      out.split("\n").map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]),
    );
    const pid = Number(values.get("MainPID") ?? 0);
    return {
      installed: values.get("LoadState") === "loaded",
      running: values.get("ActiveState") === "active",
      state: `${values.get("ActiveState")} (${values.get("SubState")})`,
      starts_at_boot: values.get("UnitFileState") === "enabled",
      pid: pid === 0 ? null : pid,
      restarts: Number(values.get("NRestarts") ?? 0),
      says: values.get("StatusText") ?? "",
      unit: values.get("FragmentPath") ?? "",
    };
  }

  async #control(plan: ServicePlan, action: string): Promise<string[]> {
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

  async #makeAccount(plan: ServicePlan): Promise<string[]> {
    if ((await run("getent", "passwd", plan.account)).code === 0) return [];
    await runOrThrow(
      "useradd",
      ...["--system", "--user-group", "--no-create-home", "--home-dir", plan.dataDir],
      ...["--shell", "/usr/sbin/nologin", plan.account],
    );
    return [`the account ${plan.account}`];
  }

  #path(plan: ServicePlan): string {
    const { env } = this.#io;
    const folder = plan.scope === "system"
      ? "/etc/systemd/system"
      : join(env.XDG_CONFIG_HOME || join(env.HOME ?? "", ".config"), "systemd/user");
    return join(folder, `${plan.name}.service`);
  }

  #say(words: string): void {
    this.#io.err(`${words}\n`);
  }
}
