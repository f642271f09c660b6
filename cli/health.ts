import { ConfigError, onlyConfig } from "../src/config/file.ts";
import { Client } from "./client/client.ts";
import { EXIT, Exit, getExitCode } from "./terminal/exit.ts";
import type { Io } from "./terminal/io.ts";

// Shorter than what container engines wait for a check.
const ANSWER_MAX_MS = 4_000;

/**
 * `svc health`: exit 0 when the service answers that it is ready, 6 when it does not (contract 6). For the health checks of
 * containers and scripts: needs no token, no curl and no shell.
 */
export async function checkHealth(args: string[], io: Io): Promise<number> {
  try {
    const ready = await new Client(io, { config: onlyConfig("health", args) }).isReady(ANSWER_MAX_MS);
    io.out(ready ? "ready\n" : "not ready\n");
    return ready ? EXIT.done : EXIT.tryAgain;
  } catch (error) {
    if (error instanceof ConfigError || error instanceof Exit) {
      io.err(`svc: ${error.message}\n`);
      return EXIT.usage;
    }
    io.out("not ready\n");
    return Math.max(getExitCode(error), EXIT.tryAgain);
  }
}
