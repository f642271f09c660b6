import { describe, expect, it, vi } from "vitest";
import { configSchema } from "../../src/config/schema.ts";
import { parseYaml } from "../../src/config/yaml.ts";
import { GROUPS, loadGroup } from "../../cli/commands/groups.ts";
import { TOP_COMMANDS } from "../../cli/commands/top_commands.ts";
import {
  type Example,
  listHelpExamples,
  listWrittenPages,
  readBlocks,
  readShownCommands,
} from "../harness/house/examples.ts";
import { ExampleWorld } from "../harness/service/example_world.ts";
import { readText } from "../harness/house/tree.ts";

vi.setConfig({ testTimeout: 300_000 });

/** Examples that cannot run here, with the reason. */
const CANNOT: [command: RegExp, reason: string][] = [
  [/^(cd \/var\/lib\/svc && )?sudo |^docker |&& docker /, "changes the machine: systemd, users, containers"],
  [/^svc service status --system$/, "asks systemd"],
  [/^sqld /, "the database server, an executable of its own: test/harness/fakes/sqld.ts starts it"],
  [/^curl .*http:\/\/10\.0\.0\.3:/, "asks a database server on another machine"],
  [/^make /, "targets for developers; CI runs them"],
  [/^export PATH="\$PWD\/data\/bin:/, "svc is on the PATH here"],
  // The example world has no platforms. Other tests run these commands.
  [/^svc ctl platform (?!list)/, "needs somebody on a platform: test/harness/model/walk.ts"],
  [/^svc ctl message resend\b/, "needs a reply that was not delivered: test/platform/resend.test.ts"],
  [/^svc ctl engine lift\b/, "needs a provider's limit: test/harness/model/walk.ts"],
  [
    /^svc ctl webhook (create|test|update ci --enable)/,
    "would send to another machine: test/harness/model/walk.ts",
  ],
  [/^svc ctl device (?!list)/, "needs a browser that subscribed: test/harness/model/walk.ts"],
  [/^svc ctl secret (?!list)/, "needs a typed value: test/journey/commands.test.ts"],
  [
    /^svc ctl worker update .*--fallback/,
    "needs an engine with a fallback: test/http/workers/fallback.test.ts",
  ],
  [/^svc ctl launcher resume/, "needs a launcher: test/launcher/launches.test.ts"],
  [/^svc ctl execution steer/, "needs a run in progress: test/steer/steer.test.ts"],
  [/^svc ctl (execution (diff|push|discard)|worker trees)/, "needs a repository: test/harness/model/walk.ts"],
  [/^svc ctl skill (?!list)/, "needs a repository of skills: test/cli/skill.test.ts"],
  [/^svc ctl mcp (add|remove)/, "needs an engine with MCP: test/http/workers/mcp.test.ts"],
  [/^svc ctl import /, "needs the directory of another program: test/cli/import.test.ts"],
  [/^svc ctl chat '@Shouty/, "needs the engine of its page: test/journey/readme.test.ts"],
  [/^svc ctl chat$/, "stays until Ctrl-D: test/cli/chat.test.ts"],
];

/** Commands that run until they are interrupted, with their exit code. */
const ENDLESS: [command: RegExp, code: number][] = [[/^svc ctl events -f/, 130], [/^curl -N /, 28]];

const hasJq = await has("jq");
const hasCurl = await has("curl");

async function runAll(examples: Example[]): Promise<void> {
  await using world = await ExampleWorld.open();
  for (const { from, line } of examples) {
    if (CANNOT.some(([pattern]) => pattern.test(line))) continue;
    if (!hasJq && /\| jq /.test(line) || !hasCurl && line.startsWith("curl ")) continue;
    const wanted = ENDLESS.find(([pattern]) => pattern.test(line))?.[1] ?? 0;
    const { code, out, err } = await world.run(line.replace(/^curl -N /, "curl -N --max-time 1 "));
    expect([from, line, code], err + out).toEqual([from, line, wanted]);
  }
}

describe("every example", () => {
  it("of the help of svc ctl works unchanged", async () => {
    const examples = await listHelpExamples();
    expect([...new Set(examples.map(({ from }) => from.split(" ")[0]))]).toEqual(Object.keys(GROUPS));
    await runAll(examples);
  });

  it("of the README and the documentation works unchanged", async () => {
    const examples = listWrittenPages().flatMap((page) => readShownCommands(page));
    expect(examples.length).toBeGreaterThan(20);
    await runAll(examples);
  });

  it("that cannot run still exists, and the list of exceptions has no other entry", async () => {
    const all = [
      ...await listHelpExamples(),
      ...listWrittenPages().flatMap((page) => readShownCommands(page)),
    ];
    const unused = CANNOT.filter(([pattern]) => !all.some(({ line }) => pattern.test(line)));
    expect(unused).toEqual([]);
  });

  it("of a configuration is valid", () => {
    const blocks = listWrittenPages().flatMap((page) =>
      readBlocks(page, "yaml").map((text) => ({ page, text }))
    );
    expect(blocks.length).toBeGreaterThan(4);
    for (const { page, text } of blocks) {
      // An indented block is an entry of `platforms`.
      const under = text.startsWith("  ") ? "platforms:\n" : "";
      const checked = configSchema.safeParse(
        parseYaml(
          under +
            text.replace(/whsec_[^\s"']*/g, SECRET).replace(/(token|secret|password)_file: \S+/g, "$1: 1:x"),
        )
          .document.toJS(),
      );
      expect([page, checked.error?.issues ?? []]).toEqual([page, []]);
    }
  });

  it("in a sentence exists: its group, its command and its flags", async () => {
    for (const page of listWrittenPages()) {
      const named = [...readText(page).matchAll(/`(svc [^`]+)`/g)].map(([, text = ""]) => text);
      for (const text of named) expect([page, text, await findProblem(text)]).toEqual([page, text, ""]);
    }
  });
});

/** Returns the first part of a command in a sentence that does not exist, or "". */
async function findProblem(text: string): Promise<string> {
  const [, first = "", group = "", name = ""] = text.split(/\s+/);
  if (first !== "ctl") return /^[a-z]+$/.test(first) && !Object.hasOwn(TOP_COMMANDS, first) ? first : "";
  if (!/^[a-z]+$/.test(group) || group === "help") return "";
  if (!Object.hasOwn(GROUPS, group)) return group;
  const specs = await loadGroup(group);
  const spec = Array.isArray(specs) ? specs.find((one) => one.name === name) : specs;
  if (spec === undefined) return /^[a-z-]+$/.test(name) ? name : "";
  const known = Object.values(spec.options).map(({ flags }) => flags).join(" ");
  return [...text.replace(/'[^']*'/g, "").matchAll(/--[a-z-]+/g)].map(([flag]) => flag)
    .filter((flag) => !known.includes(flag) && !SHARED.includes(flag)).join(" ");
}

// Replaces a secret that the example omits.
const SECRET = `whsec_${btoa("x".repeat(32))}`;

const SHARED = ["--config", "--ca", "--reconnect", "--json", "--quiet", "--help", "--version"];

function has(program: string): Promise<boolean> {
  return new Deno.Command(program, { args: ["--version"] }).output().then(() => true, () => false);
}
