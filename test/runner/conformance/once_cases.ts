// Cases for runners of one run.
import { type ConformanceCase, expectEqual } from "./bench.ts";
import { buildProblem } from "./service.ts";

export const ONCE_CASES: ConformanceCase[] = [
  {
    name: "a runner of one run does it, claims no other and exits with 0",
    rule: "claims with `max_runs` 1 until an answer has a run, and then no more.",
    async check(bench) {
      const { service } = bench;
      const id = bench.add("echo done");
      bench.add(`echo started >> ${bench.file("starts")}`);
      const runner = await bench.start();
      expectEqual("exit code", await bench.waitForExit(runner), 0);
      const [end] = (await bench.waitForEnd(id)).ends;
      expectEqual("end", [end?.outcome.status, end?.outcome.text.trim()], ["completed", "done"]);
      expectEqual("starts of the other run", await bench.read("starts"), "");
      expectEqual("max_runs of the claims", [...new Set(service.claims.map(({ max_runs }) => max_runs))], [
        1,
      ]);
    },
  },
  {
    name: "a runner of one run exits with 0 after a run that failed",
    rule: "exits with 0 when the end was stored, whatever the outcome, and after SIGTERM",
    async check(bench) {
      const id = bench.add("exit 3");
      expectEqual("exit code", await bench.waitForExit(await bench.start()), 0);
      const [end] = (await bench.waitForEnd(id)).ends;
      expectEqual("end", [end?.outcome.failure, end?.interruption], ["exit_code", null]);
    },
  },
  {
    name: "an answer without a run: a runner of one run claims again",
    rule: "the order, or null: claim again immediately",
    async check(bench) {
      const { service } = bench;
      const runner = await bench.start();
      await bench.wait("a second claim", () => service.claims.length >= 2);
      const id = bench.add("echo done");
      expectEqual("exit code", await bench.waitForExit(runner), 0);
      expectEqual("ends", (await bench.waitForEnd(id)).ends.length, 1);
    },
  },
  {
    name: "401 to the claim of a runner of one run: it came too late and exits with 0",
    rule:
      "exits with 0 when a claim is refused with 401 before it had a run, because the service wants no run from it any more.",
    async check(bench) {
      bench.service.interfere = () => buildProblem(401, "unauthenticated");
      expectEqual("exit code", await bench.waitForExit(await bench.start()), 0);
      expectEqual("claims", bench.service.claims.length, 1);
    },
  },
  {
    name: "409 to the claim of a runner of one run: it exits with another code than 0",
    rule: "It doesn't repeat a claim after 409",
    async check(bench) {
      bench.service.interfere = () => buildProblem(409, "conflict");
      const code = await bench.waitForExit(await bench.start());
      expectEqual("it exits with 0", code === 0, false);
      expectEqual("claims", bench.service.claims.length, 1);
    },
  },
  {
    name: "SIGTERM: a runner of one run ends it immediately with shutdown, and exits with 0",
    rule: "after SIGTERM: it ends the run immediately with `shutdown`",
    async check(bench) {
      const id = bench.add(bench.formatLoop());
      const runner = await bench.start();
      await bench.wait("the program", async () => (await bench.read("alive")) !== "");
      runner.child.kill("SIGTERM");
      expectEqual("exit code", await bench.waitForExit(runner), 0);
      const [end] = (await bench.waitForEnd(id)).ends;
      expectEqual("end", [end?.interruption, end?.outcome.status], ["shutdown", "failed"]);
    },
  },
];
