import { join } from "node:path";
import type { LoopsOrder } from "./runner_loops.ts";
import type { BenchService } from "./service.ts";

const LABEL = "bench";
const PROGRAM = new URL("./runner_loops.ts", import.meta.url).pathname;

/** The tokens of so many new runners, with the label that `runs_on` of workers names. */
export async function addRunners(service: BenchService, count: number): Promise<string[]> {
  const tokens: string[] = [];
  for (let n = 0; n < count; n++) {
    tokens.push((await service.call("POST /api/runners", { name: nameOf(n), labels: [LABEL] })).token);
  }
  return tokens;
}

/** The name of the runner with this number. */
export function nameOf(n: number): string {
  return `r${n}`;
}

/** Where the workers of a bench run. */
export const RUNS_ON = [LABEL];

/** Many runners in a process of their own. */
export class RunnerCrowd implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #folder: string;

  private constructor(child: Deno.ChildProcess, folder: string) {
    this.#child = child;
    this.#folder = folder;
  }

  /** Starts them, and waits until the service has heard of each. */
  static async start(service: BenchService, tokens: string[], maxRuns: number): Promise<RunnerCrowd> {
    const folder = await Deno.makeTempDir({ prefix: "svc-bench-runners-" });
    const ledger = join(folder, "ledger");
    await Deno.writeTextFile(ledger, "");
    const order: LoopsOrder = { url: service.url, tokens, maxRuns, root: folder, ledger };
    await Deno.writeTextFile(join(folder, "order.json"), JSON.stringify(order), { mode: 0o600 });
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", PROGRAM, join(folder, "order.json")],
      stdin: "null",
      stdout: "null",
      stderr: "inherit",
    }).spawn();
    const crowd = new RunnerCrowd(child, folder);
    while (await online(service) < tokens.length) await new Promise((resolve) => setTimeout(resolve, 250));
    return crowd;
  }

  /** When the orders of tasks were there, by task, Unix ms; what was read once is not read again. */
  async orders(): Promise<Map<string, number>> {
    const ledger = join(this.#folder, "ledger");
    const lines = (await Deno.readTextFile(ledger)).split("\n").filter((line) => line !== "");
    return new Map(lines.map((line) => {
      const [task = "", at = ""] = line.split(" ");
      return [task, Number(at)];
    }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.status;
    await Deno.remove(this.#folder, { recursive: true });
  }
}

async function online(service: BenchService): Promise<number> {
  let count = 0;
  for (let page = 1;; page++) {
    const some = await service.call(`GET /api/runners?page_size=100&page=${page}`) as { state: string }[];
    count += some.filter(({ state }) => state === "online").length;
    if (some.length < 100) return count;
  }
}
