import { z } from "zod";
import { GATEWAY_NAME } from "../domain/workers/gateway.ts";
import { type LauncherConfig, LAUNCHERS_MAX, LAUNCHES_PER_LAUNCHER_MAX } from "../domain/workers/launcher.ts";
import { label, LABELS_MAX } from "../domain/workers/runner.ts";
import { ConfigError, type ConfigSource, resolveConfigPath } from "./file.ts";
import { formatPosition } from "./problem.ts";
import { buildCountSchema, buildDurationSchema } from "./value.ts";

const LAUNCHER_ARGUMENTS_MAX = 100;

const command = z.array(z.string()).min(1, { error: "must name a program and its arguments" }).max(
  LAUNCHER_ARGUMENTS_MAX,
)
  .refine(([program]) => program !== "", { error: "must begin with the name of a program" });

const launcherSchema = z.strictObject({
  labels: z.array(label).min(1, { error: "must have at least one label" }).max(LABELS_MAX),
  command,
  cancel: command.optional(),
  state: command.optional(),
  max: buildCountSchema(20, 1, LAUNCHES_PER_LAUNCHER_MAX),
  start_timeout: buildDurationSchema("5m", 1_000),
  launch_expires: buildDurationSchema("24h", 1_000),
  allow_admin: z.boolean().default(false),
}) satisfies z.ZodType<LauncherConfig>;

export const launchersSchema = z.record(z.string(), launcherSchema).default({});

/** Checks the names, and resolves the paths of programs. Throws ConfigError. */
export function checkLaunchers(launchers: z.output<typeof launchersSchema>, source: ConfigSource): void {
  const names = Object.keys(launchers);
  if (names.length > LAUNCHERS_MAX) {
    throw new ConfigError(
      `${
        formatPosition(source, ["launchers"])
      }launchers: has ${names.length} launchers, and the most are ${LAUNCHERS_MAX}`,
    );
  }
  for (const name of names) {
    if (!GATEWAY_NAME.test(name)) {
      throw new ConfigError(
        `${formatPosition(source, ["launchers", name])}launchers.${name}: ` +
          "a launcher's name must be lower-case letters, digits, - and _",
      );
    }
  }
  for (const { command, cancel, state } of Object.values(launchers)) {
    for (const argv of [command, cancel, state]) {
      const [program = ""] = argv ?? [];
      if (argv !== undefined && program.includes("/")) argv[0] = resolveConfigPath(source.base, program);
    }
  }
}
