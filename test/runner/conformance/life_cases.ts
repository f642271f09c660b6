// Cases about beats, leases, stops and restarts.
import { type Bench, type ConformanceCase, expectEqual, expectTrue } from "./bench.ts";
import type { LeaseTimes } from "../../../src/domain/workers/runner.ts";
import { pause } from "./service.ts";

function formatLoop(bench: Bench): string {
  return `trap '' INT TERM; echo start >> ${bench.file("starts")}; ${bench.formatLoop()}`;
}

async function waitForProgram(bench: Bench): Promise<void> {
  await bench.wait("the program", async () => (await bench.read("alive")) !== "");
}

/** A loaded machine may end a program this much later. */
const SLOW_MS = 1_000;

/**
 * Answers the first request of this kind late and then nothing more, so that the lease of the run ends. A runner that counts it from the
 * answer ends the program too late.
 */
function buildLeaseCase(
  renewing: "claim" | "beat",
  { times, lateMs }: { times: LeaseTimes; lateMs: number },
): ConformanceCase {
  return {
    name:
      `a lease counts from the sending of a ${renewing}, also when the answer is late: the program ends before it`,
    rule: "A lease counts from the *sending* of the last answered claim or beat that had the run",
    async check(bench) {
      const { service } = bench;
      service.times = times;
      let sentAt = 0;
      service.interfere = async ({ kind, at }) => {
        if (sentAt > 0) return "hang";
        if (kind !== renewing) return null;
        sentAt = at;
        await pause(lateMs);
        return null;
      };
      bench.add(formatLoop(bench));
      await bench.start();
      await waitForProgram(bench);
      await bench.wait(`a ${renewing}`, () => sentAt > 0);
      await pause(lateMs);
      await bench.waitForQuiet("alive");
      const endedMs = (await Deno.stat(bench.file("alive"))).mtime?.getTime() ?? Infinity;
      const limitMs = times.lease_ms - times.margin_ms;
      expectTrue(
        `it ended the program ${
          endedMs - sentAt
        } ms after it sent the ${renewing} instead of ${limitMs} ms at most`,
        endedMs - sentAt <= limitMs + SLOW_MS,
      );
    },
  };
}

