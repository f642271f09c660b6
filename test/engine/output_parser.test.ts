import { expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { USAGE_UNKNOWN } from "../../src/domain/work/execution.ts";
import type { AgentEvent, Line } from "../../src/engine/protocol/adapter.ts";
import { claude } from "../../src/engine/adapters/claude.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { ADAPTERS as ALL } from "../../src/engine/kinds.ts";
import { OutputParser } from "../../src/engine/protocol/output_parser.ts";
import { RunLog } from "../../src/engine/process/run_log.ts";
import { createUsageRecorder } from "../../src/run/usage_recorder.ts";
import { listWindows } from "../../src/store/workers/engine_window.ts";
import { openApp } from "../harness/service/app.ts";
import { waitUntil } from "../harness/wait.ts";

const ADAPTERS = ALL.filter((adapter) => adapter.driver === "agent");

function sessionsIn(
  lines: readonly object[],
  parse?: (line: Line) => AgentEvent[],
): (string | null)[] {
  const options = { path: "/dev/null", maxBytes: 1_000_000, stamped: false, now: () => 0, onWrite: () => {} };
  const sessions: (string | null)[] = [];
  const output = new OutputParser({
    adapter: claude,
    parse: parse ?? claude.parseLine,
    hasDialogue: parse !== undefined,
    sessionId: "",
    log: RunLog.open(options),
    events: null,
    usedBefore: USAGE_UNKNOWN,
    onEvent: (event: AgentEvent) => void (event.kind === "session" && sessions.push(event.id)),
  });
  output.add("stdout", new TextEncoder().encode(lines.map((line) => `${JSON.stringify(line)}\n`).join("")));
  output.end(null);
  return sessions;
}

const init = (session_id: string) => ({ type: "system", subtype: "init", session_id });

it("stores at most twenty sessions of an agent [CHD-6]", () => {
  expect(sessionsIn([init("a"), init("a"), init("b")])).toEqual(["a", "b"]);
  expect(sessionsIn(Array.from({ length: 1_000 }, (_, no) => init(`s${no % 2}`)))).toHaveLength(20);
});

it("rejects a session id that is not a safe argument", () => {
  const bad = ["--help", "", "a b", "x".repeat(201), "a\n"];
  expect(sessionsIn([...bad.map(init), init("01a2-b.c:d")])).toEqual(["01a2-b.c:d"]);
});

it("accepts any short text as a session id in a dialogue", () => {
  const hear = (line: Line) => claude.parseLine(line);
  expect(sessionsIn([init("sess/1+2="), init("x\u0000"), init("x".repeat(201))], hear)).toEqual([
    "sess/1+2=",
  ]);
});

it.each(ADAPTERS)("$kind: reads a long line that repeats the start of a phrase in linear time", (adapter) => {
  const log = { path: "/dev/null", maxBytes: 1_000, stamped: false, now: () => 0, onWrite: () => {} };
  const output = new OutputParser({
    adapter,
    parse: adapter.parseLine,
    hasDialogue: false,
    sessionId: "",
    log: RunLog.open(log),
    events: null,
    usedBefore: USAGE_UNKNOWN,
    onEvent: () => {},
  });
  const bytes = new TextEncoder().encode(`${"a session ".repeat(60_000)}\n`);
  const started = performance.now();
  output.add("stdout", bytes);
  output.end(null);
  expect(performance.now() - started).toBeLessThan(3_000);
});

it("stores the latest state of each provider window when a run reports faster than it is stored [CHD-6]", async () => {
  await using app = await openApp({ inMemory: true });
  const { db } = app;
  const { write } = db;
  let writes = 0;
  db.write = (...args) => {
    writes++;
    return write.apply(db, args);
  };
  const engine = { name: "claude", config: {} } as Engine;
  const { onWindows } = createUsageRecorder({ db, clock: systemClock }, "none", engine);
  for (let no = 1; no <= 1_000; no++) {
    onWindows([{ name: no % 2 === 0 ? "five hours" : "week", utilization: no / 1_000, resets_at: null }]);
  }
  await waitUntil("they are stored", async () => {
    const windows = await listWindows(db);
    return windows.length === 2 && windows.every(({ utilization }) => utilization >= 0.999);
  });
  expect(writes).toBeLessThan(5);
});
