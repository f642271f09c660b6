import { z } from "zod";

/**
 * States of a launch. `stored`: its command has not run. `starting`: its command may have run, so it never runs again. `launched`: its
 * command has ended. `claimed`: its runner has the run.
 */
export const LAUNCH_STATES = ["stored", "starting", "launched", "claimed", "ended"] as const;
export type LaunchState = (typeof LAUNCH_STATES)[number];

export const launchSchema = z.strictObject({
  launcher: z.string(),
  job: z.string().meta({ description: "the id that the launcher's command printed; empty: none or unknown" }),
  state: z.enum(LAUNCH_STATES),
}).meta({ id: "Launch" });
export type Launch = z.output<typeof launchSchema>;

const HOLD = "launch:";

/** Key of the block of a task whose launch is open. */
export function getLaunchHold(launcher: string): string {
  return `${HOLD}${launcher}`;
}

export function isLaunchHold(held: string): boolean {
  return held.startsWith(HOLD);
}

const LAUNCHER_HOLD = "launcher:";

/** Key of the block of tasks whose launcher starts nothing for them now. */
export function getLauncherHold(launcher: string): string {
  return `${LAUNCHER_HOLD}${launcher}`;
}

export function isLauncherHold(held: string): boolean {
  return held.startsWith(LAUNCHER_HOLD);
}

interface LaunchProgress {
  launcher: string;
  state: LaunchState;
  job: string;
  job_state: string;
  reason: string;
}

/** Formats what a launched task waits for. */
export function formatLaunchWait({ launcher, state, job, job_state, reason }: LaunchProgress): string {
  const note = reason === "" ? "" : `: ${reason}`;
  if (state === "stored") return `waits for the launcher ${launcher} to start a job`;
  if (state === "starting") return `waits for the command of the launcher ${launcher}${note}`;
  if (job === "") return `waits for a job of the launcher ${launcher}, whose command printed no id${note}`;
  return `waits for job ${job} of the launcher ${launcher}${
    job_state === "" ? "" : ` (${job_state})`
  }${note}`;
}