export const LIFE_CASES: ConformanceCase[] = [
  buildLeaseCase("beat", { times: { lease_ms: 22_500, beat_ms: 4_500, margin_ms: 4_000 }, lateMs: 4_000 }),
  {
    name: "beats name the run while its program is silent",
    rule: "Send one every `beat_ms` while there are runs, whether they write or not.",
    async check(bench) {
      const { service } = bench;
      const id = bench.add("sleep 2");
      await bench.start();
      await bench.waitForEnd(id);
      const beats = service.list("beat").filter(({ body }) =>
        (body as { running: string[] }).running.includes(id)
      );
      expectTrue(`${beats.length} beats in 2 s`, beats.length >= 3 && beats.length <= 14);
    },
  },
  ...["cancelled", "budget: used up"].map((stop): ConformanceCase => ({
    name: `stop "${stop}" in a beat ends the program, and the end says so`,
    rule: "`stop` isn't empty: end its processes, and report the end with this text as `interruption`",
    async check(bench) {
      const id = bench.add(`echo said; ${bench.formatLoop()}`);
      await bench.start();
      await waitForProgram(bench);
      bench.service.stopFor = () => stop;
      const [end] = (await bench.waitForEnd(id)).ends;
      expectEqual("end", [end?.interruption, end?.outcome.status], [stop, "failed"]);
      await bench.waitForQuiet("alive");
    },
  })),
  buildLeaseCase("claim", { times: { lease_ms: 20_000, beat_ms: 200, margin_ms: 4_000 }, lateMs: 4_000 }),
  {
    name: "a runner has at most max_runs runs whose end the service has not stored",
    rule:
      "The runner claims while it has fewer runs than `max_runs`. It has one claim at a time. A run counts until its end was answered.",
    async check(bench) {
      const { service } = bench;
      const ids = Array.from({ length: 5 }, () => bench.add("echo done"));
      let most = 0;
      service.interfere = ({ kind }) => {
        const open = [...service.runs.values()].filter(({ ends }) => ends.length === 0).length;
        most = Math.max(most, open);
        const refused = service.list("end").length <= 3 && kind === "end";
        return refused ? new Response("busy", { status: 503 }) : null;
      };
      await bench.start();
      for (const id of ids) await bench.waitForEnd(id);
      expectEqual("max_runs of the claims", [...new Set(service.claims.map(({ max_runs }) => max_runs))], [
        2,
      ]);
      expectTrue(`${most} open runs`, most <= 2);
    },
  },
  {
    name: "two runs in one directory do not overlap",
    rule: "Start a run only after all processes of the earlier run in its directory have ended",
    async check(bench) {
      const work_dir = `${bench.workRoot}/workers/shared`;
      const script = `echo start >> ${bench.file("steps")}; sleep 0.7; echo end >> ${bench.file("steps")}`;
      const ids = [bench.add(script, { work_dir }), bench.add(script, { work_dir })];
      await bench.start();
      for (const id of ids) await bench.waitForEnd(id);
      expectEqual("steps", await bench.read("steps"), "start\nend\nstart\nend\n");
    },
  },
  {
    name: "a second process in the same directory claims nothing and exits with a code other than 0",
    rule:
      "Let only one process use a work root: a second one exits with a code other than 0 before its first claim.",
    async check(bench) {
      const { service } = bench;
      await bench.start();
      await bench.wait("a claim", () => service.claims.length > 0);
      const code = await bench.waitForExit(await bench.start());
      expectTrue("the exit code is 0", code !== 0);
      expectEqual("processes that claim", new Set(service.claims.map(({ process }) => process)).size, 1);
    },
  },
  {
    name: "a runner without boxes fails a run that needs one with isolation, and starts nothing",
    rule: "A runner without boxes fails such a run with `isolation` and starts nothing",
    async check(bench) {
      const isolation = { box: {}, network: null, max_network: "host" as const, hidden: [] };
      const id = bench.add(`echo x >> ${bench.file("starts")}`, { isolation });
      await bench.start();
      const [end] = (await bench.waitForEnd(id)).ends;
      // The runner may have boxes. Then its own tests show what a box hides.
      if (bench.service.claims[0]?.box) return;
      expectEqual("outcome", [end?.outcome.status, end?.outcome.failure], ["failed", "isolation"]);
      expectEqual("starts", await bench.read("starts"), "");
    },
  },
  {
    name: "a claim has a new request_id, and the epoch of the last answer",
    rule: "a new UUID for each claim, the same in its repetitions.",
    async check(bench) {
      const { service } = bench;
      await bench.start();
      await bench.wait("three claims", () => service.claims.length >= 3);
      const claims = service.claims.slice(0, 3);
      expectEqual("request ids", new Set(claims.map(({ request_id }) => request_id)).size, 3);
      expectEqual("epochs", claims.map(({ epoch }) => epoch), [0, 1, 1]);
      expectEqual("processes", new Set(claims.map(({ process }) => process)).size, 1);
      const { work_root, engines } = claims[0] as (typeof claims)[number];
      expectEqual("work_root", work_root, bench.workRoot);
      expectTrue("no engine sh", engines.some(({ name, agent }) => name === "sh" && !agent));
    },
  },
  {
    name: "SIGTERM: the runner finishes its run, reports it, claims nothing and exits with 0",
    rule:
      "After SIGTERM, don't claim. Wait up to 30 s for runs, end the rest with `shutdown`, report, and exit with 0.",
    async check(bench) {
      const { service } = bench;
      const id = bench.add(`echo x >> ${bench.file("alive")}; sleep 1.5; echo finished`);
      const runner = await bench.start();
      await waitForProgram(bench);
      runner.child.kill("SIGTERM");
      await pause(700);
      const other = bench.add("echo other");
      const code = await bench.waitForExit(runner);
      const [end] = service.runs.get(id)?.ends ?? [];
      expectEqual("end", [end?.interruption, end?.outcome.status, code], [null, "completed", 0]);
      expectEqual("a run claimed after SIGTERM", service.runs.has(other), false);
    },
  },
  {
    name: "SIGTERM twice: the runner ends its program and reports shutdown",
    rule: "After a second SIGTERM, do this without the wait.",
    async check(bench) {
      const { service } = bench;
      const id = bench.add(formatLoop(bench));
      const runner = await bench.start();
      await waitForProgram(bench);
      runner.child.kill("SIGTERM");
      await pause(500);
      runner.child.kill("SIGTERM");
      expectEqual("exit code", await bench.waitForExit(runner), 0);
      await bench.waitForQuiet("alive");
      expectEqual("interruption", service.runs.get(id)?.ends.map(({ interruption }) => interruption), [
        "shutdown",
      ]);
    },
  },
  {
    name: "SIGTERM during a claim that got a run: the runner returns it without a start",
    rule:
      "A claim that a stop interrupts may have got a run. Repeat it once with `wait_ms` 0, give up after 2 s, and end that run with `interruption` `shutdown` without starting it.",
    async check(bench) {
      const { service } = bench;
      const runner = await bench.start();
      await bench.wait("a second claim", () => service.claims.length === 2);
      service.interfere = ({ kind }) => kind === "claim" ? "hang" : null;
      await bench.wait("a third claim", () => service.claims.length === 3);
      const id = bench.add(`echo x >> ${bench.file("starts")}`);
      const [order] = service.waiting.splice(0);
      const { request_id } = service.claims[2] as (typeof service.claims)[number];
      if (order !== undefined) service.giveOrder(request_id, order);
      service.interfere = () => null;
      runner.child.kill("SIGTERM");
      expectEqual("exit code", await bench.waitForExit(runner), 0);
      const ends = service.runs.get(id)?.ends.map(({ interruption, ran_ms }) => [interruption, ran_ms]);
      expectEqual("ends", ends, [["shutdown", null]]);
      expectEqual("starts", await bench.read("starts"), "");
    },
  },
  {
    name:
      "kill -9 and a restart: the old program ends before the first claim, and its run is not started or reported",
    rule:
      "At the start, before the first claim, end all processes that an earlier process of this runner left",
    async check(bench) {
      const { service } = bench;
      const id = bench.add(formatLoop(bench));
      const killed = await bench.start();
      await waitForProgram(bench);
      killed.child.kill("SIGKILL");
      await killed.ended;
      let sizeAtClaim = -1;
      service.interfere = ({ kind }) => {
        if (kind === "claim" && sizeAtClaim === -1) sizeAtClaim = Deno.statSync(bench.file("alive")).size;
        return null;
      };
      const before = service.claims.length;
      await bench.start();
      await bench.wait("two more claims", () => service.claims.length >= before + 2);
      await bench.waitForQuiet("alive");
      const [old, fresh] = [service.claims[0], service.claims[before]];
      expectEqual("place", fresh?.place, old?.place);
      expectEqual("epoch of the first claim", fresh?.epoch, 0);
      expectTrue("the process is the same", fresh?.process !== old?.process);
      expectEqual("size of the old program's file", (await bench.read("alive")).length, sizeAtClaim);
      expectEqual("starts", await bench.read("starts"), "start\n");
      expectEqual("ends", service.runs.get(id)?.ends.length, 0);
      await bench.waitForEnd(bench.add("echo next"));
    },
  },
];
