// Runs an agent under the given isolation until a test kills it: `orphan.ts <isolation> <run id> <mode>`.
import { type Isolation } from "../../../src/engine/process/isolation.ts";
import { runProcess } from "../../../src/engine/process/process.ts";
import { FAKE_AGENT } from "./agents.ts";

const [isolation = "", runId = "", ...args] = Deno.args;
await runProcess({
  runId,
  command: FAKE_AGENT,
  args,
  cwd: "/tmp",
  env: { PATH: Deno.env.get("PATH") ?? "", SVC_RUN_ID: runId },
  stdin: "",
  isolation: isolation as Isolation,
  box: null,
  umask: 0o022,
  timeoutMs: 60_000,
  idleTimeoutMs: 60_000,
  stopGraceMs: 1_000,
  signal: new AbortController().signal,
  waitedMs: () => 0,
  onStart: () => {},
  onOutput: (_stream, chunk) => Deno.stdout.writeSync(chunk),
});
