// Changes the sources in small ways, one at a time, and lists changes that no test notices. `make mutants` runs this file.
import { basename, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { listSourceFiles, readText, ROOT } from "../harness/house/tree.ts";
import { buildMutants, type Mutant } from "./mutant.ts";
import { findTests } from "./tests_for.ts";

type Verdict = "killed" | "timeout" | "lives";

interface Result {
  mutant: Mutant;
  verdict: Verdict;
  /** The test that failed. */
  by: string;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    jobs: { type: "string", default: "2" },
    limit: { type: "string", default: "900" },
    // Restricts the sample to these places: `src/store/work/task.ts:31,src/store/work/task.ts:40`.
    only: { type: "string", default: "" },
    list: { type: "boolean", default: false },
    // Runs only the tests named after the file. Other tests may still kill a survivor.
    near: { type: "boolean", default: false },
  },
});
const LIMIT_MS = Number(values.limit) * 1000;

/** Creates a generator of random numbers (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function chooseSample(all: Mutant[], count: number, seed: number): Mutant[] {
  const next = createRandom(seed);
  const keyed = all.map((mutant) => ({ mutant, key: next() })).sort((a, b) => a.key - b.key);
  return keyed.slice(0, count).map(({ mutant }) => mutant);
}

/** Copies the project, so that its sources can be changed. */
async function copyProject(name: string): Promise<string> {
  const copy = join(ROOT, ".cache", "mutants", name);
  await Deno.remove(copy, { recursive: true }).catch(() => {});
  await Deno.mkdir(copy, { recursive: true });
  const kept = [".git", ".cache", ".deno", "node_modules", "dist", "data", "coverage"];
  for (const entry of Deno.readDirSync(ROOT)) {
    if (kept.includes(entry.name)) continue;
    await new Deno.Command("cp", { args: ["-r", join(ROOT, entry.name), copy] }).output();
  }
  await Deno.symlink(join(ROOT, "node_modules"), join(copy, "node_modules"));
  return copy;
}

async function runTests(copy: string, files: string[]): Promise<Omit<Result, "mutant">> {
  const report = join(copy, ".cache", "report.json");
  const without = [...unfit].map((file) => `--exclude=**/${file}`);
  const output = ["--reporter=json", `--outputFile=${report}`];
  const child = new Deno.Command(Deno.execPath(), {
    // Long limits: a test that is slow on a busy machine has noticed nothing.
    args: [
      "run",
      "-A",
      join(copy, "node_modules/vitest/vitest.mjs"),
      "run",
      "--bail=1",
      "--testTimeout=300000",
      "--hookTimeout=300000",
      "--maxWorkers=2",
      ...output,
      ...without,
      ...files,
    ],
    cwd: copy,
    env: { SVC_TEST_MUTANT: "1" },
    stdin: "null",
    stdout: "null",
    stderr: "null",
    detached: true,
  }).spawn();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    Deno.kill(-child.pid, "SIGKILL");
  }, LIMIT_MS);
  const { success } = await child.status;
  clearTimeout(timer);
  endAll(copy);
  if (late) return { verdict: "timeout", by: files.join(" ") };
  return success ? { verdict: "lives", by: "" } : { verdict: "killed", by: await findFirstFailure(report) };
}

// Tests that also fail in the copy without a mutant.
const unfit = new Set<string>();
// Messages of tests that may have failed only because of a busy machine.
const SLOW = /timed out|did not settle|longer than|There was no|less than|does not load|did not start/;

async function findFirstFailure(report: string): Promise<string> {
  const suites = await Deno.readTextFile(report).then((text) => JSON.parse(text).testResults, () => []) as {
    name: string;
    message: string;
    assertionResults: { status: string; title: string; failureMessages: string[] }[];
  }[];
  for (const { name, assertionResults } of suites) {
    const failed = assertionResults.find(({ status }) => status === "failed");
    const words = failed?.failureMessages[0]?.split("\n")[0] ?? "";
    if (failed !== undefined) return `${basename(name)} "${failed.title.slice(0, 60)}" ${words.slice(0, 90)}`;
  }
  const broken = suites.find(({ message }) => message !== "");
  return broken === undefined
    ? ""
    : `${basename(broken.name)} does not load ${broken.message.split("\n")[0]}`;
}

