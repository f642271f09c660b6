// Runs the commands of launchers (contract 33).
import { redact } from "../../base/log.ts";
import { findTool, signal as send } from "../../engine/process/isolation.ts";
import { feedStdin, findProgram } from "../../engine/process/process.ts";
import { readProgramEnv } from "../program_env.ts";

/** Output of a command that the service reads, of stdout and of stderr. The rest is dropped. */
const LAUNCHER_OUTPUT_MAX_BYTES = 64 * 1024;
const WORDS_MAX_CHARACTERS = 300;
// A job that the command started may keep the pipes open.
const PIPES_MAX_MS = 500;

interface LauncherCall {
  argv: readonly string[];
  /** Variables in addition to those of every program of the configuration. */
  env: Record<string, string>;
  stdin: string;
  timeoutMs: number;
  /** A text that no output shows. */
  secret: string;
  signal: AbortSignal;
}

/** `unknown`: it did not end in time, or the service stopped. Whether it did its work is unknown. */
export type LauncherResult =
  | { kind: "done"; line: string }
  | { kind: "failed"; reason: string }
  | { kind: "unknown"; reason: string };

/**
 * Runs a command without a shell, and returns the first line that it printed. Never throws. Processes that it leaves behind continue, because
 * one may be the job. So the command gets none of the isolation of agents, which ends every process.
 */
export async function runLauncherProgram(call: LauncherCall): Promise<LauncherResult> {
  try {
    return await runCommand(call);
  } catch (error) {
    return { kind: "failed", reason: error instanceof Error ? error.message : String(error) };
  }
}

async function runCommand(
  { argv, env, stdin, timeoutMs, secret, signal }: LauncherCall,
): Promise<LauncherResult> {
  const [name = "", ...args] = argv;
  const inherited = readProgramEnv();
  const program = findProgram(name, inherited.PATH ?? "");
  // A fork of this process for the session would block everything for ten milliseconds.
  const setsid = findTool("setsid");
  const [first = "", ...rest] = [
    ...(setsid === null ? [] : [setsid]),
    ...buildLimit(timeoutMs),
    program,
    ...args,
  ];
  const startedAt = performance.now();
  const child = new Deno.Command(first, {
    args: rest,
    env: { ...inherited, ...env },
    clearEnv: true,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
    detached: setsid === null,
  }).spawn();
  let end = "exited" as "exited" | "timeout" | "stopped";
  const kill = (why: typeof end) => {
    end = why;
    send(-child.pid, "SIGKILL");
  };
  const timer = setTimeout(() => kill("timeout"), timeoutMs);
  const onAbort = () => kill("stopped");
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  const stopped = new AbortController();
  const stdout = new BoundedOutput(child.stdout, stopped.signal);
  const stderr = new BoundedOutput(child.stderr, stopped.signal);
  void feedStdin(child.stdin, stdin);
  const { code } = await child.status;
  clearTimeout(timer);
  signal.removeEventListener("abort", onAbort);
  await Promise.race([
    Promise.all([stdout.ended, stderr.ended]),
    new Promise((resolve) => setTimeout(resolve, PIPES_MAX_MS)),
  ]);
  stopped.abort();
  // `timeout` may be earlier than the timer of a busy service.
  if (end === "timeout" || code !== 0 && performance.now() - startedAt >= timeoutMs) {
    return {
      kind: "unknown",
      reason: `${name} did not end within ${timeoutMs / 1_000} s, and may have started a job`,
    };
  }
  if (end === "stopped") return { kind: "unknown", reason: `the service stopped while ${name} ran` };
  const clean = (text: string) => readFirstLine(secret === "" ? text : text.replaceAll(secret, "[redacted]"));
  if (code === 0) return { kind: "done", line: clean(stdout.text) };
  const words = clean(stderr.text);
  return {
    kind: "failed",
    reason: `${name} ended with exit code ${code}${words === "" ? "" : `: ${words}`}`,
  };
}

/**
 * Returns the words that end a command with its process group after this time, also when the service was killed before. A job in
 * another session continues.
 */
function buildLimit(timeoutMs: number): string[] {
  const timeout = findTool("timeout");
  return timeout === null ? [] : [timeout, "-s", "KILL", `${timeoutMs / 1_000}`];
}

/** Keeps the start of a stream, and reads the rest so that the program does not block. */
class BoundedOutput {
  readonly ended: Promise<void>;
  readonly #decoder = new TextDecoder();
  #text = "";
  #bytes = 0;

  constructor(stream: ReadableStream<Uint8Array>, signal: AbortSignal) {
    const reader = stream.getReader();
    signal.addEventListener("abort", () => void reader.cancel().catch(() => {}), { once: true });
    this.ended = this.#read(reader).catch(() => {});
  }

  get text(): string {
    return this.#text;
  }

  async #read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const kept = part.value.subarray(0, LAUNCHER_OUTPUT_MAX_BYTES - this.#bytes);
      this.#bytes += kept.length;
      if (kept.length > 0) this.#text += this.#decoder.decode(kept, { stream: true });
    }
  }
}

// deno-lint-ignore no-control-regex
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;

/** Returns the first line that is not empty, without control characters and tokens. */
function readFirstLine(text: string): string {
  const line = text.split(/\r?\n/).find((one) => one.replace(CONTROLS, "").trim() !== "") ?? "";
  return redact(line.replace(CONTROLS, " ").trim()).slice(0, WORDS_MAX_CHARACTERS);
}
