import type { Authority } from "../api/call/authority.ts";
import type { Operations } from "../api/operations.ts";
import type { Lifecycle } from "../api/call/services.ts";
import type { RunLimits } from "../api/call/run_limit.ts";
import type { Wakeups } from "../base/wakeups.ts";
import type { Clock } from "../base/clock.ts";
import type { ConsoleFiles } from "./console.ts";

/** What HTTP works with: the operations, and what authentication and streams need. */
export interface Door {
  api: Operations;
  authority: Authority;
  lifecycle: Lifecycle;
  runLimits: RunLimits;
  clock: Clock;
  wakeups: Wakeups;
  hosts: Hosts;
  /** The files of the web console; null when the configuration leaves it out. */
  openConsole: (() => Promise<ConsoleFiles>) | null;
}

/** Which hosts and origins get an answer (contract 2.11). */
interface Hosts {
  /** The address that the server is bound to. */
  host: string;
  allowed_hosts: readonly string[];
  allowed_origins: readonly string[];
}

/** What a stream needs. */
export type StreamParts = Pick<Door, "authority" | "lifecycle" | "clock" | "wakeups">;
