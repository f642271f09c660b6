import type { Authority } from "../api/call/authority.ts";
import type { Operations } from "../api/operations.ts";
import type { Gateways } from "../api/call/gateways.ts";
import type { Lifecycle } from "../api/call/services.ts";
import type { RunLimits } from "../api/call/run_limit.ts";
import type { Wakeups } from "../base/wakeups.ts";
import type { Clock } from "../base/clock.ts";
import type { BodyBudget } from "./server/body_budget.ts";
import type { ConsoleFiles } from "./console.ts";

/** Dependencies of the HTTP application. */
export interface HttpDeps {
  api: Operations;
  authority: Authority;
  gateways: Gateways;
  lifecycle: Lifecycle;
  runLimits: RunLimits;
  /** Masks the secrets of a run in progress in a JSON value. */
  maskOfRun: (executionId: string, value: unknown) => unknown;
  clock: Clock;
  wakeups: Wakeups;
  hosts: Hosts;
  /** Limits the size of all bodies that callers without a token send at the same time. */
  unknownBodies: BodyBudget;
  /** Opens the files of the web console; null when the configuration disables it. */
  openConsole: (() => Promise<ConsoleFiles>) | null;
}

interface Hosts {
  /** The bind address. */
  host: string;
  allowed_hosts: readonly string[];
  allowed_origins: readonly string[];
}

export type StreamDeps = Pick<HttpDeps, "authority" | "lifecycle" | "clock" | "wakeups">;
