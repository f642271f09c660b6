import { runChatCommand } from "../api/chat/chat_command.ts";
import { createOperations, type Dependencies, type Operations } from "../api/operations.ts";
import { settleAll } from "../base/settle_all.ts";
import { type Clock, sleep } from "../base/clock.ts";
import type { Config, LoadedConfig } from "../config/schema.ts";
import { BoxEtc } from "../engine/process/box_etc.ts";
import { endOpenProcesses } from "../engine/left_processes.ts";
import { openConsole } from "./console.ts";
import { type DatabaseOwner, isLost } from "./database_owner.ts";
import { openBootResources } from "./dependencies.ts";
import { storeIsolationDefault } from "./isolation_default.ts";
import { makeOwnWorkDirs } from "./own_work_dirs.ts";
import { createApp } from "../http/app.ts";
import { buildLogWakeup } from "../http/stream/log_stream.ts";
import { BodyBudget, UNKNOWN_BODIES_MAX_BYTES } from "../http/server/body_budget.ts";
import { Listener } from "../http/server/listener.ts";
import type { Reach } from "../http/server/run_proxy.ts";
import { openRunSocket } from "../http/server/run_socket.ts";
import type { DataLock } from "./data_directory.ts";
import { type BootResources, buildDependencies } from "./services.ts";
import { createDeliveryStages, startPlatforms, stopPlatforms, storeWebhooks } from "./platforms.ts";
import { createLogger, redact } from "../base/log.ts";
import { Admission } from "../pipeline/dispatch/admission.ts";
import { Bee } from "../pipeline/intake/bee.ts";
import { Dispatcher } from "../pipeline/dispatch/dispatcher.ts";
import { createServicePlanner } from "../run/local/service_boxes.ts";
import { createEnvironmentBuilder } from "../run/environment.ts";
import { signRunToken } from "../run/run_token.ts";
import { RunMasks } from "../run/run_masks.ts";
import { createTelemetry, type Telemetry } from "../pipeline/telemetry/telemetry.ts";
import { createVariableResolver } from "../run/local/service_variables.ts";
import { Executor } from "../run/local/executor.ts";
import { createIntake } from "../pipeline/intake/intake.ts";
import type { Stage } from "../pipeline/stage/stage.ts";
import { createQuestionStage } from "../pipeline/delivery/questions.ts";
import { Rescuer } from "../pipeline/maintenance/rescuer.ts";
import { createScheduler } from "../pipeline/dispatch/scheduler.ts";
import type { Platform } from "../platform/platform.ts";
import { removePartials } from "../files/uploads.ts";
import { findOwnProgram, installShim } from "./shim.ts";
import { record } from "../store/events/journal.ts";
import { deleteOtherLaunchers } from "../store/workers/launcher.ts";
import { switchSearch } from "../store/events/search_index.ts";
import { createMaintenanceStages } from "./maintenance.ts";
import { createRemote, type Remote } from "./remote.ts";
import { LEASE_TIMES, type LeaseTimes } from "../domain/workers/runner.ts";
import { WAKEUP, Wakeups } from "../base/wakeups.ts";

const log = createLogger("server");

const REPAIR =
  "The service starts no run and refuses every write. Stop it, find the cause, and start it again. Restore a damaged " +
  "database with: svc restore <file>";
const LEAVING =
  "The process ends its runs and exits with code 1. Start it again with --standby: without, it fails while another " +
  "server runs";

/** Replacements for tests, and options of the process. */
export interface ServerOptions {
  clock?: Clock;
  wakeups?: Wakeups;
  platforms?: readonly Platform[];
  /** File mode mask of the programs that are started. */
  umask?: number;
  /** If set, replaces the detected memory limit. */
  memoryBytes?: number;
  /** Waits while another server owns the database, until this aborts (contract 18). */
  standby?: AbortSignal;
  leaseTimes?: LeaseTimes;
  /** How boxes reach hosts outside. */
  reach?: Reach;
}

