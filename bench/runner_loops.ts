// Many runners in one process: the same loops as in `svc runner`, one for each token. `deno run -A bench/runner_loops.ts <file>`.
import { join } from "node:path";
import { sleep, systemClock } from "../src/base/clock.ts";
import { dataPaths } from "../src/base/paths.ts";
import { configSchema, engineSchema } from "../src/config/schema.ts";
import type { RunnerClaimed } from "../src/domain/runner.ts";
import { Catalog } from "../src/engine/catalog.ts";
import type { Engine, EngineOutcome, EngineRun } from "../src/engine/engine.ts";
import { Leftovers } from "../src/runner/leftovers.ts";
import { Link } from "../src/runner/link.ts";
import { RunnerLoop } from "../src/runner/loop.ts";

/** What the file that is named says. */
export interface LoopsOrder {
  url: string;
  tokens: string[];
  maxRuns: number;
  root: string;
  /** For each run a line: its task, and when its order was there, Unix ms. */
  ledger: string;
}

type Answered<T> = ReturnType<typeof Link.prototype.insist<T>>;

/** Notes when each order came. */
class NotingLink extends Link {
  static readonly lines: string[] = [];

  override insist<T>(...given: Parameters<Link["insist"]>): Answered<T> {
    return super.insist<T>(...given).then((answered) => {
      const { run } = answered.value as Partial<RunnerClaimed>;
      const at = performance.timeOrigin + performance.now();
      if (run) NotingLink.lines.push(`${run.execution.task_id} ${at}\n`);
      return answered;
    });
  }
}

/** Its runs last as long as their instruction says, such as `hold 10000`, like those of an agent that thinks. */
class HoldingCatalog extends Catalog {
  override find(name: string): Engine | null {
    const engine = super.find(name);
    return engine === null ? null : { ...engine, start: (run) => hold(engine, run) };
  }
}

async function hold(engine: Engine, run: EngineRun): Promise<EngineOutcome> {
  run.onStart();
  await sleep(systemClock, Number(/^hold (\d+)$/.exec(run.instruction)?.[1] ?? 0), run.signal);
  return await engine.start(run);
}

const { url, tokens, maxRuns, root, ledger } = JSON.parse(
  await Deno.readTextFile(Deno.args[0] ?? ""),
) as LoopsOrder;
const clock = systemClock;
const config = configSchema.parse({});
const engines = new HoldingCatalog({
  defaultName: "echo",
  configured: {},
  defaultsFor: (kind: string) => engineSchema.parse({ kind }),
}, {
  path: Deno.env.get("PATH") ?? "",
  inherited: {},
  root: false,
  umask: 0o077,
  stopGraceMs: 5_000,
  keepAlive: null,
});
const loops = tokens.map((token, n) => {
  const paths = dataPaths(join(root, String(n)));
  Deno.mkdirSync(paths.root, { mode: 0o700 });
  return new RunnerLoop({
    link: new NotingLink({ url, token, clock }),
    ...{ clock, paths, config, engines, maxRuns, umask: 0o077 },
    leftovers: new Leftovers(paths),
    place: crypto.randomUUID(),
  });
});
setInterval(() => {
  if (NotingLink.lines.length === 0) return;
  Deno.writeTextFileSync(ledger, NotingLink.lines.splice(0).join(""), { append: true });
}, 100);
await Promise.all(loops.map((loop) => loop.run()));
