// Cases about what a program and its check get, write and leave behind.
import { countBytes } from "../../../src/base/bytes.ts";
import {
  type Bench,
  type ConformanceCase,
  expectEqual,
  expectTrue,
  listOwnVariables,
  readLog,
} from "./bench.ts";
import { pause, type ServedRun } from "./service.ts";

const SECRET = "a-secret-of-32-characters-abcdef";
const SERVER_SECRET = "a-secret-of-a-server-123456789";
const RESULT_MAX_BYTES = 200 * 1024;
// A shorter part of a secret may remain at a cut.
const PART_MIN_CHARACTERS = 12;
// The line that says that the result is cut.
const CUT_LINE_MAX_BYTES = 1_024;

/** Formats a script that writes a text in two pieces, so far apart that no runner reads them together. */
function formatPieces(text: string): string {
  const half = text.length / 2;
  return `printf %s 'from-${text.slice(0, half)}'; sleep 0.7; printf %s '${text.slice(half)}-to'`;
}

/** Lists the values of the order that a text shows. */
function listShown({ order }: ServedRun, text: string): string[] {
  const { token, secrets, mcp } = order;
  return [token, ...Object.values(secrets), ...mcp.secrets].filter((value) => text.includes(value));
}

/** Checks the result of a run that wrote this line again and again. */
async function checkResult(bench: Bench, id: string, line: string, status: string): Promise<void> {
  const [end] = (await bench.waitForEnd(id)).ends;
  expectEqual("status of a run with a long result", end?.outcome.status, status);
  const text = end?.outcome.text ?? "";
  const size = countBytes(text);
  expectTrue(
    `it sent a result of ${size} bytes instead of ${RESULT_MAX_BYTES} at most`,
    size <= RESULT_MAX_BYTES,
  );
  const start = line.repeat(Math.floor((RESULT_MAX_BYTES - CUT_LINE_MAX_BYTES) / countBytes(line)));
  expectTrue(`its result of ${size} bytes is not the start of stdout`, text.startsWith(start));
  expectTrue("its result does not say that it was cut", text.replaceAll(line, "").length > line.length);
}

