import { ConfigError, readConfigFlag } from "../src/config/file.ts";
import { Client } from "./client/client.ts";
import { EXIT, Exit, getExitCode } from "./terminal/exit.ts";
import type { Io } from "./terminal/io.ts";

// Less than the time limit of container engines for a check.
const ANSWER_MAX_MS = 4_000;

/**
 * `svc health`: returns exit code 0 if the service is ready, else 6 (contract 6). For health checks: needs no token,
 * no curl and no shell.
 */
export async function checkHealth(args: string[], io: Io): Promise<number> {
  try {
    const ready = await new Client(io, { config: readConfigFlag("health", args) }).isReady(ANSWER_MAX_MS);
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