// Kills every process that still runs in this copy: a killed vitest leaves its workers and servers.
function endAll(copy: string): void {
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name) || Number(name) === Deno.pid) continue;
    try {
      const words = Deno.readTextFileSync(`/proc/${name}/cmdline`);
      const isOurs = words.includes(`${copy}/`) || Deno.readLinkSync(`/proc/${name}/cwd`) === copy;
      if (isOurs) Deno.kill(Number(name), "SIGKILL");
    } catch {
      // The process has ended already.
    }
  }
}

async function tryOut(copy: string, mutant: Mutant): Promise<Omit<Result, "mutant">> {
  const path = join(copy, mutant.file);
  const text = await Deno.readTextFile(path);
  const changed = text.slice(0, mutant.start) + mutant.after + text.slice(mutant.end);
  try {
    // Nearest tests first: most mutants fail there.
    const groups = findTests(mutant.file);
    for (const files of values.near ? groups.slice(0, 1) : groups) {
      while (true) {
        await Deno.writeTextFile(path, changed);
        const result = await runTests(copy, files);
        const [file = ""] = result.by.split(" ");
        if (result.verdict === "lives") break;
        // vitest could not start a worker in time.
        if (result.by === "") continue;
        if (!SLOW.test(result.by) || !file.endsWith(".test.ts")) return result;
        await Deno.writeTextFile(path, text);
        if ((await runTests(copy, [file])).verdict === "lives") return result;
        console.log(`unfit   ${file} also fails without a mutant, and is left out`);
        unfit.add(file);
      }
    }
    return { verdict: "lives", by: "" };
  } finally {
    await Deno.writeTextFile(path, text);
  }
}

function shorten(text: string): string {
  return JSON.stringify(text.replace(/\s+/g, " ").slice(0, 70));
}

function formatMutant({ file, line, before, after }: Mutant): string {
  return `${file}:${line} ${shorten(before)} -> ${shorten(after)}`;
}

async function runQueue(name: string, queue: Mutant[], results: Result[]): Promise<void> {
  const copy = await copyProject(name);
  for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
    const result = { mutant, ...await tryOut(copy, mutant) };
    results.push(result);
    console.log(`${result.verdict.padEnd(7)} ${formatMutant(mutant)}  ${result.by}`);
  }
  await Deno.remove(copy, { recursive: true });
}

function printScore(results: Result[]): void {
  const folders = new Map<string, { dead: number; all: number }>();
  for (const { mutant, verdict } of results) {
    const one = folders.get(dirname(mutant.file)) ?? { dead: 0, all: 0 };
    folders.set(dirname(mutant.file), { dead: one.dead + (verdict === "lives" ? 0 : 1), all: one.all + 1 });
  }
  for (const [folder, { dead, all }] of [...folders].sort()) {
    console.log(`${folder}: ${dead} of ${all} noticed (${Math.round(100 * dead / all)} %)`);
  }
}

const folders = positionals.length === 0
  ? ["src/store", "src/http", "src/files", "src/platform", "src/run"]
  : positionals;
const queue = folders.flatMap((folder) => {
  const files = listSourceFiles(folder).filter((file) => !file.includes("/migrations/"));
  const all = files.flatMap((file) => buildMutants(file, readText(file)));
  console.log(`${folder}: ${all.length} mutants in ${files.length} files`);
  const sample = chooseSample(all, Number(values.sample), Number(values.seed));
  if (values.only === "") return sample;
  const places = values.only.split(",");
  return sample.filter(({ file, line }) => places.includes(`${file}:${line}`));
});
if (values.list) {
  for (const mutant of queue) console.log(formatMutant(mutant));
  Deno.exit(0);
}
const results: Result[] = [];
const jobs = Array.from(
  { length: Number(values.jobs) },
  (_, index) => runQueue(String(index), queue, results),
);
await Promise.all(jobs);
printScore(results);