/** Composes, starts and stops the whole service. */
export class Server {
  readonly parts: Dependencies;
  readonly config: Config;
  readonly api: Operations;
  readonly unknownBodies = new BodyBudget(UNKNOWN_BODIES_MAX_BYTES);
  readonly stages: Stage[];
  readonly executor: Executor;
  readonly dispatcher: Dispatcher;
  /** The password that the first start generated, or null. */
  readonly generatedPassword: string | null;
  readonly #rescuer: Rescuer;
  readonly #remote: Remote;
  readonly #bee: Bee;
  readonly #sending: ReturnType<typeof createDeliveryStages>;
  readonly #telemetry: Telemetry | null;
  readonly #listener: Listener;
  readonly #lock: DataLock;
  readonly #owner: DatabaseOwner | null;
  readonly #stopping = new AbortController();
  #graceMs: number;

  private constructor(foundation: BootResources, replaced: ServerOptions) {
    const { loaded, paths, db, operator, clock, lock, owner, port, taken, platforms } = foundation;
    const { config } = loaded;
    const wakeups = replaced.wakeups ?? new Wakeups();
    db.onCommit = (names) => {
      for (const name of new Set(names)) wakeups.notify(name);
      wakeups.notify(WAKEUP.journal);
    };
    db.onBroken = (reason, cause) => void this.#failStop(reason, cause);
    const base = { db, clock, wakeups };
    const telemetry = createTelemetry({
      ...base,
      config: config.telemetry,
      resolveSecret: (value) => this.parts.secrets.resolve(value),
    });
    this.#telemetry = telemetry;
    const machine = { umask: replaced.umask ?? 0o022, memoryBytes: replaced.memoryBytes };
    const process = { wakeups, ...machine, telemetry, stopping: this.#stopping.signal };
    this.parts = buildDependencies(foundation, process, {
      stages: () => this.stages,
      interruptRun: async (executionId) => {
        await Promise.all([this.executor.interrupt(executionId), this.#remote.interrupt(executionId)]);
      },
      interruptRouting: (sessionKey) => this.#bee.runner.interrupt(sessionKey),
      remote: () => this.#remote,
    }, () => this.#listener.url);
    const { engines, secrets, authority, gateways, lifecycle, timeZone } = this.parts;
    const { network, waits, steps, interruptRun } = this.parts;
    this.config = config;
    this.generatedPassword = operator.generated;
    if (operator.compare !== null) authority.awaitVersion(operator.compare(this.#stopping.signal));
    this.#lock = lock;
    this.#owner = owner;
    this.#graceMs = config.shutdown_grace;
    const rules = { defaultZone: timeZone, maxAttempts: config.limits.max_attempts };
    const openedAt = clock.now();
    const environmentOf = createEnvironmentBuilder({
      paths,
      tokenOf: (run) => signRunToken(authority.key, run, clock.now()),
      timeZone,
      url: () => this.#listener.url,
      resolveVariables: createVariableResolver({
        ...{ db, secrets },
        findGatewayProblem: (name) => gateways.findProblem(name),
      }),
      traceRun: telemetry?.traceRun,
      inherited: Deno.env.toObject(),
    });
    secrets.onChange(async ({ name, workerIds }) => {
      // An engine of the configuration runs for any worker.
      const isOfEngine = this.parts.secretReferences.some(({ secret, user }) =>
        secret === name && user.startsWith("engine:")
      );
      await Promise.all((isOfEngine ? [null] : workerIds).map((id) => engines.release(id)));
    });
    const masks = new RunMasks();
    const endGateways = (executionId: string) => gateways.closeRun(executionId);
    const planBox = createServicePlanner({
      paths,
      configPaths: loaded.path === null ? [] : [loaded.path],
      ownProgram: findOwnProgram(),
      etc: new BoxEtc(paths.etc),
      port: () => (port.addr as Deno.NetAddr).port,
      openSocket: (request) =>
        openRunSocket(
          { handle: (asked, peer) => this.#listener.handle(asked, peer), reach: replaced.reach },
          request,
        ),
    }, { db, config: config.isolation });
    const running = {
      ...base,
      config,
      engines,
      paths,
      environmentOf,
      masks,
      planBox,
      umask: machine.umask,
      endGateways,
      ...{ secrets, mirrors: this.parts.mirrors, skills: this.parts.skills, isolation: config.isolation },
    };
    const admission = new Admission({
      ...{ db, engines, paths },
      timeZone,
      maxRunsPerHour: config.limits.max_runs_per_hour,
    });
    this.executor = new Executor({
      ...running,
      rules,
      logWakeup: buildLogWakeup,
      waits,
      steps,
      calls: telemetry?.calls ?? null,
    });
    this.#remote = createRemote(this.parts, {
      rules,
      steps,
      masks,
      traceRun: telemetry?.traceRun,
      times: replaced.leaseTimes ?? LEASE_TIMES,
      runnerUrl: () => config.server.public_url || this.#listener.url,
    });
    this.dispatcher = new Dispatcher({
      ...{ ...base, paths },
      waits,
      admission,
      placement: this.#remote.placement,
      maxConcurrentRuns: config.limits.max_concurrent_runs,
      maxAttempts: config.limits.max_attempts,
      executor: this.executor,
    });
    this.#rescuer = new Rescuer({
      ...base,
      ...{ rules, waits, steps },
      running: () => [...this.executor.running, ...this.#bee.runner.running].map((run) => run.execution_id),
    });
    this.#bee = new Bee({ ...running, timeZone, admission, openedAt });
    this.#sending = createDeliveryStages(base, {
      platforms,
      secrets,
      steps,
      paths,
      config,
      umask: machine.umask,
      key: () => authority.key,
      publicUrl: this.parts.signIn.publicUrl,
    });
    this.stages = [
      this.#rescuer.stage,
      createIntake({
        ...base,
        config,
        openedAt,
        executeCommand: (message, command, rest) => runChatCommand(this.parts, message, command, rest),
      }),
      this.#bee.stage,
      createQuestionStage(base),
      createScheduler({ ...base, ...rules, interruptRun, catchUpWindowMs: config.scheduler.catch_up_window }),
      this.dispatcher.stage,
      this.#remote.launches.stage,
      ...this.#sending.stages,
      ...(telemetry === null ? [] : [telemetry.stage]),
      ...createMaintenanceStages(this.parts, config, async (executionId, words) => {
        await Promise.all([
          this.executor.stopRun(executionId, words),
          this.#remote.stopFor(executionId, words),
          this.#bee.runner.stopRun(executionId, words),
        ]);
      }),
    ];
    this.api = createOperations(this.parts);
    const app = createApp({
      api: this.api,
      ...{ authority, gateways, lifecycle, runLimits: this.parts.runLimits },
      maskOfRun: (executionId, value) => masks.mask(executionId, value),
      clock,
      wakeups,
      hosts: network,
      unknownBodies: this.unknownBodies,
      openConsole: network.console ? openConsole : null,
    });
    const announced = { path: paths.serverFile, instance: authority.instance };
    this.#listener = new Listener(app, { ...config.server, port, taken }, announced);
  }

  /**
   * Takes the data directory and the port, opens the database and upgrades its schema. Throws LockedError, ServiceError, StandbyEnded or an
   * Error for the operator.
   */
  static async open(loaded: LoadedConfig, parts: ServerOptions = {}): Promise<Server> {
    return new Server(await openBootResources(loaded, parts), parts);
  }

  /** The address after start(). */
  get url(): string {
    return this.#listener.url;
  }

  /** Answers requests, ends runs that a dead server left, and starts the stages. A stop meanwhile cancels the start. */
  start(): Promise<void> {
    return this.#starting = this.#start();
  }

  #starting: Promise<void> = Promise.resolve();

  async #start(): Promise<void> {
    const { parts } = this;
    await storeIsolationDefault(parts, this.config);
    await parts.db.write([deleteOtherLaunchers(Object.keys(parts.launchers))]);
    await switchSearch(
      parts.db,
      this.config.search,
      (rows) => log.info("Building the search index: {rows} rows.", { rows }),
    );
    this.#listener.listen();
    await settleAll<unknown>([
      installShim(parts.paths.bin),
      removePartials(parts.paths.uploads),
      Deno.remove(parts.paths.backup, { recursive: true }).catch(() => {}),
      this.#remote.renew().then(() => this.#rescuer.rescue()).then(() => this.#rescuer.rescueBee()),
    ]);
    const removeOpenRuns = await endOpenProcesses(parts.paths.runs);
    // Not awaited: an agent may have left millions of files.
    void removeOpenRuns();
    await makeOwnWorkDirs(parts.db, parts.paths);
    await storeWebhooks(parts, this.config);
    if (parts.lifecycle.state !== "starting") return;
    for (const stage of this.stages) stage.start();
    startPlatforms(parts);
    await parts.db.write([record(parts.clock.now(), { kind: "system.started" })]);
    parts.watch?.start();
    if (parts.lifecycle.state === "starting") parts.lifecycle.state = "ready";
  }

  /** Resolves when another server may own the database: this process must end (decision 0021). */
  get lost(): Promise<string> {
    return this.#lost.promise;
  }

  readonly #lost = Promise.withResolvers<string>();

  /** Ends all runs when the service can no longer write. Reads continue until an operator acts (reliability DBF-9). */
  async #failStop(reason: string, cause: unknown): Promise<void> {
    const { parts } = this;
    if (parts.lifecycle.state === "stopping") return;
    parts.lifecycle.state = "failed";
    parts.watch?.stop();
    const lost = isLost(reason);
    log.error(`STOPPED WRITING to the database {database}: {reason}. ${lost ? LEAVING : REPAIR}`, {
      database: redact(this.config.database.url),
      reason,
      cause,
    });
    if (lost) this.#lost.resolve(reason);
    this.dispatcher.drain();
    this.#bee.drain();
    await Promise.all([this.executor.stopAll(), this.#bee.runner.stopAll()]);
  }

  /** Handles a request without a port, for tests. */
  fetch(request: Request, peer = "127.0.0.1"): Promise<Response> {
    return this.#listener.handle(request, peer);
  }

  /** Ends the drain, as a second signal does (reliability SHD-3). */
  hurry(): void {
    this.#graceMs = 0;
    this.#hurried.abort();
  }

  readonly #hurried = new AbortController();

  /**
   * Stops in order: starts no new runs, waits for runs within the grace, ends the rest and returns them to the queue, ends streams, finishes
   * requests, closes the database (reliability SHD-1 to SHD-6). A second call returns the same promise.
   */
  stop(): Promise<void> {
    return this.#stopped ??= this.#stop();
  }

  #stopped: Promise<void> | null = null;

  async #stop(): Promise<void> {
    const { parts } = this;
    parts.lifecycle.state = "stopping";
    this.dispatcher.drain();
    this.#bee.drain();
    // An unfinished start still needs the database.
    await this.#starting.catch(() => {});
    parts.watch?.stop();
    // A stage may start a run until it has stopped.
    await Promise.all([this.dispatcher.stage.stop(), this.#bee.stage.stop()]);
    await stopPlatforms(parts.platforms);
    if (this.dispatcher.running > 0 && this.#graceMs > 0) {
      log.info(
        "Waiting up to {seconds} s for {runs} runs to finish. A second signal ends them immediately.",
        {
          seconds: this.#graceMs / 1000,
          runs: this.dispatcher.running,
        },
      );
      const grace = sleep(parts.clock, this.#graceMs, this.#hurried.signal);
      await Promise.race([this.dispatcher.waitForRuns(), grace]);
    }
    await Promise.all([this.executor.stopAll(), this.#bee.runner.stopAll()]);
    await this.dispatcher.waitForRuns();
    await parts.engines.release("");
    await Promise.all(this.stages.map((stage) => stage.stop()));
    await Promise.all([this.#sending.settled(), this.#telemetry?.stop(), this.#remote.launches.stop()]);
    await parts.db.write([record(parts.clock.now(), { kind: "system.stopped" })]).catch(() => {});
    this.#stopping.abort();
    await this.#listener.close();
    await parts.loginLimits.save();
    await this.#owner?.release();
    await parts.db.close();
    this.#lock.close();
  }
}
