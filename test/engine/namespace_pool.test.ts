import { expect, it } from "vitest";
import { detectIsolation } from "../../src/engine/process/isolation.ts";
import { type ProcessSpec, runProcess } from "../../src/engine/process/process.ts";
import { createTempDir } from "../harness/service/process.ts";

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
    box: null,
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
    const long = "x".repeat(40_000);
    expect(await run([long], "")).toMatchObject({
      words: ["/usr", "0027", "", long, "of the program\n"],
      pooled: false,
    });
    const env = { PATH: "/usr/bin:/bin", "A.B": "c", UID: "7", TEXT: "" };
    expect(await run([], "", { env })).toMatchObject({ code: 0, pooled: false });
  },
);

/** Whether this process may mount. */
async function canMount(): Promise<boolean> {
  await using place = await createTempDir();
  const { success } = await new Deno.Command("mount", {
    args: ["-t", "tmpfs", "svc-test", place.path],
    stderr: "null",
  }).output();
  if (success) await new Deno.Command("umount", { args: [place.path] }).output();
  return success;
}

const mounts = isolation === "namespace" && await canMount();

async function mount(args: string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("mount", { args }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
}

// The propagation of a mount decides whether a namespace from before sees it, and differs by machine.
it.runIf(mounts).each<[string, (place: string, other: string) => Promise<void>, string]>([
  ["an empty file system", (place) => mount(["-t", "tmpfs", "svc-test", place]), ""],
  ["another directory", (place, other) => mount(["--bind", other, place]), "new"],
  ["a read-only copy", async (place) => {
    await mount(["--bind", place, place]);
    await mount(["-o", "remount,bind,ro", place]);
  }, "old"],
])(
  "startInPool() shows a program %s that was mounted over its directory after a namespace was ready",
  async (_, add, seen) => {
    await using place = await createTempDir();
    await using other = await createTempDir();
    await Deno.writeTextFile(`${place.path}/old`, "");
    await Deno.writeTextFile(`${other.path}/new`, "");
    const look = async () => {
      const args = ["-c", "ls; [ -w . ] && echo writable", "sh"];
      return (await run([], "", { args, cwd: place.path, stdin: "", onStart() {} })).words[0]?.trim();
    };
    await mount(["--bind", place.path, place.path]);
    await mount(["--make-private", place.path]);
    try {
      await run([], "");
      await new Promise((resolve) => setTimeout(resolve, 500));
      await add(place.path, other.path);
      try {
        const isReadOnly = (await Deno.readTextFile("/proc/self/mountinfo")).split("\n")
          .findLast((line) => line.split(" ")[4] === place.path)?.split(" ")[5]?.startsWith("ro");
        expect(await look()).toBe(
          [seen, ...isReadOnly ? [] : ["writable"]].filter((word) => word !== "").join("\n"),
        );
      } finally {
        await new Deno.Command("umount", { args: [place.path] }).output();
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
      expect(await look()).toBe("old\nwritable");
    } finally {
      await new Deno.Command("umount", { args: [place.path] }).output();
    }
  },
);
