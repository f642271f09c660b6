import { join } from "node:path";
import { FAKE_AGENT } from "../harness/fakes/agents.ts";
import { waitUntilOnline } from "../harness/service/runner.ts";
import { createRandom } from "../harness/model/schedule.ts";
import { RUNNER_LOST } from "../../src/run/ending.ts";
import { walk } from "./checker.ts";
import { SHORT_LEASES } from "./leases.ts";
import { DEEDS, isLostAnswer, type Plan } from "./load.ts";
import { checkWorkRoot } from "./run_checker.ts";
import { RunnerVictim, type Trouble } from "./runner_victim.ts";
import type { Victim } from "./victim.ts";
import { pause, readRows } from "../harness/model/workload.ts";

const CALM_MEAN_MS = 6_000;
// The share of the service's lives in which it is stopped. Afterwards the service stays away for longer than
// a lease.
const FREEZE_SHARE = 0.2;
const AWAY_SHARE = 0.12;
// How often a worker moves away from a lost runner.
const MOVE_SHARE = 0.5;
// Long runs outlive a lease, and a part of them ends only by force.
const MARKS: Plan["deeds"] = [
  [0.3, (n, dice) => `mark ${(dice * 1.5).toFixed(2)} # ${n}`],
  [0.04, (n, dice) => `mark ${(4 + dice * 22).toFixed(2)} # ${n}`],
  [0.04, (n, dice) => `mark-stubborn ${(4 + dice * 22).toFixed(2)} # ${n}`],
];

/** The timeout of a run, which bounds the longest one. */
export const TIMEOUT = "40s";

/**
 * Plans the load of a service with `runners` runners: workers here, on each runner alone, and on any of them;
 * half of them talk.
 */
export function buildPlan(runners: number): Plan {
  const group = [
    [],
    ["any"],
    ["any"],
    ...Array.from({ length: runners }, (_, i) => [`only-${formatName(i)}`]),
  ];
  const rest = 1 - MARKS.reduce((sum, [share]) => sum + share, 0);
  return {
    workers: [...group, ...group],
    sessions: group.length,
    deeds: [
      ...MARKS,
      ...DEEDS.map(([share, text]) => [share * rest, text] as Plan["deeds"][number]),
    ],
    // The service may be stopped for longer than a lease.
    countdownMs: 2 * SHORT_LEASES.lease_ms + 10_000,
  };
}

export class Runners {
  readonly #all: RunnerVictim[];
  readonly #victim: Victim;
  readonly #log: Deno.FsFile;
  readonly #logPath: string;
  readonly #faults: string[];
  readonly #tokens: string[];
  #movable: string[] = [];
  #moved = 0;
  #troubling: Promise<void>[] = [];

  private constructor(
    victim: Victim,
    all: RunnerVictim[],
    { tokens, log, logPath, faults }: {
      tokens: string[];
      log: Deno.FsFile;
      logPath: string;
      faults: string[];
    },
  ) {
    this.#victim = victim;
    this.#all = all;
    this.#tokens = tokens;
    this.#log = log;
    this.#logPath = logPath;
    this.#faults = faults;
  }

  /** Adds `count` runners to a service that is ready, and starts them; resolves when all are online. */
  static async begin(victim: Victim, folder: string, count: number): Promise<Runners> {
    const api = await victim.reach();
    const logPath = join(folder, "runners.log");
    const log = Deno.openSync(logPath, { create: true, append: true });
    const tokens: string[] = [];
    const all: RunnerVictim[] = [];
    const faults: string[] = [];
    const env = `{ FAKE_LEDGER: ${victim.agentLedger}, FAKE_LANES: "1" }`;
    const config =
      `engines:\n  default: fake\n  fake: { kind: command, command: ${FAKE_AGENT}, timeout: ${TIMEOUT}, env: ${env} }\n`;
    for (let i = 0; i < count; i++) {
      const name = formatName(i);
      const { token } = await api.call("POST /api/runners", {
        name,
        labels: ["any", `only-${name}`],
        secrets: true,
      });
      tokens.push(token);
      const runner = new RunnerVictim({
        ...{ name, token, folder, config },
        service: () => victim.api?.url ?? null,
        keep: (said) => log.writeSync(new TextEncoder().encode(`--- ${name}\n${said}`)),
        broke: (words) => faults.push(words),
      });
      await runner.start();
      all.push(runner);
    }
    for (const { name } of all) await waitUntilOnline(api, name);
    return new Runners(victim, all, { tokens, log, logPath, faults });
  }

  /** Makes each runner suffer repeatedly until `until` (performance.now()). */
  trouble(movable: string[], seed: number, until: number): void {
    this.#movable = movable;
    this.#troubling = this.#all.map((runner, i) => this.#trouble(runner, createRandom(seed + i), until));
  }

