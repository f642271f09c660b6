// Changes the sources in small ways, one at a time, and says which changes no test notices. `make mutants` runs it.
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { ROOT, sourceFiles, textOf } from "../harness/tree.ts";
import { type Mutant, mutantsOf } from "./mutant.ts";
import { testsFor } from "./tests_for.ts";

type Verdict = "killed" | "timeout" | "lives";

interface Result {
  mutant: Mutant;
  verdict: Verdict;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    jobs: { type: "string", default: "2" },
    limit: { type: "string", default: "120" },
  },
});
const LIMIT_MS = Number(values.limit) * 1000;

/** The same choice for the same seed: mulberry32. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function chosen(all: Mutant[], count: number, seed: number): Mutant[] {
  const next = random(seed);
  const keyed = all.map((mutant) => ({ mutant, key: next() })).sort((a, b) => a.key - b.key);
  return keyed.slice(0, count).map(({ mutant }) => mutant);
}

/** A copy of the project whose sources may be changed. */
async function copyOf(name: string): Promise<string> {
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

async function tests(copy: string, files: string[]): Promise<Verdict> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "npm:vitest@5.1.0", "run", "--bail=1", "--reporter=dot", ...files],
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
  return late ? "timeout" : success ? "lives" : "killed";
}

// A test that was cut off leaves its servers behind: whatever still runs from this copy is ended.
function endAll(copy: string): void {
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name) || Number(name) === Deno.pid) continue;
    try {
      if (Deno.readTextFileSync(`/proc/${name}/cmdline`).includes(`${copy}/`)) {
        Deno.kill(Number(name), "SIGKILL");
      }
    } catch {
      // It is gone already.
    }
  }
}

async function tryOut(copy: string, mutant: Mutant): Promise<Verdict> {
  const path = join(copy, mutant.file);
  const text = await Deno.readTextFile(path);
  await Deno.writeTextFile(path, text.slice(0, mutant.start) + mutant.after + text.slice(mutant.end));
  try {
    // The nearest tests first: most mutants die there.
    for (const files of testsFor(mutant.file)) {
      const verdict = await tests(copy, files);
      if (verdict !== "lives") return verdict;
    }
    return "lives";
  } finally {
    await Deno.writeTextFile(path, text);
  }
}

function short(text: string): string {
  return JSON.stringify(text.replace(/\s+/g, " ").slice(0, 70));
}

async function work(name: string, queue: Mutant[], results: Result[]): Promise<void> {
  const copy = await copyOf(name);
  for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
    const verdict = await tryOut(copy, mutant);
    results.push({ mutant, verdict });
    const { file, line, before, after } = mutant;
    console.log(`${verdict.padEnd(7)} ${file}:${line} ${short(before)} -> ${short(after)}`);
  }
  await Deno.remove(copy, { recursive: true });
}

function score(results: Result[]): void {
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
  const files = sourceFiles(folder).filter((file) => !file.includes("/migrations/"));
  const all = files.flatMap((file) => mutantsOf(file, textOf(file)));
  console.log(`${folder}: ${all.length} mutants in ${files.length} files`);
  return chosen(all, Number(values.sample), Number(values.seed));
});
const results: Result[] = [];
const jobs = Array.from({ length: Number(values.jobs) }, (_, index) => work(String(index), queue, results));
await Promise.all(jobs);
score(results);
