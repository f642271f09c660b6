import {
  type Bench,
  type ConformanceCase,
  expectEqual,
  expectTrue,
  listOwnVariables,
  readLog,
} from "./bench.ts";
import { LIFE_CASES } from "./life_cases.ts";
import { PROGRAM_CASES } from "./program_cases.ts";
import { REPO_CASES } from "./repo_cases.ts";
import { buildProblem, pause, type RequestKind } from "./service.ts";

const RUN_KINDS: RequestKind[] = ["claim", "log", "events", "end"];

/** Checks a run with a log of several parts, which must arrive once. */
async function checkOnce(bench: Bench): Promise<void> {
  const { service } = bench;
  const id = bench.add(
    `echo started >> ${bench.file("starts")}; for i in 1 2 3; do echo line $i; sleep 0.3; done`,
  );
  await bench.start();
  const run = await bench.waitForEnd(id);
  await bench.wait("a claim after the end", () => service.requests.at(-1)?.kind === "claim");
  expectEqual("starts of the program", await bench.read("starts"), "started\n");
  const lines = readLog(run).match(/line \d/g);
  expectEqual("lines in the log", lines, ["line 1", "line 2", "line 3"]);
  expectEqual("different ends", [...new Set(run.ends.map((end) => JSON.stringify(end.outcome)))].length, 1);
  const { outcome, interruption } = run.ends[0] as (typeof run.ends)[number];
  expectEqual("status", [outcome.status, interruption], ["completed", null]);
  expectEqual("result", outcome.text.trim(), "line 1\nline 2\nline 3");
}

function buildRepeatCase(
  name: string,
  kinds: RequestKind[],
  action: (count: number) => Response | "cut" | "cut after",
): ConformanceCase {
  return {
    name,
    rule: "Repeat until an answer comes or the run is lost.",
    async check(bench) {
      const { service } = bench;
      service.interfere = ({ kind }, count) => kinds.includes(kind) && count <= 2 ? action(count) : null;
      await checkOnce(bench);
      const [first, second] = service.claims;
      if (kinds.includes("claim")) expectEqual("repeated request_id", second?.request_id, first?.request_id);
    },
  };
}

