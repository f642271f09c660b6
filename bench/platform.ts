import { join } from "node:path";
import { FakeTelegram } from "../test/platform/fakes/telegram.ts";
import { percentile, type Row } from "./measure.ts";
import { stepRows, type Times } from "./platform_steps.ts";
import { BenchService } from "./service.ts";

const TIMES = 200;
const WARM = 20;
const FLOOD_PER_S = 1_000;
const GOAL_MS = 10;

// Says when it began and when it ended, without any program of its own.
const AGENT = `#!/bin/bash
began=$EPOCHREALTIME
IFS= read -r -d '' prompt
echo done
echo "$began $EPOCHREALTIME" >> "$BENCH_TIMES"
`;

/**
 * From an event to the worker's process, and from its end to the sent reply, over a quiet fake; then the same while another platform
 * floods and takes nothing. The quiet window is off (issue 17).
 */
export async function benchPlatform(): Promise<Row[]> {
  await using quiet = new FakeTelegram();
  await using loud = new FakeTelegram();
  const folder = await Deno.makeTempDir({ prefix: "svc-bench-platform-" });
  const agent = join(folder, "agent.sh");
  await Deno.writeTextFile(agent, AGENT, { mode: 0o755 });
  const log = join(folder, "times");
  const platform = (fake: FakeTelegram, worker: string, allow: string[]) => ({
    ...{ kind: "telegram", token: fake.token, base_url: fake.url },
    ...{ worker, allow, groups: "all" },
  });
  const engines = {
    default: "bash",
    bash: { kind: "command", command: agent, env: { BENCH_TIMES: log } },
  };
  const platforms = { quiet: platform(quiet, "Ada", ["*"]), loud: platform(loud, "Bob", ["8"]) };
  await using service = await BenchService.start({}, { engines, platforms });
  for (const name of ["Ada", "Bob"]) await service.call("POST /api/workers", { name });
  const spawns = await spawned(agent, log);
  const alone = await replies(quiet, log);
  const steps = await stepRows(service, alone);
  const beside = await besideFlood(loud, () => replies(quiet, log));
  await Deno.remove(folder, { recursive: true });
  const row = (what: string, values: number[], bare: number[] | null, percent: number): Row => {
    const [value, bareMs] = [percentile(values, percent), bare === null ? 0 : percentile(bare, percent)];
    const over = value - bareMs;
    return {
      what: `${what} (p${percent})`,
      value,
      unit: "ms",
      ...(bare === null ? {} : { bare: bareMs, beside: "without" }),
      says: bare === null ? "" : `${over.toFixed(2)} ms over it`,
      goal: `at most ${GOAL_MS} ms${bare === null ? "" : " over"}`,
      met: over <= GOAL_MS,
    };
  };
  const starts = (all: Times[]) => all.map(({ said, began }) => began - said);
  const ends = (all: Times[]) => all.map(({ ended, sent }) => sent - ended);
  const figures = [50, 99].flatMap((percent) => [
    { ...row("event -> worker's process", starts(alone), spawns, percent), beside: "spawning it" },
    row("its end -> sent reply", ends(alone), null, percent),
    row("the first beside a flood that takes nothing", starts(beside), starts(alone), percent),
    row("the second beside it", ends(beside), ends(alone), percent),
  ]);
  return [...figures, ...steps];
}

const now = () => performance.timeOrigin + performance.now();

// Who said something: nobody speaks twice.
let people = 1_000;

async function replies(fake: FakeTelegram, log: string): Promise<Times[]> {
  const all: Times[] = [];
  for (let at = -WARM; at < TIMES; at++) {
    const arrived = Promise.withResolvers<number>();
    fake.onSent = () => arrived.resolve(now());
    let confirmed = NaN;
    fake.onPoll = () => confirmed = Number.isNaN(confirmed) ? now() : confirmed;
    const said = now();
    // Each in a conversation of its own.
    const chat = ++people;
    fake.say("go on", { chat, from: chat });
    const sent = await arrived.promise;
    const [began = 0, ended = 0] = await lastTimes(log);
    if (at >= 0) all.push({ sessionKey: `quiet:${chat}`, said, confirmed, began, ended, sent });
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return all;
}

async function lastTimes(log: string): Promise<number[]> {
  const lines = (await Deno.readTextFile(log)).trim().split("\n");
  return (lines.at(-1) ?? "").split(" ").map((seconds) => Number(seconds) * 1000);
}

/** What it costs to start the program by itself. */
async function spawned(agent: string, log: string): Promise<number[]> {
  const times: number[] = [];
  for (let at = -WARM; at < TIMES; at++) {
    const said = now();
    const child = new Deno.Command(agent, { env: { BENCH_TIMES: log }, stdin: "null", stdout: "null" })
      .spawn();
    await child.status;
    const [began = 0] = await lastTimes(log);
    if (at >= 0) times.push(began - said);
  }
  return times;
}

/** The other platform says a thousand things a second, most of them by strangers, and takes no reply. */
async function besideFlood<T>(loud: FakeTelegram, work: () => Promise<T>): Promise<T> {
  loud.hangs = true;
  for (let chat = 0; chat < 16; chat++) loud.say("go on", { chat: -100 - chat, from: 8, type: "group" });
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  const flood = setInterval(() => {
    for (let at = 0; at < FLOOD_PER_S / 20; at++) {
      loud.say("let me in", { chat: -1, from: 66, type: "group" });
    }
  }, 50);
  try {
    return await work();
  } finally {
    clearInterval(flood);
  }
}
