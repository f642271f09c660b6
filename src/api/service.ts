import type { Clock } from "../base/clock.ts";
import type { Config } from "../config/schema.ts";
import type { DatabaseWatch } from "../store/watch.ts";
import type { Caller } from "../domain/scope.ts";
import type { Catalog } from "../engine/catalog.ts";
import type { DataPaths } from "../base/paths.ts";
import type { Database } from "../store/database.ts";
import type { Bells } from "../base/bells.ts";
import type { Authority } from "./authority.ts";
import type { LoginLimits } from "./login_limit.ts";
import type { RunLimits } from "./run_limit.ts";

/** What every operation works with. Made once by serve.ts, handed to api/ and http/. */
export interface Service {
  config: Config;
  paths: DataPaths;
  clock: Clock;
  /** The zone in which cron fields are read when a task names none (contract 3). */
  timeZone: string;
  db: Database;
  bells: Bells;
  engines: Catalog;
  authority: Authority;
  /** What each run has made so far (reliability SCP-7). */
  runLimits: RunLimits;
  /** How many logins failed in this minute. */
  loginLimits: LoginLimits;
  /** Where the operator's password is set; only a stored one can be changed over the API (contract 5). */
  passwordFrom: "config" | "environment" | "store";
  /** When this process started, Unix ms. */
  startedAt: number;
  /** `stopping`: runs are being drained, new work is refused. `failed`: nothing can be stored any more. */
  state: "starting" | "ready" | "stopping" | "failed";
  /** The files of the database, where it is one. */
  watch: DatabaseWatch | null;
  /** Every background stage, and whether it is alive. */
  stages: () => { name: string; well: boolean }[];
  /** Aborts when open streams and waits have to end. */
  stopping: AbortSignal;
  /** Ends what the coordinator is doing for a conversation, and resolves when it is over. */
  interruptRouting: (sessionKey: string) => Promise<void>;
  /** Ends a run and resolves when its processes are gone and its outcome is stored. Unknown ids resolve at once. */
  interrupt: (executionId: string) => Promise<void>;
}

/** One request as an operation sees it. */
export interface Call {
  caller: Caller;
  /** From the header Idempotency-Key, or null. */
  idempotency: IdempotencyKey | null;
}

/** The identity of a repeatable request (contract 1). */
export interface IdempotencyKey {
  /** Hash of caller, route and key. */
  key: string;
  /** Hash of the input: the same key with another input is a conflict. */
  fingerprint: string;
}
