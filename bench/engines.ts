import { join } from "node:path";
import type { AgentCommand, Order } from "../src/engine/protocol/adapter.ts";
import { findAdapter } from "../src/engine/registry.ts";
import { type Model, startModel } from "../test/engines/model.ts";
import { type Pin, PINS, programOf } from "../test/engines/pins.ts";
import { pointedAt } from "../test/engines/rig.ts";
import { COLD, fakeAgent, newConversation, untilEnded } from "./agents.ts";
import { crowd } from "./crowd.ts";
import { median, percentile, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const STARTS = 50;
const REAL_STARTS = 5;

/**
 * Agents: how long from a message to the engine's process, and to its first model request, beside the same CLI
 * started by hand; what a running agent costs the service, and how it answers while two hundred of them talk.
 */
export async function benchEngines(): Promise<Row[]> {
  const rows = [await starts(), ...await crowd()];
  for (const pin of PINS) {
    if (!await Deno.stat(programOf(pin)).then((info) => info.isFile, () => false)) {
      console.error(`left out: ${pin.kind} is not in .cache/engines; make test-engines`);
      continue;
    }
    rows.push(await firstRequest(pin));
  }
  return rows;
}

/** From the request with a message to the start of its agent's process. */
async function starts(): Promise<Row> {
  const { folder, program, ledger } = await fakeAgent();
  const engine = { command: program, warm: COLD, env: { BENCH_LEDGER: ledger, BENCH_PAUSE: "1" } };
  await using service = await BenchService.start({}, { engines: { default: "claude", claude: engine } });
  const session = await newConversation(service, "Ada");
  const sent = new Map<string, number>();
  for (let i = 0; i < STARTS; i++) {
    const at = performance.timeOrigin + performance.now();
    const { message_id } = await service.call(`POST /api/local/sessions/${session}/messages`, {
      content: "go",
    });
    sent.set(message_id, at);
    await untilEnded(service, i + 1);
  }
  const waits = (await Deno.readTextFile(ledger)).trim().split("\n").map((line) => {
    const [message = "", seconds = "0"] = line.split(" ");
    return Number(seconds) * 1e3 - (sent.get(message) ?? NaN);
  });
  await Deno.remove(folder, { recursive: true });
  return {
    what: "message -> agent's process started (p50)",
    value: median(waits),
    unit: "ms",
    says: `p99 ${percentile(waits, 99).toFixed(0)} ms`,
    goal: "-",
    met: null,
  };
}

/** From a message to the engine's first model request, beside the same program started by hand. */
async function firstRequest(pin: Pin): Promise<Row> {
  await using model = await startModel();
  const home = await Deno.makeTempDir({ prefix: "svc-bench-home-" });
  const { env, ...rest } = pointedAt(pin.kind, model.url);
  const engine = { command: programOf(pin), permissions: "full", ...rest, env: { HOME: home, ...env } };
  const through: number[] = [];
  const byHand: number[] = [];
  {
    await using service = await BenchService.start({}, {
      engines: { default: pin.kind, [pin.kind]: { ...engine, warm: COLD } },
    });
    const session = await newConversation(service, "Ada");
    // In turns, so that other load on the machine affects both alike. The first of each is a warm-up.
    for (let i = 0; i <= REAL_STARTS; i++) {
      const one = await untilRequest(model, async () => {
        await service.call(`POST /api/local/sessions/${session}/messages`, { content: "hello" });
        return untilEnded(service, i + 1);
      });
      const other = await untilRequest(model, () => Promise.resolve(start(pin, engine, home)));
      if (i > 0) through.push(one), byHand.push(other);
    }
  }
  await Deno.remove(home, { recursive: true });
  const [ours, bare] = [median(through), median(byHand)];
  return {
    what: `message -> first request of ${pin.kind} (p50)`,
    value: ours,
    unit: "ms",
    bare,
    beside: "started by hand",
    says: `${Math.round(ours - bare)} ms more`,
    goal: "-",
    met: null,
  };
}

/** Ms until the model's first request; then waits for the end of the program. */
export async function untilRequest(
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

/** The same program with the same arguments, without the service and its tools. */
async function start(
  pin: Pin,
  engine: { command: string; args?: string[]; model?: string; env: Record<string, string> },
  home: string,
): Promise<void> {
  const adapter = findAdapter(pin.kind);
  if (adapter?.driver !== "agent") return;
  const runDir = await Deno.makeTempDir({ dir: home });
  const command = adapter.buildCommand(orderByHand(engine, home, runDir));
  await Deno.mkdir(join(home, "state", ".gemini"), { recursive: true });
  for (const { path, content, executable } of command.files) {
    await Deno.writeTextFile(path, content(null), { mode: executable ? 0o700 : 0o600 });
  }
  const child = spawned(command, engine, runDir);
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(command.stdin));
  await writer.close();
  await child.status;
}

/** What a run of the service would ask for. */
export function orderByHand(
  engine: { args?: string[]; model?: string; env: Record<string, string> },
  home: string,
  runDir: string,
): Order {
  return {
    sessionId: crypto.randomUUID(),
    resume: false,
    prompt: "hello",
    workDir: home,
    runDir,
    stateDir: join(home, "state"),
    ctl: "svc",
    model: engine.model ?? "",
    permissions: "full",
    extraArgs: engine.args ?? [],
    root: Deno.uid() === 0,
    env: engine.env,
    tools: null,
    schema: null,
  };
}

/** A CLI as the service would start it, but for isolation, tools and tokens. */
export function spawned(
  command: AgentCommand,
  engine: { command: string; env: Record<string, string> },
  cwd: string,
  stdout: "null" | "piped" = "null",
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
    stdout,
    stderr: "null",
  }).spawn();
}
