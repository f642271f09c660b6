import type { Wakeups } from "../../base/wakeups.ts";
import type { HumanWaits } from "../../base/human_waits.ts";
import type { Clock } from "../../base/clock.ts";
import type { DataPaths } from "../../base/paths.ts";
import type { RecentActivity } from "../../base/recent_activity.ts";
import type { SecretReference } from "../../config/secret_references.ts";
import type { Config } from "../../config/schema.ts";
import type { ConfigCheck, Settings } from "../../domain/system/settings.ts";
import type { PasswordSource, ServiceState } from "../../domain/call/vocabulary.ts";
import type { Catalog } from "../../engine/catalog.ts";
import type { Mirrors } from "../../files/git/mirror.ts";
import type { SkillStore } from "../../files/skills.ts";
import type { SecretStore } from "../../store/account/secret_store.ts";
import type { Database } from "../../store/db/database.ts";
import type { DatabaseWatch } from "../../store/db/database_watch.ts";
import type { Authority } from "./authority.ts";
import type { Platforms } from "./platforms.ts";
import type { Gateways } from "./gateways.ts";
import type { Launchers } from "../../domain/workers/launcher.ts";
import type { LoginLimits } from "./login_limit.ts";
import type { RemoteRuns } from "./remote_runs.ts";
import type { RunLimits } from "./run_limit.ts";

/** Everything that operations depend on. Each operation names the dependencies that it uses. */
export interface Services {
  db: Database;
  clock: Clock;
  wakeups: Wakeups;
  paths: DataPaths;
  engines: Catalog;
  authority: Authority;
  platforms: Platforms;
  secrets: SecretStore;
  /** The repositories of workers. */
  mirrors: Mirrors;
  /** The files of skills. */
  skills: SkillStore;
  /** The parts of the configuration that name a secret. */
  secretReferences: readonly SecretReference[];
  runLimits: RunLimits;
  gateways: Gateways;
  launchers: Launchers;
  loginLimits: LoginLimits;
  /** Runs that wait for a person. */
  waits: HumanWaits;
  /** The latest steps of the runs in progress. */
  steps: RecentActivity;
  lifecycle: Lifecycle;
  auth: Config["auth"];
  limits: Config["limits"];
  bee: Pick<Config["bee"], "engine">;
  network: Config["server"];
  retention: Config["retention"];
  notices: Config["notices"];
  /** Whether the search is on. */
  searches: Config["search"];
  push: Config["push"];
  isolation: { config: Config["isolation"]; configPath: string | null; databaseUrl: string };
  configuration: Configuration;
  /** Default time zone of cron fields. */
  timeZone: string;
  /** Source of the operator's password. The password is read-only when the configuration or the environment sets it. */
  passwordSource: PasswordSource;
  /** Watches the database's files, or null for a server or a database in memory. */
  watch: DatabaseWatch | null;
  /** The database server and its standbys, or null for a local file. */
  owner: DatabaseOwner | null;
  /** Counts the spans that no collector got, or null while traces are off. */
  countDroppedSpans: (() => number) | null;
  /** All background stages and whether each is healthy. */
  stages: () => { name: string; well: boolean }[];
  /** Ends a run. Resolves after its processes ended and its outcome is stored, and for an unknown id immediately. */
  interruptRun: (executionId: string) => Promise<void>;
  /** Ends the bee's run for a conversation. Resolves afterwards. */
  interruptRouting: (sessionKey: string) => Promise<void>;
  remote: () => RemoteRuns;
}

/** A database on a libSQL server that this process owns (contract 18). */
interface DatabaseOwner {
  /** The server's fault and its remedy, or null. */
  readonly fault: string | null;
  readonly standbys: readonly { host: string; pid: number }[];
}

/** The configuration that this process started with. */
export interface Configuration {
  read(): Promise<Settings>;
  /** Checks lines for the file. Stores nothing and reads no file. */
  check(yaml: string): Promise<ConfigCheck>;
}

export type Deps<K extends keyof Services> = Pick<Services, K>;

export interface Lifecycle {
  state: ServiceState;
  /** Start of this process, Unix ms. */
  readonly startedAt: number;
  /** Aborts when open streams and waits must end. */
  readonly stopping: AbortSignal;
}
