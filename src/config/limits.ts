import { z } from "zod";
import { buildCountSchema, buildDurationSchema } from "./value.ts";

const MIB = 1024 * 1024;

/** The key `limits` of `config.yaml`. */
export const limitsSchema = z.strictObject({
  max_concurrent_runs: buildCountSchema(4, 1, 10_000),
  max_attempts: buildCountSchema(3, 1, 100),
  max_waiting_messages: buildCountSchema(1_000, 1, 1_000_000),
  max_upload_bytes: buildCountSchema(50 * MIB, 1, 10_240 * MIB),
  max_prompt_bytes: buildCountSchema(MIB, 300 * 1024, 64 * MIB),
  max_tree_bytes: buildCountSchema(10_240 * MIB, MIB, 10_240 * 1_024 * MIB),
  max_log_bytes: buildCountSchema(16 * MIB, 1_024, 10_240 * MIB),
  max_runs_per_hour: buildCountSchema(1_000, 1, 1_000_000),
  max_chain_depth: buildCountSchema(5, 0, 1_000),
  stop_grace: buildDurationSchema("5s"),
});
