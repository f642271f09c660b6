import { join } from "node:path";
import { SVC } from "../test/harness/process.ts";
import { BenchService } from "./service.ts";

const PROBE = new URL("./turns_probe.ts", import.meta.url).pathname;

/** The longest turn of an event loop: by the processor time of its thread, and by the clock. */
export interface Turn {
  processorMs: number;
  wallMs: number;
}

/** A service whose longest turn is watched. */
export class TurnsService implements AsyncDisposable {
  readonly service: BenchService;
  readonly #folder: string;

  private constructor(service: BenchService, folder: string) {
    this.service = service;
    this.#folder = folder;
  }

  static async start(): Promise<TurnsService> {
    const folder = await Deno.makeTempDir({ prefix: "svc-bench-turns-" });
    const [deno = "", ...rest] = SVC;
    const program = [deno, "run", "--preload", PROBE, ...rest.slice(1)];
    const service = await BenchService.start({ BENCH_TURNS: join(folder, "longest") }, undefined, program);
    return new TurnsService(service, folder);
  }

  /** The longest turn while this goes on. */
  async longest(work: () => Promise<unknown>): Promise<Turn> {
    this.service.server.child.kill("SIGUSR2");
    await new Promise((resolve) => setTimeout(resolve, 100));
    await work();
    return JSON.parse(await Deno.readTextFile(join(this.#folder, "longest")));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]();
    await Deno.remove(this.#folder, { recursive: true });
  }
}
