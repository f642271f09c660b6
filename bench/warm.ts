import { join } from "node:path";
import type { AgentCommand, Dialogue, OpenMode, Order } from "../src/engine/protocol/adapter.ts";
import { findAdapter } from "../src/engine/kinds.ts";
import { type Model, startModel } from "../test/engines/model.ts";
import { buildPinProgram, PINS } from "../test/engines/pins.ts";
import { buildModelSettings } from "../test/engines/rig.ts";
import { createConversation, waitUntilEnded } from "./agents.ts";
import { computeMedian, computePercentile, pause, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const TURNS = 20;
const GOAL_MORE_MS = 30;
const CONVERSATIONS = 10;
// Until then the process of the conversation before has ended, and the next one waits.
const SPARE_SETTLES_MS = 4_000;
const SPARE_WARM = { keep: "1s", max: 2, spare: 1 };
// By kind: how much longer the first message of a new conversation may take.
const GOALS_SPARE_MS: Record<string, number> = { claude: 80, codex: 20 };

/**
 * Measures the time from a message to an open agent's first model request. Baseline: the agent's next turn without the
 * service.
 */
export async function benchWarm(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const pin of PINS) {
    const adapter = findAdapter(pin.kind);
    if (adapter?.driver !== "agent" || adapter.open === undefined) continue;
    if (!await Deno.stat(buildPinProgram(pin)).then((info) => info.isFile, () => false)) {
      console.error(`left out: ${pin.kind} is not in .cache/engines; make test-engines`);
      continue;
    }
    await using model = await startModel();
    const home = await Deno.makeTempDir({ prefix: "svc-bench-home-" });
    const { env, ...rest } = buildModelSettings(pin.kind, model.url);
    const engine = {
      command: buildPinProgram(pin),
      permissions: "full",
      ...rest,
      env: { HOME: home, ...env },
    };
    const engines = { default: pin.kind, [pin.kind]: { ...engine, warm: { spare: 0 } } };
    const through: number[] = [];
    const alone: number[] = [];
    {
      await using service = await BenchService.start({}, { engines });
      const session = await createConversation(service, "Ada");
      const byHand = await startByHand(adapter.open, engine);
      // Alternates, so that other load affects both alike. The first turn of each starts its process.
      for (let i = 0; i <= TURNS; i++) {
        const one = await measureUntilRequest(model, async () => {
          await service.call(`POST /api/local/sessions/${session}/messages`, { content: "hello" });
          return waitUntilEnded(service, i + 1);
        });
        const other = await measureUntilRequest(model, () => byHand.turn());
        if (i > 0) through.push(one), alone.push(other);
      }
      await byHand.end();
    }
    const more = computeMedian(through) - computeMedian(alone);
    const { kind } = pin;
    const kept = computeMedian(through);
    rows.push(await benchSpare({ kind, engine, open: adapter.open, model, kept }), {
      what: `message -> first request of ${pin.kind}, which stayed open (p50)`,
      value: computeMedian(through),
      unit: "ms",
      bare: computeMedian(alone),
      beside: "its own next turn",
      says: `${more.toFixed(0)} ms more; p99 ${computePercentile(through, 99).toFixed(0)} and ${
        computePercentile(alone, 99).toFixed(0)
      } ms`,
      goal: `at most ${GOAL_MORE_MS} ms more`,
      met: more <= GOAL_MORE_MS,
    });
    await Deno.remove(home, { recursive: true });
  }
  return rows;
}

interface SpareCase {
  kind: string;
  engine: ManualEngine;
  open: OpenMode;
  model: Model;
  /** The ms of the next message of a conversation. */
  kept: number;
}

