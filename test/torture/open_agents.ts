import { join } from "node:path";
import { buildDataPaths } from "../../src/base/paths.ts";
import { signal } from "../../src/engine/process/isolation.ts";
import { listProcesses } from "../harness/model/marked.ts";
import { createRandom } from "../harness/model/schedule.ts";
import { HERE, type Plan } from "./load.ts";
import { checkTurns, type Note, readNotes } from "./open_checker.ts";

const AGENT = new URL("./open_agent.ts", import.meta.url).pathname;
const CALM_MEAN_MS = 600;
// The share of stops among all actions. A stopped agent delays its worker for a while.
const STOP_SHARE = 0.04;
const ENGINE = "open";
// All processes that it starts hold the lock of its session.
const SCRIPT = `#!/bin/sh
session=$(printf '%s\\n' "$@" | grep -A1 -xe --resume -e --session-id | tail -n 1)
if [ -n "$session" ]; then
  exec 9> "$FAKE_OPEN_LEDGER.$session"
  flock --nonblock 9 || echo '{"word":"overlap","process":"'"$SVC_RUN_ID"'","words":"'"$session"'"}' >> "$FAKE_OPEN_LEDGER"
fi
exec ${Deno.execPath()} run -A ${AGENT} "$@"
`;

/**
 * The load of a service whose agents stay open: each worker has five conversations, so that spare processes open some of them.
 */
export const OPEN_PLAN: Plan = {
  ...HERE,
  workers: Array.from({ length: 8 }, () => []),
  engines: Array.from({ length: 5 }, () => ENGINE),
  sessions: 40,
};

/** The open agents of a torture, which are killed while they wait, work or start. */
export class OpenAgents {
  readonly #ledger: string;
  readonly #program: string;
  readonly #killed: { mark: string; at: number }[] = [];
  #stopped = 0;
  #troubling = Promise.resolve();

  private constructor(folder: string) {
    this.#ledger = join(folder, "turns.log");
    this.#program = join(folder, "open_agent");
  }

  static async begin(folder: string): Promise<OpenAgents> {
    const agents = new OpenAgents(folder);
    await Deno.writeTextFile(agents.#program, SCRIPT, { mode: 0o755 });
    return agents;
  }

  /**
   * Returns the environment of the service: few agents stay open, and none for long, so that every case
   * happens.
   */
  get env(): Record<string, string> {
    const engine = `SVC_ENGINES__${ENGINE.toUpperCase()}__`;
    return {
      SVC_LIMITS__MAX_CONCURRENT_RUNS: "8",
      [`${engine}KIND`]: "claude",
      [`${engine}COMMAND`]: this.#program,
      [`${engine}PERMISSIONS`]: "full",
      [`${engine}TIMEOUT`]: "20s",
      [`${engine}WARM__KEEP`]: "3s",
      [`${engine}WARM__MAX`]: "4",
      [`${engine}WARM__SPARE`]: "1",
      [`${engine}WARM__MAX_TURNS`]: "8",
      [`${engine}ENV__FAKE_OPEN_LEDGER`]: this.#ledger,
    };
  }

  /** Kills agents one after the other, and stops some, until `until`. */
  trouble(seed: number, until: number): void {
    this.#troubling = this.#trouble(createRandom(seed), until);
  }

  /** Resolves when no more agent is killed or stopped. */
  async calm(): Promise<void> {
    await this.#troubling;
  }

  async #trouble(chance: () => number, until: number): Promise<void> {
    while (performance.now() < until) {
      const ms = -Math.log(1 - chance()) * CALM_MEAN_MS;
      await new Promise((resolve) => setTimeout(resolve, ms));
      const pids = this.#alive().filter(isOpen);
      const pid = pids[Math.floor(chance() * pids.length)];
      if (pid === undefined) continue;
      const stops = chance() < STOP_SHARE;
      if (stops) this.#stopped++;
      else this.#killed.push({ mark: readMark(pid), at: Date.now() });
      signal(pid, stops ? "SIGSTOP" : "SIGKILL");
    }
  }

  /**
   * Finds agents that are still alive after the service has stopped, and data of other conversations in their
   * notes [CHD-15].
   */
  async faults(dataDir: string): Promise<string[]> {
    const alive = this.#alive();
    const { used } = countSpares(await readNotes(this.#ledger));
    return [
      ...(used > 0 ? [] : ["CHD-15: no spare process got a turn"]),
      ...(alive.length === 0
        ? []
        : [`I8: processes of agents that stay open are alive: ${alive.join(", ")}`]),
      ...findLeftDirectories(buildDataPaths(dataDir).runs),
      ...await checkTurns(dataDir, this.#ledger),
    ];
  }

  /** Formats the actions and the turns of the agents. */
  async report(): Promise<string[]> {
    const notes = await readNotes(this.#ledger);
    const turns = notes.filter(({ word }) => word === "turn");
    const byProcess = Map.groupBy(turns.filter(({ stays }) => stays), ({ process }) => process);
    const most = Math.max(0, ...[...byProcess.values()].map(({ length }) => length));
    const kept = [...byProcess.values()].reduce((sum, { length }) => sum + length - 1, 0);
    const when = this.#killed.map(({ mark, at }) =>
      notes.findLast((one) => one.process === mark && one.at <= at)?.word ?? "start"
    );
    const spares = countSpares(notes);
    const count = (word: string) => when.filter((one) => one === word).length;
    return [
      `open agents      ${turns.length} turns, ${kept} of them in a process that had stayed open, of ${byProcess.size}; ` +
      `${most} in one at most`,
      `of them          ${when.length} killed: ${count("end")} that waited, ${count("turn")} in a turn, ` +
      `${count("start")} before their first, ${count("spare")} that were spare; ${this.#stopped} stopped`,
      `spare processes  ${spares.all}, of which ${spares.used} got a turn`,
    ];
  }

  #alive(): number[] {
    return listProcesses(`FAKE_OPEN_LEDGER=${this.#ledger}`);
  }
}

/** Returns whether the process is the open agent itself and not one of its children. */
function isOpen(pid: number): boolean {
  const words = readText(`/proc/${pid}/cmdline`).split("\0");
  return words[0] === Deno.execPath() && words.includes("--input-format=stream-json");
}

function readMark(pid: number): string {
  return /(?:^|\0)SVC_RUN_ID=([^\0]*)/.exec(readText(`/proc/${pid}/environ`))?.[1] ?? "";
}

function readText(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return "";
  }
}

function countSpares(notes: readonly Note[]): { all: number; used: number } {
  const marks = new Set(notes.filter(({ word }) => word === "spare").map((note) => note.process));
  const busy = new Set(notes.filter(({ word }) => word === "turn").map((note) => note.process));
  return { all: marks.size, used: [...marks].filter((mark) => busy.has(mark)).length };
}

/** Lists the directories of runs and open processes, each of which ends with its owner. */
function findLeftDirectories(runs: string): string[] {
  try {
    const left = [...Deno.readDirSync(runs)].map(({ name }) => name);
    return left.length === 0 ? [] : [`I8: directories of runs are left: ${left.slice(0, 5).join(", ")}`];
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
