import type { Wakeups } from "../../base/wakeups.ts";
import type { HumanWaits } from "../../base/human_waits.ts";
import type { Clock } from "../../base/clock.ts";
import type { DataPaths } from "../../base/paths.ts";
import type { Config } from "../../config/schema.ts";
import type { PasswordSource, ServiceState } from "../../domain/call/vocabulary.ts";
import type { Catalog } from "../../engine/catalog.ts";
import type { Database } from "../../store/db/database.ts";
import type { DatabaseWatch } from "../../store/db/database_watch.ts";
import type { Authority } from "./authority.ts";
import type { Platforms } from "./platforms.ts";
import type { LoginLimits } from "./login_limit.ts";
import type { RemoteRuns } from "./remote_runs.ts";
import type { RunLimits } from "./run_limit.ts";

/**
 * Everything that operations are made of. Only `boot` and the composition (`operations.ts`) hold all of it: an operation
 * names what it uses with Needs, and gets no more.
 */
export interface Services {
  db: Database;
  clock: Clock;
  wakeups: Wakeups;
  paths: DataPaths;
  engines: Catalog;
  authority: Authority;
  platforms: Platforms;
  runLimits: RunLimits;
  loginLimits: LoginLimits;
  /** The runs that wait for a person. */
  waits: HumanWaits;
  lifecycle: Lifecycle;
  auth: Config["auth"];
  limits: Config["limits"];
  bee: Pick<Config["bee"], "engine">;
  network: Config["server"];
  retention: Config["retention"];
  /** The zone in which cron fields are read when a task names none (contract 3, Task). */
  timeZone: string;
  /** Where the operator's password is set; anything but configuration and environment means the database. */
  passwordSource: PasswordSource;
  /** Watches the files of the database; null when it is on a server or in memory. */
  watch: DatabaseWatch | null;
  /** What is known of the database's server and of who waits to take over; null when the database is a file. */
  owner: Held | null;
  /** Every background stage, and whether it is alive. */
  stages: () => { name: string; well: boolean }[];
  /** Ends a run and resolves when its processes are gone and its outcome is stored. Unknown ids resolve at once. */
  interruptRun: (executionId: string) => Promise<void>;
  /** Ends what the bee is doing for a conversation, and resolves when it is over. */
  interruptRouting: (sessionKey: string) => Promise<void>;
  /** The runs that runners have. */
  remote: () => RemoteRuns;
}

/** A database on a libSQL server that this process holds (contract 18). */
interface Held {
  /** What is wrong with its server, and the cure; or null. */
  readonly fault: string | null;
  /** Who waits to take over. */
  readonly standbys: readonly { host: string; pid: number }[];
}

/** The parts that an operation uses. */
export type Deps<K extends keyof Services> = Pick<Services, K>;

/** Where the process is between its start and its end. */
export interface Lifecycle {
  state: ServiceState;
  /** When this process started, Unix ms. */
  readonly startedAt: number;
  /** Aborts when open streams and waits have to end. */
  readonly stopping: AbortSignal;
}