/** Measures the first message of a new conversation. Baseline: the first turn of a process that has waited, without the service. */
async function benchSpare({ kind, engine, open, model, kept }: SpareCase): Promise<Row> {
  await using service = await BenchService.start({}, {
    engines: { default: kind, [kind]: { ...engine, warm: SPARE_WARM } },
  });
  const worker = await service.call("POST /api/workers", { name: "Ada" });
  const [through, alone]: [number[], number[]] = [[], []];
  for (let i = 0; i <= CONVERSATIONS; i++) {
    const byHand = await startByHand(open, engine);
    await pause(SPARE_SETTLES_MS);
    const { id } = await service.call("POST /api/local/sessions", { worker_id: worker.id });
    const one = await measureUntilRequest(model, async () => {
      await service.call(`POST /api/local/sessions/${id}/messages`, { content: "hello" });
      return waitUntilEnded(service, i + 1);
    });
    const other = await measureUntilRequest(model, () => byHand.turn());
    if (i > 0) through.push(one), alone.push(other);
    await byHand.end();
  }
  const more = computeMedian(through) - kept;
  const goal = GOALS_SPARE_MS[kind] ?? 0;
  return {
    what: `first message of a conversation -> first request of ${kind}, a spare process (p50)`,
    value: computeMedian(through),
    unit: "ms",
    bare: computeMedian(alone),
    beside: "its own first turn",
    says: `${more.toFixed(0)} ms more than in one that goes on; worst ${Math.max(...through).toFixed(0)} ms`,
    goal: `at most ${goal} ms more`,
    met: more <= goal,
  };
}

interface ManualEngine {
  command: string;
  env: Record<string, string>;
}

async function startByHand(open: OpenMode, engine: ManualEngine): Promise<ManualAgent> {
  const home = await Deno.makeTempDir({ dir: engine.env.HOME ?? "" });
  await Deno.mkdir(`${home}/state`);
  const runDir = await Deno.makeTempDir({ dir: home });
  return new ManualAgent(open, engine, home, runDir);
}

/** An open agent process without the service. */
class ManualAgent {
  readonly #child: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #dialogue: Dialogue;
  readonly #order: Order;
  #done = () => {};

  constructor(
    open: OpenMode,
    engine: ManualEngine,
    home: string,
    runDir: string,
  ) {
    this.#order = buildOrder(engine, home, runDir);
    this.#child = spawnAgent(open.buildCommand(this.#order), engine, runDir);
    this.#writer = this.#child.stdin.getWriter();
    const encoder = new TextEncoder();
    this.#dialogue = open.startDialogue(this.#order, {
      say: (text) => void this.#writer.write(encoder.encode(text)),
      close() {},
    });
    void this.#read();
  }

  async turn(): Promise<void> {
    const done = new Promise<void>((resolve) => this.#done = resolve);
    this.#dialogue.turn(this.#order, () => {});
    await done;
  }

  async end(): Promise<void> {
    await this.#writer.close();
    await this.#child.status;
  }

  async #read(): Promise<void> {
    let rest = "";
    for await (const text of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (this.#dialogue.hear(JSON.parse(line)).some(({ kind }) => kind === "done")) this.#done();
      }
    }
  }
}

/** Returns the ms until the model's first request, after the program has ended. */
async function measureUntilRequest(
  model: Model,
  begin: () => Promise<Promise<unknown> | unknown>,
): Promise<number> {
  const started = performance.now();
  let first = NaN;
  model.onRequest = () => {
    if (Number.isNaN(first)) first = performance.now() - started;
  };
  await await begin();
  return first;
}

/** Builds the order that the service would send. */
function buildOrder(
  engine: { args?: string[]; model?: string; env: Record<string, string> },
  home: string,
  runDir: string,
): Order {
  return {
    sessionId: crypto.randomUUID(),
    resume: false,
    prompt: "hello",
    workDir: home,
    inputDir: runDir,
    outputDir: runDir,
    stateDir: join(home, "state"),
    ctl: "svc",
    model: engine.model ?? "",
    permissions: "full",
    askTimeoutMs: 60_000,
    mask: (text) => text,
    extraArgs: engine.args ?? [],
    root: Deno.uid() === 0,
    env: engine.env,
    tools: null,
    servers: [],
    skills: null,
    gateway: null,
    schema: null,
  };
}

/** Starts a CLI as the service does, without isolation, tools and tokens. */
function spawnAgent(
  command: AgentCommand,
  engine: { command: string; env: Record<string, string> },
  cwd: string,
): Deno.ChildProcess {
  return new Deno.Command(engine.command, {
    args: command.args,
    cwd,
    clearEnv: true,
    env: {
      PATH: Deno.env.get("PATH") ?? "",
      SHELL: "/bin/bash",
      LANG: "C.UTF-8",
      TERM: "dumb",
      ...command.env,
      ...engine.env,
      ...command.fixedEnv,
    },
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  }).spawn();
}
