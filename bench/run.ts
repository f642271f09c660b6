// `make bench` measures every figure with its baseline in the same run. `make bench ARGS='rest start'` runs some.
import { benchAgents } from "./agents.ts";
import { benchBackup } from "./backup.ts";
import { benchBox } from "./box.ts";
import { benchConsole } from "./console.ts";
import { benchGateway } from "./gateway.ts";
import { benchLaunch } from "./launch.ts";
import { benchLists } from "./lists.ts";
import { addVerdict, formatTable, type Row } from "./measure.ts";
import { benchReply } from "./reply.ts";
import { benchRest } from "./rest.ts";
import { benchRunners } from "./runners.ts";
import { benchScroll } from "./scroll.ts";
import { benchSearch } from "./search.ts";
import { benchSoak } from "./soak.ts";
import { benchStart } from "./start.ts";
import { benchTasks } from "./tasks.ts";
import { benchTurns } from "./turns.ts";
import { benchWarm } from "./warm.ts";

const BENCHES: Record<string, () => Promise<Row[]>> = {
  agents: benchAgents,
  backup: benchBackup,
  box: benchBox,
  console: benchConsole,
  gateway: benchGateway,
  launch: benchLaunch,
  lists: benchLists,
  reply: benchReply,
  rest: benchRest,
  runners: benchRunners,
  scroll: benchScroll,
  search: benchSearch,
  start: benchStart,
  tasks: benchTasks,
  turns: benchTurns,
  warm: benchWarm,
};

// Takes minutes (fewer with SVC_BENCH_SECONDS=60), so it runs only by name.
const LONG: Record<string, () => Promise<Row[]>> = { soak: benchSoak };

const wanted = Deno.args.length === 0 ? Object.keys(BENCHES) : Deno.args;
const rows: Row[] = [];
for (const name of wanted) {
  const bench = BENCHES[name] ?? LONG[name];
  if (bench === undefined) {
    console.error(`no bench is called ${name}; there are ${Object.keys({ ...BENCHES, ...LONG }).join(", ")}`);
    Deno.exit(2);
  }
  console.error(`measuring ${name} …`);
  rows.push(...(await bench()).map(addVerdict));
}
console.log(formatTable(rows));
const folder = new URL("./results/", import.meta.url).pathname;
await Deno.mkdir(folder, { recursive: true });
const file = `${folder}${new Date().toISOString().replace(/[:.]/g, "-")}.json`;
const machine = { cores: navigator.hardwareConcurrency, deno: Deno.version.deno, os: Deno.build.target };
await Deno.writeTextFile(
  file,
  JSON.stringify({ at: new Date().toISOString(), machine, rows }, null, 2) + "\n",
);
console.error(`written to ${file}`);