const RUN_CASES: ConformanceCase[] = [
  {
    name: "a run completes with its log and its result",
    rule: "Every request can be repeated: the service may have stored it although its answer was lost.",
    check: checkOnce,
  },
  {
    name: "a program that fails ends with exit_code",
    rule: "Exit code 0 is success.",
    async check(bench) {
      const id = bench.add("echo out; echo broken >&2; exit 3");
      await bench.start();
      const run = await bench.waitForEnd(id);
      const { outcome } = run.ends[0] as (typeof run.ends)[number];
      expectEqual("outcome", [outcome.status, outcome.failure, outcome.exitCode], ["failed", "exit_code", 3]);
      expectTrue(`the log has no stderr: ${readLog(run)}`, readLog(run).includes("broken"));
    },
  },
  {
    name: "a program gets the environment, the secrets and the files of its order, and no more",
    rule: "Its environment is this list, not the runner's own.",
    async check(bench) {
      bench.service.files.set("note.txt", "from the message");
      const secret = "a-secret-of-32-characters-abcdef";
      const id = bench.add(
        `pwd > ${bench.file("dir")}; env > ${bench.file("env")}; cat "$SVC_CONTEXT_FILE" > ${
          bench.file("context")
        }; cat ${bench.workRoot}/files/$SVC_EXECUTION_ID/note.txt > ${bench.file("note")}; ` +
          `echo my $KEY; grep -rl "$KEY" ${bench.workRoot} > ${bench.file("leaks")}; true`,
        { env: { COLOR: "red" }, secrets: { KEY: secret }, files: ["note.txt"], time_zone: "Asia/Tokyo" },
      );
      await bench.start();
      const run = await bench.waitForEnd(id);
      const { execution, work_dir, token } = run.order;
      const env = (await bench.read("env")).split("\n");
      for (
        const line of [
          ...["COLOR=red", `KEY=${secret}`, "TZ=Asia/Tokyo", `SVC_TOKEN=${token}`],
          ...[`SVC_URL=${bench.service.url}`, `SVC_EXECUTION_ID=${id}`, `SVC_RUN_ID=${execution.run_id}`],
          ...[`SVC_TASK_ID=${execution.task_id}`, `SVC_WORKER_ID=${execution.worker_id}`],
          ...["SVC_SESSION_KEY=conformance", "SVC_MESSAGE_ID=m"],
        ]
      ) expectTrue(`the environment of the program has no ${line}`, env.includes(line));
      expectEqual("variables of the runner in the environment of the program", listOwnVariables(env), []);
      expectEqual("work directory", (await bench.read("dir")).trim(), work_dir);
      expectEqual("context", (await bench.read("context")).trim(), "{}");
      expectEqual("file of the message", await bench.read("note"), "from the message");
      expectEqual("files with the secret", await bench.read("leaks"), "");
      expectTrue("the log has the secret", !readLog(run).includes(secret));
      expectTrue("the result has the secret", !JSON.stringify(run.ends).includes(secret));
    },
  },
  {
    name: "an order with setup_error starts nothing and fails with setup",
    rule: "not empty: start nothing, and fail with `setup` and this text",
    async check(bench) {
      const id = bench.add(`echo x >> ${bench.file("starts")}`, { setup_error: "the secret KEY is missing" });
      await bench.start();
      const run = await bench.waitForEnd(id);
      const [end] = run.ends;
      expectEqual("outcome", [end?.outcome.status, end?.outcome.failure], ["failed", "setup"]);
      expectTrue(
        "the error has no reason",
        end?.outcome.error.includes("the secret KEY is missing") === true,
      );
      expectEqual("starts", await bench.read("starts"), "");
    },
  },
  {
    name: "a check decides whether a run completes",
    rule: "After `attempts` such rounds, so 1 + `attempts` checks, fail with `verify_failed`.",
    async check(bench) {
      const passing = bench.add("true", {
        verify: { command: ["sh", "-c", "exit 0"], timeout_ms: 10_000, attempts: 0 },
      });
      const failing = bench.add("true", {
        verify: { command: ["sh", "-c", "exit 1"], timeout_ms: 10_000, attempts: 0 },
      });
      await bench.start();
      const [passed] = (await bench.waitForEnd(passing)).ends;
      const [failed] = (await bench.waitForEnd(failing)).ends;
      expectEqual("passed", [passed?.outcome.status, passed?.outcome.verify], [
        "completed",
        { status: "passed", attempts: 1 },
      ]);
      expectEqual(
        "failed",
        [failed?.outcome.status, failed?.outcome.failure, failed?.outcome.verify?.status],
        [
          "failed",
          "verify_failed",
          "failed",
        ],
      );
    },
  },
  {
    name: "a long log arrives whole in parts, and max_log_bytes limits it",
    rule: "Drop the rest, and end the log with a line that says so",
    async check(bench) {
      const script = "head -c 1500000 /dev/zero | tr '\\0' x | fold -w 99";
      const whole = bench.add(script);
      const cut = bench.add(script, { max_log_bytes: 20_000 });
      await bench.start();
      const letters = readLog(await bench.waitForEnd(whole)).replace(/[^x]/g, "").length;
      expectTrue(`the log has ${letters} bytes of 1500000`, letters >= 1_500_000);
      const { length } = (await bench.waitForEnd(cut)).log;
      expectTrue(`the limited log has ${length} bytes`, length > 10_000 && length <= 20_000 + 4_096);
    },
  },
  {
    name: "a log continues where the service has lost a part",
    rule: "If it is smaller than the end of the part, the service lost bytes: continue at `size`.",
    async check(bench) {
      bench.service.changeLog = (run, offset) => {
        if (offset === 0 || run.log.length < 10) return;
        run.log = run.log.subarray(0, run.log.length - 5);
        bench.service.changeLog = () => {};
      };
      await checkOnce(bench);
    },
  },
  {
    name: "an outcome is well-formed text, whatever the program wrote",
    rule:
      "The service refuses unknown fields, a NUL character (`\\u0000`) and lone surrogates: replace them by U+FFFD.",
    async check(bench) {
      const id = bench.add("printf 'a\\000b\\377c'");
      await bench.start();
      const [end] = (await bench.waitForEnd(id)).ends;
      expectEqual("status", end?.outcome.status, "completed");
    },
  },
];