  async #trouble(runner: RunnerVictim, chance: () => number, until: number): Promise<void> {
    for (;;) {
      const calmMs = -Math.log(1 - chance()) * CALM_MEAN_MS;
      if (performance.now() + calmMs > until) return;
      await pause(calmMs);
      await runner.suffer(chance, (name) => this.#moveAway(name, chance)).catch((error) =>
        void this.#faults.push(error instanceof Error ? error.message : String(error))
      );
    }
  }

  // The runs have ended or are lost, so the worker may continue elsewhere. The service refuses the move while
  // it expects a run to continue.
  async #moveAway(name: string, chance: () => number): Promise<void> {
    for (const worker of this.#movable) {
      const others = this.#all.filter((one) => one.name !== name);
      const to = others[Math.floor(chance() * others.length)]?.name;
      if (to === undefined || chance() >= MOVE_SHARE) continue;
      try {
        const api = await this.#victim.reach();
        if ((await api.send(`GET /api/workers/${worker}`)).body.home !== name) continue;
        if ((await api.send(`POST /api/workers/${worker}/rehome`, { home: to })).status < 300) this.#moved++;
      } catch (error) {
        if (!isLostAnswer(error)) throw error;
      }
    }
  }

  /** Resolves when all runners work again. */
  async calm(): Promise<void> {
    await Promise.all(this.#troubling);
  }

  /** Ends the runners in order. */
  async stop(): Promise<void> {
    for (const runner of this.#all) {
      const code = await runner.stop();
      if (code !== 0) {
        this.#faults.push(`the last stop of the runner ${runner.name} ended with exit code ${code}`);
      }
    }
    this.#log.close();
  }

  /** Tokens, which must not be in any file of the service or of another runner. */
  get secrets(): string[] {
    return this.#tokens;
  }

  /** Lists every file that the runners wrote. */
  async files(): Promise<string[]> {
    const kept = await Promise.all(this.#all.map(({ root }) => Array.fromAsync(walk(root))));
    return [this.#logPath, ...kept.flat()];
  }

  /** Returns the errors: processes that ended unexpectedly, and files left in work_roots. */
  async faults(): Promise<string[]> {
    const left = await Promise.all(this.#all.map(({ root }) => checkWorkRoot(root)));
    return [...this.#faults, ...left.flat()];
  }

  /** Formats the actions and the outcomes of the runs, after the service has stopped. */
  async report(dataDir: string): Promise<string[]> {
    const troubles = this.#all.flatMap((runner) => runner.troubles);
    const kinds = Map.groupBy(troubles, ({ kind }) => kind);
    const runs = await readRows<EndedRun>(
      dataDir,
      `select runner.name as runner, execution.status, execution.error, execution.completed_at, remote_run.reported
      from remote_run
      join runner on runner.id = remote_run.runner_id
      join execution on execution.id = remote_run.execution_id`,
    );
    const late =
      (await Deno.readTextFile(this.#logPath)).match(/The service refuses the end of run/g)?.length ?? 0;
    const completed = runs.filter(({ status }) => status === "completed").length;
    const lost = runs.filter(({ error }) => error === RUNNER_LOST);
    const silent = lost.filter(({ reported }) => reported === 0);
    const over = silent.filter((run) => isDuring(run, troubles)).length;
    return [
      `runners          ${this.#all.length}: ` +
      [...kinds].map(([kind, all]) => `${all.length} times ${kind}`).sort().join("; "),
      `runs on runners  ${runs.length}: ${completed} completed; ${over} leases were over, ${
        silent.length - over
      } were taken over by the next process, ` +
      `${lost.length - silent.length} were ended by the runner before their lease was over; ` +
      `${late} outcomes came too late and were refused`,
      `workers          ${this.#moved} times moved from a runner that was gone to another`,
    ];
  }
}

interface EndedRun extends Record<string, string | number> {
  runner: string;
  status: string;
  error: string;
  completed_at: number;
  reported: number;
}

// A restarted runner takes over the runs of the process before, after its trouble.
function isDuring(run: EndedRun, troubles: readonly Trouble[]): boolean {
  return troubles.some(({ runner, from, to }) =>
    runner === run.runner && from < run.completed_at && run.completed_at <= to
  );
}

/**
 * Lives one life of the service with runners: it may be stopped in the middle, and may stay away after its
 * end.
 */
export async function runLifeWithRunners(
  victim: Victim,
  chance: () => number,
  lifeMs: number,
): Promise<void> {
  if (chance() < FREEZE_SHARE) {
    await Promise.race([pause(lifeMs / 2), victim.ended]);
    await victim.freeze(chance() < 0.5 ? 4_000 * chance() : SHORT_LEASES.lease_ms * (1.1 + 0.4 * chance()));
  }
  // A fault point ends the process early.
  await Promise.race([pause(lifeMs), victim.ended]);
  await victim.kill();
  if (chance() < AWAY_SHARE) await pause(SHORT_LEASES.lease_ms * (0.5 + chance()));
}

function formatName(index: number): string {
  return `r${index + 1}`;
}
