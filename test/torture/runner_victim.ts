import { join } from "node:path";
import { Proxy } from "../harness/fakes/proxy.ts";
import { type RunnerProcess, startRunner } from "../harness/service/runner.ts";
import { SHORT_LEASES } from "./leases.ts";
import { pause } from "../harness/model/workload.ts";

/** The actions on a runner, with their shares. "For long" is longer than a lease. */
const TROUBLES = [
  [0.14, "killed"],
  [0.13, "killed for long"],
  [0.07, "killed while cut off"],
  [0.11, "stopped"],
  [0.12, "stopped for long"],
  [0.05, "stopped for long, then killed"],
  [0.11, "cut off"],
  [0.13, "cut off for long"],
  [0.04, "slow"],
  [0.05, "ended"],
  [0.05, "ended while cut off"],
] as const;

type Kind = typeof TROUBLES[number][1];

/**
 * The ways to lose the network: nothing passes, no response passes, every response is cut off, every
 * connection is.
 */
const CUTS = ["hold", "hold-answers", "cut-answers", "refuse"] as const;

const REVIVE_PAUSE_MS = 1_000;
const END_MAX_MS = 70_000;
const ENDED_BY_SIGNAL = 143;

/** An action on a runner, with its times (Unix ms). */
export interface Trouble {
  runner: string;
  kind: Kind;
  from: number;
  to: number;
}

/** How a runner of a torture is started. */
interface RunnerVictimOptions {
  name: string;
  token: string;
  folder: string;
  /** Lines of its runner.yaml. */
  config: string;
  /** The service's current address, or null. */
  service: () => string | null;
  /** Stores the output of a process that has ended. */
  keep: (said: string) => void;
  /** Reports that the runner's process ended unexpectedly. */
  broke: (words: string) => void;
}

/** A runner of a torture, whose process is killed, stopped and cut off at random [RUN-1]. */
export class RunnerVictim {
  readonly name: string;
  readonly root: string;
  readonly troubles: Trouble[] = [];
  readonly #options: RunnerVictimOptions;
  readonly #proxy: Proxy;
  #process: RunnerProcess | null = null;

  constructor(options: RunnerVictimOptions) {
    this.#options = options;
    this.name = options.name;
    this.root = join(options.folder, options.name);
    this.#proxy = new Proxy(options.service);
  }

  /** Starts its process, unless one runs; it need not be connected yet. */
  async start(): Promise<void> {
    if (this.#process !== null) return;
    const { token, config } = this.#options;
    const process = await startRunner({ token, config, url: this.#proxy.url, root: this.root });
    this.#process = process;
    void process.child.status.then(({ code }) => this.#ended(process, code));
  }

  // The callback runs before the process is forgotten.
  async #ended(process: RunnerProcess, code: number): Promise<void> {
    if (this.#process !== process) return;
    this.#process = null;
    this.#options.keep(process.stderr);
    this.#options.broke(
      `the runner ${this.name} ended unexpectedly with exit code ${code}: ${process.stderr.slice(-2_000)}`,
    );
    await pause(REVIVE_PAUSE_MS);
    await this.start();
  }

  /** Ends the process in order; returns its exit code. */
  async stop(): Promise<number> {
    const code = await this.#end("SIGTERM");
    this.#proxy[Symbol.dispose]();
    return code;
  }

  /**
   * Kills, stops or cuts off the runner, and repairs it. Calls `onGone` first if the runner was away for
   * longer than a lease, when all its runs have ended.
   */
  async suffer(chance: () => number, onGone: (name: string) => Promise<void>): Promise<void> {
    const kind = draw(chance());
    const from = Date.now();
    const ms = kind.includes("for long")
      ? SHORT_LEASES.lease_ms * (1.15 + 0.5 * chance())
      : 300 + 3_700 * chance();
    try {
      await this.#suffer(kind, { ms, chance, onGone: () => onGone(this.name) });
    } finally {
      this.#proxy.mode = "pass";
      await this.start();
      this.troubles.push({ runner: this.name, kind, from, to: Date.now() });
    }
  }

  async #suffer(
    kind: Kind,
    { ms, chance, onGone }: { ms: number; chance: () => number; onGone: () => Promise<void> },
  ): Promise<void> {
    switch (kind) {
      case "killed":
        return void await this.#end("SIGKILL");
      case "killed for long":
        await this.#end("SIGKILL");
        await pause(ms);
        return await onGone();
      case "killed while cut off":
        this.#cutOff(chance());
        // The outcome is on its way when the process dies, and arrives after the next one has started.
        await pause(ms / 2);
        await this.#end("SIGKILL");
        await this.start();
        return await pause(ms / 2);
      case "stopped":
      case "stopped for long":
        this.#process?.child.kill("SIGSTOP");
        await pause(ms);
        return this.#process?.child.kill("SIGCONT");
      case "stopped for long, then killed":
        this.#process?.child.kill("SIGSTOP");
        await pause(ms);
        return void await this.#end("SIGKILL");
      case "cut off":
        this.#cutOff(chance());
        return await pause(ms);
      case "cut off for long":
        this.#cutOff(chance());
        await pause(ms);
        return await onGone();
      case "ended":
        return await this.#endInOrder();
      case "ended while cut off":
        this.#cutOff(chance());
        return await this.#endInOrder();
      case "slow":
        this.#proxy.mode = "trickle";
        return await pause(3 * ms);
    }
  }

  #cutOff(dice: number): void {
    this.#proxy.mode = CUTS[Math.floor(dice * CUTS.length)] ?? "hold";
    if (this.#proxy.mode === "refuse") this.#proxy.cut();
  }

  // Runs may take 30 s to end, then the runner ends them and tries to report that for a while.
  async #endInOrder(): Promise<void> {
    const process = this.#process;
    const late = setTimeout(() => {
      this.#options.broke(`the runner ${this.name} did not end`);
      process?.child.kill("SIGKILL");
    }, END_MAX_MS);
    const code = await this.#end("SIGTERM");
    clearTimeout(late);
    // The signal itself ends a process that has just started.
    const isYoung = code === ENDED_BY_SIGNAL && process?.stderr.includes("Connected") === false;
    if (code !== 0 && !isYoung) {
      this.#options.broke(`the runner ${this.name} was ended in order with exit code ${code}`);
    }
  }

  async #end(signal: "SIGTERM" | "SIGKILL"): Promise<number> {
    const process = this.#process;
    if (process === null) return 0;
    this.#process = null;
    const code = await process.end(signal);
    this.#options.keep(process.stderr);
    return code;
  }
}

function draw(dice: number): Kind {
  let left = dice;
  for (const [share, kind] of TROUBLES) {
    if (left < share) return kind;
    left -= share;
  }
  return "killed";
}
