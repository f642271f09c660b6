import { z } from "zod";
import { countBytes } from "../../base/bytes.ts";
import { text } from "../call/field.ts";

/** Limits of a command: words, bytes of one word, bytes of all words. Lists show commands whole. */
const COMMAND_MAX_WORDS = 100;
const WORD_MAX_BYTES = 4_000;
const COMMAND_MAX_BYTES = 8_000;
const COMMAND_TIMEOUT_DEFAULT_MS = 600_000;
const COMMAND_TIMEOUT_MAX_MS = 86_400_000;

const word = text(WORD_MAX_BYTES).refine((word) => word !== "", { error: "must not be empty" });
const argv = z.array(word).min(1, { error: "must name a program" }).max(COMMAND_MAX_WORDS).refine(
  (words) => words.reduce((sum, word) => sum + countBytes(word), 0) <= COMMAND_MAX_BYTES,
  { error: `must be at most ${COMMAND_MAX_BYTES} bytes in all` },
).meta({ description: "the program and its arguments; runs without a shell" });

const timeout_ms = z.int().min(1).max(COMMAND_TIMEOUT_MAX_MS).default(COMMAND_TIMEOUT_DEFAULT_MS);

/** A program that decides whether a schedule's run starts (contract 15). */
export const gateSchema = z.strictObject({ command: argv, timeout_ms }).meta({
  id: "Gate",
  examples: [{ command: ["git", "fetch", "--dry-run"], timeout_ms: 60_000 }],
});
export type Gate = z.output<typeof gateSchema>;

const VERIFY_ATTEMPTS_DEFAULT = 2;
const VERIFY_ATTEMPTS_MAX = 10;

/** A program that verifies the work of a run (contract 13). */
export const verifySchema = z.strictObject({
  command: argv,
  timeout_ms,
  attempts: z.int().min(0).max(VERIFY_ATTEMPTS_MAX).default(VERIFY_ATTEMPTS_DEFAULT)
    .meta({ description: "how many times its output goes back to the agent before the run fails" }),
}).meta({ id: "Verify", examples: [{ command: ["make", "test"], timeout_ms: 600_000, attempts: 2 }] });
export type Verify = z.output<typeof verifySchema>;

/** Result of a run's checks. `status` is null without checks, and when the run ended before them (contract 13). */
export const verifiedSchema = z.strictObject({
  status: z.enum(["passed", "failed"]).nullable(),
  attempts: z.int().meta({ description: "how many times the check ran" }),
}).meta({ id: "Verified" });
export type VerifyResult = z.output<typeof verifiedSchema>;
