import { ConfigError } from "../config/file.ts";
import { LockedError } from "./data_directory.ts";

/** The exit codes of the commands that run on the service's machine (contract 6). */
export const EXIT = {
  done: 0,
  unexpected: 1,
  config: 2,
  refused: 4,
  inUse: 5,
  declined: 7,
  timedOut: 124,
} as const;

/** Returns the exit code for an error that ends a command. */
export function getExitCode(error: unknown): number {
  if (error instanceof ConfigError) return EXIT.config;
  return error instanceof LockedError ? EXIT.inUse : EXIT.unexpected;
}
