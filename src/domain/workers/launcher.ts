// Launchers: commands of the configuration that start a runner for one run (contract 33)
import { z } from "zod";
import { time } from "../call/field.ts";

export const LAUNCHERS_MAX = 50;
export const LAUNCHES_PER_LAUNCHER_MAX = 1_000;
/** Failed starts in a row after which a launcher is paused. */
export const FAILED_STARTS_MAX = 5;
/** Pause of a launcher after a failed start. */
export const START_RETRY = { firstMs: 10_000, lastMs: 600_000 };
export const JOB_MAX_CHARACTERS = 200;

/** A launcher as in `config.yaml`. */
export interface LauncherConfig {
  labels: string[];
  command: string[];
  cancel?: string[] | undefined;
  state?: string[] | undefined;
  max: number;
  start_timeout: number;
  launch_expires: number;
  allow_admin: boolean;
}

export type Launchers = Readonly<Record<string, LauncherConfig>>;

export const launcherSchema = z.strictObject({
  name: z.string(),
  labels: z.array(z.string()),
  max: z.int().meta({ description: "the most launches at a time" }),
  open: z.int().meta({ description: "launches whose run has not been claimed" }),
  running: z.int().meta({ description: "launches whose runner has the run" }),
  paused: z.boolean().meta({
    description: `after ${FAILED_STARTS_MAX} failed starts in a row; ends by resume`,
  }),
  failures: z.int().meta({ description: "failed starts in a row" }),
  retry_at: time.nullable().meta({ description: "launches nothing before, after a failed start" }),
  last_error: z.string().meta({ description: "why the last start failed; empty after a claim" }),
}).meta({ id: "Launcher" });
export type LauncherView = z.output<typeof launcherSchema>;
