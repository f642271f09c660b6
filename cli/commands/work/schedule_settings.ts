import { OVERLAPS } from "../../../src/domain/vocabulary.ts";
import { type OptionSpec, toFields, type Values } from "../command.ts";
import { parseCommand } from "../program.ts";
import { usageError } from "../../terminal/exit.ts";

/** The flags of what checks the work of a run (contract 13). */
export const CHECK = {
  verify: {
    flags: "--verify <command>",
    about: "a shell line, or a JSON list of words, that checks the work; '' takes it away",
    type: "text",
    allowEmpty: true,
  },
  verifyTimeout: { flags: "--verify-timeout <duration>", about: "how long a check may take", type: "text" },
  verifyAttempts: {
    flags: "--verify-attempts <n>",
    about: "how often a failed check goes back to the agent",
    type: "int",
  },
} as const satisfies Record<string, OptionSpec>;

/** These flags as the field of a request. Throws a usage error. */
export function buildCheck({ verify, verifyTimeout, verifyAttempts }: Partial<Values<typeof CHECK>>) {
  const checked = parseCommand(verify, verifyTimeout, "--verify");
  if (verifyAttempts !== undefined && !checked) throw usageError("--verify-attempts goes with --verify");
  const attempts = verifyAttempts === undefined ? {} : { attempts: verifyAttempts };
  return checked === undefined ? {} : { verify: checked === null ? null : { ...checked, ...attempts } };
}

/** The flags that say how a schedule behaves (contract 15). */
export const SETTINGS = {
  name: { flags: "--name <name>", about: "what people call it", type: "text", allowEmpty: true },
  timeZone: {
    flags: "--time-zone <zone>",
    completion: "time_zone",
    about: "in which cron is read, such as Europe/Berlin",
    type: "text",
  },
  gate: {
    flags: "--gate <command>",
    about: "a shell line, or a JSON list of words: 0 starts the run, 1 skips it; '' takes it away",
    type: "text",
    allowEmpty: true,
  },
  gateTimeout: { flags: "--gate-timeout <duration>", about: "how long the gate may take", type: "text" },
  ...CHECK,
  overlap: {
    flags: "--overlap <what>",
    about: "what happens when it falls due while it still runs",
    type: "text",
    choices: OVERLAPS,
  },
  pauseAfterFailures: {
    flags: "--pause-after-failures <n>",
    about: "after so many failures in a row it pauses; 0: never",
    type: "int",
  },
  deliverTo: {
    flags: "--deliver-to <key>",
    completion: "session_key",
    about: "the conversation that gets its results; '' is its own",
    type: "text",
    allowEmpty: true,
  },
  until: { flags: "--until <time>", about: "no run starts after this", type: "time" },
  maxRuns: { flags: "--max-runs <n>", about: "completed after so many runs", type: "int" },
} as const satisfies Record<string, OptionSpec>;

/** These flags as the fields of a request. Throws a usage error. */
export function buildSettings(options: Partial<Values<typeof SETTINGS>>) {
  const { gate, gateTimeout, verify, verifyTimeout, verifyAttempts, ...rest } = options;
  const gated = parseCommand(gate, gateTimeout, "--gate");
  return {
    ...toFields(rest),
    ...(gated === undefined ? {} : { gate: gated }),
    ...buildCheck({ verify, verifyTimeout, verifyAttempts }),
  };
}
