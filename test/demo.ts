// `make demo` starts a temporary service with an empty data directory, sends three messages, and prints the results.
// An installed and logged-in agent CLI gets one, too; SVC_DEMO_AGENT names it, or none.
import { join } from "node:path";
import { ADAPTERS, needsNoConfiguration } from "../src/engine/kinds.ts";
import { startServer, svc } from "./harness/service/process.ts";

const AGENTS = ADAPTERS.filter((adapter) => adapter.driver === "agent" && needsNoConfiguration(adapter))
  .map(({ kind }) => kind);

const folder = await Deno.makeTempDir({ prefix: "svc-demo-" });
const program = Deno.env.get("SVC_PROGRAM")?.split(" ");
const options = program === undefined ? {} : { program };

// A worker can be any program: instruction on stdin, answer on stdout. This one is a shell pipeline.
const counter = `tr -cs 'A-Za-z' '\\n' | tr A-Z a-z | sort | uniq -c | sort -rn | head -3`;
await Deno.writeTextFile(
  join(folder, "config.yaml"),
  `engines:
  words:
    kind: command
    command: /bin/sh
    args: ["-c", ${JSON.stringify(counter)}]
${AGENTS.map((kind) => `  ${kind}: {state: shared, permissions: read, timeout: 2m}`).join("\n")}
bee:
  quiet_window: 0ms
`,
);

async function ctl(...args: string[]): Promise<string> {
  console.log(`\n$ svc ctl ${args.map((arg) => /^[\w./:=@-]+$/.test(arg) ? arg : `'${arg}'`).join(" ")}`);
  const { code, out, err } = await svc(["ctl", ...args], { dataDir: folder, ...options });
  if (err !== "") console.log(err.trimEnd());
  // A pipe gets times in Unix ms, which are hard to read.
  const readable = out.replace(
    /\b1[6-9]\d{11}\b/g,
    (ms) => new Date(Number(ms)).toISOString().slice(0, 19).replace("T", " "),
  );
  console.log(readable.trimEnd());
  if (code !== 0) throw new Error(`svc ctl ${args[0]} ended with ${code}`);
  return out;
}

/** The first agent CLI that this machine has and that is logged in, or null. */
async function findAgent(): Promise<string | null> {
  const wanted = Deno.env.get("SVC_DEMO_AGENT");
  for (const kind of wanted === undefined ? AGENTS : AGENTS.filter((one) => one === wanted)) {
    const quiet = async (...args: string[]) =>
      await svc(["ctl", "worker", ...args], { dataDir: folder, ...options });
    const made = await quiet("create", "-n", kind, "--engine", kind, "-q");
    if (made.code !== 0) continue;
    const id = made.out.trim();
    const { usable } = JSON.parse((await quiet("status", id, "--json")).out);
    await quiet("delete", id);
    if (usable) return kind;
  }
  return null;
}

let failed = false;
const server = await startServer({ dataDir: folder, ...options });
try {
  console.log(`The service runs at ${server.url}, its data is in ${folder}`);
  await ctl("worker", "create", "-n", "Echo", "--description", "Returns each message as it came", "-q");
  await ctl(
    "worker",
    "create",
    "-n",
    "Counter",
    "--description",
    "Counts the words of a text",
    "--engine",
    "words",
    "-q",
  );
  await ctl("worker", "list");
  await ctl("chat", "@Echo good morning");
  await ctl("chat", "@Counter the quick brown fox and the lazy dog and the cat");
  await ctl("chat", "How many words has this text, and which of these words is the most frequent word?");
  const agent = await findAgent();
  if (agent === null) {
    console.log("\nNo agent CLI with a login was found here, so only built-in workers were asked.");
  } else {
    console.log(`\n${agent} is installed here and logged in, so a real agent is asked, too:`);
    await ctl("worker", "create", "-n", "Agent", "--engine", agent, "-q");
    await ctl(
      "chat",
      "@Agent Say hello and tell in one sentence which model you are. Use no tools.",
      "--timeout",
      "150",
    );
  }
  await ctl("execution", "list");
  const ids = (await ctl("execution", "list", "-q", "--page-size", "1")).trim();
  await ctl("execution", "logs", ids);
} catch (error) {
  failed = true;
  console.error(error instanceof Error ? error.message : error);
} finally {
  const { code } = await server.end("SIGTERM");
  if (code !== 0) failed = true;
  await Deno.remove(folder, { recursive: true });
}
console.log(
  failed ? "\nThe demo failed." : "\nThe service is stopped and its data removed. Next: make serve",
);
Deno.exit(failed ? 1 : 0);