const ANSWER_CASES: ConformanceCase[] = [
  ...RUN_KINDS.map((kind) =>
    buildRepeatCase(
      `a lost answer to ${kind}: the runner repeats it, and nothing is double`,
      [kind],
      () => "cut after",
    )
  ),
  buildRepeatCase("a cut connection before the service took it: repeated", RUN_KINDS, () => "cut"),
  ...[[410, 429], [500, 503]].map((statuses) =>
    buildRepeatCase(
      `${statuses.join(" and ")} to each call: repeated`,
      [...RUN_KINDS, "beat"],
      (count) => buildProblem(statuses[count - 1] ?? 503, "unavailable"),
    )
  ),
  ...[[401, 403], [409, 502]].map((statuses) =>
    buildRepeatCase(
      `${statuses.join(" and ")} of a proxy, without a problem document, to each call: repeated`,
      [...RUN_KINDS, "beat"],
      (count) => new Response("<html>log in</html>", { status: statuses[count - 1] ?? 502 }),
    )
  ),
  {
    name: "401 to a claim: the runner exits with a code other than 0",
    rule: "401 or 403 to a claim | ends its runs, reports nothing, exits with a code other than 0",
    async check(bench) {
      bench.service.interfere = () => buildProblem(401, "unauthenticated");
      const code = await bench.waitForExit(await bench.start());
      expectTrue("the exit code is 0", code !== 0);
      expectEqual("requests", bench.service.requests.length, 1);
    },
  },
  {
    name:
      "409 to a later claim: the runner ends its runs, claims with epoch 0 once, and exits at the second one",
    rule:
      "409 to a claim with `epoch` above 0 | ends its runs without reports and claims with `epoch` 0, once; after a second 409 it exits with a code other than 0",
    async check(bench) {
      const { service } = bench;
      const id = bench.add(bench.formatLoop());
      const runner = await bench.start();
      await bench.wait("the program", async () => (await bench.read("alive")) !== "");
      service.interfere = ({ kind }) => kind === "claim" ? buildProblem(409, "conflict") : null;
      const code = await bench.waitForExit(runner);
      await bench.waitForQuiet("alive");
      expectTrue("the exit code is 0", code !== 0);
      const refused = service.claims.slice(-2).map(({ epoch }) => epoch);
      expectEqual("epochs of the last claims", refused, [1, 0]);
      expectEqual("ends", service.runs.get(id)?.ends.length, 0);
    },
  },
  {
    name: "409 to a beat: the runner ends its runs and reports nothing about them",
    rule: "401, 403 or 409 to a beat | ends its runs, reports nothing more about them.",
    check: (bench) =>
      checkLost(bench, () => {
        bench.service.interfere = ({ kind }) => kind === "beat" ? buildProblem(409, "conflict") : null;
      }),
  },
  {
    name: "a run that is missing in the answer of a beat: its program ends, and nothing is reported",
    rule:
      "A run that was sent in `running` and is missing in `runs` is lost: end its processes, send nothing more about it.",
    check: (bench) =>
      checkLost(bench, () => {
        bench.service.stopFor = () => null;
      }),
  },
  {
    name: "409 to log, events and end: the run is forgotten, and the runner continues",
    rule: "401, 403 or 409 to an end | forgets the run",
    async check(bench) {
      const { service } = bench;
      service.interfere = ({ kind }) =>
        ["log", "events", "end"].includes(kind) ? buildProblem(409, "conflict") : null;
      bench.add("echo one; sleep 0.5; echo two");
      await bench.start();
      await bench.wait("the end", () => service.list("end").length === 1);
      service.interfere = () => null;
      const next = bench.add("echo next");
      await bench.waitForEnd(next);
      expectEqual("ends", service.list("end").length, 2);
    },
  },
  ...[400, 413].map((status): ConformanceCase => ({
    name: `${status} to an end: the runner reports a failure instead`,
    rule:
      "400, 404 or 413 to an end | sends the same end once more with status `failed`, failure `engine_error` and a short error; forgets the run when that is refused, too",
    async check(bench) {
      const { service } = bench;
      const codes: Record<number, string> = { 400: "invalid_request", 413: "payload_too_large" };
      service.interfere = ({ kind }, count) =>
        kind === "end" && count === 1 ? buildProblem(status, codes[status] ?? "") : null;
      const id = bench.add("echo text");
      await bench.start();
      const [end] = (await bench.waitForEnd(id)).ends;
      expectEqual("outcome", [end?.outcome.status, end?.outcome.failure], ["failed", "engine_error"]);
    },
  })),
];

/** Checks that a lost run's program ends, and that the runner sends nothing more about it but claims again. */
async function checkLost(bench: Bench, lose: () => void): Promise<void> {
  const { service } = bench;
  const id = bench.add(bench.formatLoop());
  await bench.start();
  await bench.wait("a beat", () => service.list("beat").length > 0);
  await bench.wait("the program", async () => (await bench.read("alive")) !== "");
  lose();
  await bench.waitForQuiet("alive");
  service.interfere = () => null;
  service.stopFor = () => "";
  await pause(500);
  expectEqual("ends of the lost run", service.runs.get(id)?.ends.length, 0);
  const next = bench.add("echo next");
  await bench.waitForEnd(next);
  expectEqual("ends of the lost run", service.runs.get(id)?.ends.length, 0);
}

/** All cases of the conformance program, the longest first. */
export const CASES: readonly ConformanceCase[] = [
  ...LIFE_CASES,
  ...PROGRAM_CASES,
  ...RUN_CASES,
  ...ANSWER_CASES,
  ...REPO_CASES,
];
