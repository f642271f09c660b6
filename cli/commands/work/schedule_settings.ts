import { OVERLAPS } from "../../../src/domain/call/vocabulary.ts";
import { usageError } from "../../terminal/exit.ts";
import { option, toFields, type Values } from "../command.ts";
import { parseCommand } from "../program.ts";

/** The flags of the check that verifies a run (contract 13). */
export const CHECK = {
  verify: option.text(
    "--verify <command>",
    "shell line or JSON list of words that checks the work; empty removes it",
    {
      allowEmpty: true,
    },
  ),
  verifyTimeout: option.text("--verify-timeout <duration>", "time limit of the check"),
  verifyAttempts: option.int("--verify-attempts <n>", "how many times the agent may fix a failed check"),
};

/** Converts these flags to the field of a request. Throws a usage error. */
export function buildCheck({ verify, verifyTimeout, verifyAttempts }: Partial<Values<typeof CHECK>>) {
  const check = parseCommand(verify, verifyTimeout, "--verify");
  if (verifyAttempts !== undefined && !check) throw usageError("--verify-attempts requires --verify");
  const attempts = verifyAttempts === undefined ? {} : { attempts: verifyAttempts };
  return check === undefined ? {} : { verify: check === null ? null : { ...check, ...attempts } };
}

/** `--time-zone` of a cron expression. */
export const TIME_ZONE = option.text("--time-zone <zone>", "time zone of cron, e.g. Europe/Berlin", {
  completion: "time_zone",
});

/** The flags of a schedule (contract 15). */
export const SETTINGS = {
  name: option.text("--name <name>", "name of the schedule", { allowEmpty: true }),
  timeZone: TIME_ZONE,
  gate: option.text("--gate <command>", "command before each run: exit 0 runs, 1 skips; empty removes it", {
    allowEmpty: true,
  }),
  gateTimeout: option.text("--gate-timeout <duration>", "time limit of the gate"),
  ...CHECK,
  overlap: option.text("--overlap <policy>", "for a run that is due while another one is active", {
    choices: OVERLAPS,
  }),
  pauseAfterFailures: option.int(
    "--pause-after-failures <n>",
    "pause after n failures in a row; 0 never pauses",
  ),
  deliverTo: option.text(
    "--deliver-to <key>",
    "conversation that gets the results; empty for the task's own",
    {
      completion: "session_key",
      allowEmpty: true,
    },
  ),
  until: option.time("--until <time>", "start no runs after this time"),
  maxRuns: option.int("--max-runs <n>", "complete after n runs"),
};

/** Converts these flags to the fields of a request. Throws a usage error. */
export function buildSettings(options: Partial<Values<typeof SETTINGS>>) {
  const { gate, gateTimeout, verify, verifyTimeout, verifyAttempts, ...rest } = options;
  const command = parseCommand(gate, gateTimeout, "--gate");
  return {
    ...toFields(rest),
    ...(command === undefined ? {} : { gate: command }),
    ...buildCheck({ verify, verifyTimeout, verifyAttempts }),
  };
}