export const PROGRAM_CASES: readonly ConformanceCase[] = [
  {
    name: "processes that a program leaves in the background have ended before its end is reported",
    rule:
      "Processes that a program leaves in the background when it ends have ended before the runner reports the end, too.",
    async check(bench) {
      let sizeAtEnd = -1;
      bench.service.interfere = ({ kind }) => {
        if (kind === "end" && sizeAtEnd === -1) sizeAtEnd = Deno.statSync(bench.file("alive")).size;
        return null;
      };
      // The first process keeps the pipes of the program open. The second has no pipes, and a new session where setsid exists.
      const id = bench.add(
        `{ ${bench.formatLoop()}; } & $(command -v setsid) sh -c '${bench.formatLoop()}' </dev/null >/dev/null 2>&1 & ` +
          `until [ -s ${bench.file("alive")} ]; do sleep 0.05; done; echo done`,
      );
      await bench.start();
      const [end] = (await bench.waitForEnd(id)).ends;
      await pause(1_000);
      const { length } = await bench.read("alive");
      expectTrue(
        "it left a process of the program that wrote after the end of the run",
        length === sizeAtEnd,
      );
      expectEqual("end", [end?.outcome.status, end?.outcome.text.trim()], ["completed", "done"]);
    },
  },
  {
    name: "the log arrives while the program runs",
    rule: "Send a part soon after the program wrote it and not only at the end",
    async check(bench) {
      const { service } = bench;
      const [seen, unseen] = [bench.file("seen"), bench.file("unseen")];
      // The program waits until its first line has arrived, for 8 s at most.
      const id = bench.add(
        `head -c 2000 /dev/zero | tr '\\0' x; echo; i=0; until [ -e ${seen} ]; do sleep 0.1; i=$((i + 1)); ` +
          `[ $i -lt 80 ] || { echo x > ${unseen}; break; }; done; echo last`,
      );
      const hasFirstLine = () => {
        const run = service.runs.get(id);
        return run !== undefined && readLog(run).includes("x".repeat(1_000));
      };
      await bench.start();
      await bench.wait("the log", hasFirstLine);
      await Deno.writeTextFile(seen, "");
      const log = readLog(await bench.waitForEnd(id));
      const isUnseen = await bench.read("unseen") !== "";
      expectTrue("it sent no log for 8 s, in which the program waited for that", !isUnseen);
      expectTrue("the log has no last line", log.includes("last"));
    },
  },
  {
    name: "secrets are masked in the log and in the result, also those that the program wrote in two pieces",
    rule:
      "replace `token`, every value of `secrets` and of `mcp.secrets` by asterisks, also in the result, and also a value that the program wrote in two pieces.",
    async check(bench) {
      const script = [
        formatPieces(SECRET),
        formatPieces("token-of-the-run"),
        // Later: a runner reads stdout and stderr in any order.
        "sleep 0.7",
        `{ ${formatPieces(SERVER_SECRET)}; } >&2`,
        "sleep 0.7",
        'echo; echo "$KEY $SVC_TOKEN"',
      ];
      const mcp = { servers: {}, secrets: [SERVER_SECRET] };
      const id = bench.add(script.join("\n"), { secrets: { KEY: SECRET }, mcp });
      await bench.start();
      const run = await bench.waitForEnd(id);
      const [log, text] = [readLog(run), run.ends[0]?.outcome.text ?? ""];
      expectEqual("secrets in the log", listShown(run, log), []);
      expectEqual("secrets in the result", listShown(run, text), []);
      expectTrue(`its log does not mask 3 secrets: ${log}`, log.match(/from-\*+-to/g)?.length === 3);
      expectTrue(`its result does not mask 2 secrets: ${text}`, text.match(/from-\*+-to/g)?.length === 2);
    },
  },
  {
    name: "a secret at the cut of the log or of the result is masked, too",
    rule: "Mask before you cut at a limit: a part of a value is a secret, too.",
    async check(bench) {
      const secret = `part-of-a-long-secret-${"0123456789".repeat(20)}`;
      const script = 'yes "$KEY" | head -c 700000';
      const id = bench.add(script, { secrets: { KEY: secret }, max_log_bytes: 20_000 });
      await bench.start();
      const run = await bench.waitForEnd(id);
      const part = secret.slice(0, PART_MIN_CHARACTERS);
      expectTrue("its log shows a part of a secret", !readLog(run).includes(part));
      expectTrue("its result shows a part of a secret", run.ends[0]?.outcome.text.includes(part) === false);
    },
  },
  {
    name: "a result has at most 200 KiB, whatever the program wrote and however it ended",
    rule:
      "at most 200 KiB of UTF-8, with U+FFFD for what is none. Drop the rest, and end the result with a line that says so.",
    async check(bench) {
      const write = (line: string, bytes = 700_000) => `yes "$(printf '${line}')" | head -c ${bytes}`;
      const long = bench.add(write("plain"));
      const failed = bench.add(`${write("failed")}; exit 3`);
      // Few bytes, but many in UTF-8.
      const bytes = bench.add(write("byte\\377", 180_000));
      await bench.start();
      await checkResult(bench, long, "plain\n", "completed");
      await checkResult(bench, failed, "failed\n", "failed");
      await checkResult(bench, bytes, "byte\ufffd\n", "completed");
    },
  },
  {
    name: "a check gets the environment of the program, but no token and no secrets",
    rule:
      "The check gets the environment of the program without `SVC_TOKEN`, `secrets` and any other variable with one of their values.",
    async check(bench) {
      const command = ["sh", "-c", `env > ${bench.file("env")}`];
      const id = bench.add("true", {
        env: { COLOR: "red", COPY: SECRET },
        secrets: { KEY: SECRET },
        verify: { command, timeout_ms: 10_000, attempts: 0 },
      });
      await bench.start();
      const run = await bench.waitForEnd(id);
      expectEqual("check", run.ends[0]?.outcome.verify?.status, "passed");
      const env = (await bench.read("env")).split("\n");
      for (const line of ["COLOR=red", `SVC_RUN_ID=${run.order.execution.run_id}`]) {
        expectTrue(`the environment of the check has no ${line}`, env.includes(line));
      }
      const kept = env.filter((line) => /^(SVC_TOKEN|KEY)=/.test(line) || listShown(run, line).length > 0);
      expectEqual("secrets in the environment of the check", kept, []);
      expectEqual("variables of the runner in the environment of the check", listOwnVariables(env), []);
    },
  },
  {
    name: "after a failed check the engine starts again with the output of the check",
    rule:
      "When it fails, start the engine again with the instruction, an empty line and the check's output, and check again.",
    async check(bench) {
      const [starts, said] = [bench.file("starts"), bench.file("said")];
      // The instruction ends inside a text for cat, so that what follows it goes to the file.
      const id = bench.add(`echo start >> ${starts}\ncat > ${said} <<'END'`, {
        verify: {
          command: ["sh", "-c", `[ $(wc -l < ${starts}) -ge 2 ] || { echo words of the check; exit 1; }`],
          timeout_ms: 10_000,
          attempts: 1,
        },
      });
      await bench.start();
      const run = await bench.waitForEnd(id);
      expectEqual("starts of the program", await bench.read("starts"), "start\nstart\n");
      expectTrue(
        "the second start did not get the words of the check",
        /words of the check/.test(await bench.read("said")),
      );
      expectTrue("the log has no output of the check", readLog(run).includes("words of the check"));
      expectEqual("check", run.ends[0]?.outcome.verify, { status: "passed", attempts: 2 });
    },
  },
];
