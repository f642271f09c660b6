import { expect, it } from "vitest";
import { detectIsolation } from "../../src/engine/process/isolation.ts";
import { type ProcessSpec, runProcess } from "../../src/engine/process/process.ts";

// Prints the directory, the umask, the environment and the arguments, each followed by a byte that none of them contains.
const SCRIPT = `printf '%s\\0' "$PWD" "$(umask)" "$TEXT" "$@"; cat`;
const HARD = [
  "",
  " ",
  "a b",
  "'",
  `"`,
  "$HOME",
  "`id`",
  "\\",
  "\\n",
  "line\nbreak",
  "\n\n",
  "-n",
  "*",
  "ä → 😀",
  "&&",
  ";",
];

const isolation = await detectIsolation();

interface Ran {
  words: string[];
  code: number;
  /** Whether the program started in a pooled namespace: the outermost process has no environment. */
  pooled: boolean;
}

async function run(args: string[], text: string, more: Partial<ProcessSpec> = {}): Promise<Ran> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let pooled = false;
  const runId = crypto.randomUUID();
  const { code } = await runProcess({
    runId,
    command: "/bin/sh",
    args: ["-c", SCRIPT, "sh", ...args],
    cwd: "/usr",
    env: { PATH: "/usr/bin:/bin", SVC_RUN_ID: runId, TEXT: text },
    stdin: `of the program\n${text}`,
    isolation,
    umask: 0o027,
    timeoutMs: 20_000,
    idleTimeoutMs: 20_000,
    stopGraceMs: 300,
    signal: new AbortController().signal,
    waitedMs: () => 0,
    onStart: (pid) => pooled = hasNoEnvironment(pid),
    onOutput: (stream, chunk) => stream === "stdout" && pieces.push(new Uint8Array(chunk)),
    ...more,
  });
  return { words: (await new Blob(pieces).text()).split("\0"), code, pooled };
}

// A process has no environment during the first moments of its start.
function hasNoEnvironment(pid: number): boolean {
  const end = performance.now() + 50;
  while (performance.now() < end) {
    if (Deno.readTextFileSync(`/proc/${pid}/environ`) !== "") return false;
  }
  return true;
}

it.runIf(isolation === "namespace")(
  "startInPool() gives a program the same directory, umask, environment, arguments and stdin as a new namespace",
  async () => {
    let pooled = 0;
    for (let at = 0; at < 24; at++) {
      const text = HARD[at % HARD.length] ?? "";
      const ran = await run([...HARD, text], text);
      expect(ran.words).toEqual(["/usr", "0027", text, ...HARD, text, `of the program\n${text}`]);
      expect(ran.code).toBe(0);
      if (ran.pooled) pooled++;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(pooled).toBeGreaterThan(5);
  },
);

it.runIf(isolation === "namespace")(
  "startInPool() leaves a program that an order cannot describe to a new namespace",
  async () => {
    await run([], "");
    await new Promise((resolve) => setTimeout(resolve, 500));
    const long = "x".repeat(10_000);
    expect(await run([long], "")).toMatchObject({
      words: ["/usr", "0027", "", long, "of the program\n"],
      pooled: false,
    });
    const env = { PATH: "/usr/bin:/bin", "A.B": "c", UID: "7", TEXT: "" };
    expect(await run([], "", { env })).toMatchObject({ code: 0, pooled: false });
  },
);
