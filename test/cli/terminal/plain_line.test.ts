import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AnyCommand, SHARED_OPTIONS } from "../../../cli/commands/command.ts";
import { GROUPS, loadGroup } from "../../../cli/commands/groups.ts";
import type { Io } from "../../../cli/terminal/io.ts";
import { parseLine } from "../../../cli/commands/parser.ts";
import { splitWords } from "../../harness/terminal.ts";
import { type ParsedLine, parsePlainLine } from "../../../cli/commands/plain_line.ts";

const io = { out: () => {}, err: () => {}, width: 100, env: {} } as unknown as Io;

/** Returns what a command gets of a line. The parser sets a flag like --no-color to true by default. */
function readMeaning(line: ParsedLine | null): unknown {
  if (line === null) return "help";
  const off = Object.values(line.spec.options).map(({ flags }) => flags).filter((flag) =>
    flag.startsWith("--no-")
  );
  const given = Object.entries(line.given).filter(([name, value]) =>
    value !== true || !off.includes(`--no-${name}`)
  );
  return { command: line.spec, args: line.args, given: Object.fromEntries(given) };
}

const parsed = (words: string[]) => parseLine(words, io, true).then(readMeaning, String);

const specs: { group: string; spec: AnyCommand; words: string[] }[] = [];
for (const group of Object.keys(GROUPS)) {
  const found = await loadGroup(group);
  if (!Array.isArray(found)) specs.push({ group, spec: found, words: [group] });
  else for (const spec of found) specs.push({ group, spec, words: [group, spec.name] });
}

/**
 * Generates nearly valid lines: known and unknown flags, values that look like flags, too many and too few
 * words.
 */
const lines = fc.constantFrom(...specs).chain(({ spec, words }) => {
  const flags = Object.values({ ...spec.options, ...SHARED_OPTIONS }).flatMap(({ flags }) =>
    flags.split(/[ ,]+/).filter((part) => part.startsWith("-"))
  );
  const value = fc.constantFrom("", "a b", ..."x 1 - -x --json help worker list ü a=b".split(" "));
  const piece = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...flags) },
    { weight: 4, arbitrary: value },
    {
      weight: 2,
      arbitrary: fc.tuple(fc.constantFrom(...flags), value).map(([flag, text]) => `${flag}=${text}`),
    },
    { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...flags), value).map(([flag, text]) => flag + text) },
    { weight: 1, arbitrary: fc.constantFrom("--", "-h", "--help", "-1", "-qq", "--unknown") },
  );
  const args = (spec.args ?? []).map(() => "x");
  return fc.tuple(fc.array(piece, { maxLength: 6 }), fc.boolean()).map(([pieces, whole]) =>
    whole ? [...words, ...args, ...pieces] : [...words, ...pieces]
  );
});

describe("parsePlainLine() (contract 6)", () => {
  it("parses like commander, or leaves the line to commander", async () => {
    let plain = 0;
    await fc.assert(
      fc.asyncProperty(lines, async (words) => {
        const line = await parsePlainLine(words);
        if (line === null) return;
        plain++;
        expect(readMeaning(line)).toEqual(await parsed(words));
      }),
      { numRuns: 600 },
    );
    expect(plain).toBeGreaterThan(60);
  });

  it("keeps every value of a repeated flag, and --no- flags", async () => {
    const lines = [
      "worker list --department a --department b,c --no-recursive -q",
      "worker create -n x --engine-args a=1 --engine-args=b=2 --scopes r --scopes=",
      "inbox --since -7d --json",
    ];
    for (const words of lines.map(splitWords)) {
      const line = await parsePlainLine(words);
      expect([words, line === null ? null : readMeaning(line)]).toEqual([words, await parsed(words)]);
    }
  });

  it("parses every example of the help without shell syntax and without --", async () => {
    for (const { spec } of specs) {
      for (const example of spec.examples) {
        if (/[|<>$]| -- /.test(example)) continue;
        const words = splitWords(example);
        const line = await parsePlainLine(words);
        expect([example, line === null ? null : readMeaning(line)]).toEqual([example, await parsed(words)]);
      }
    }
  });

  it("leaves help, mistakes and flags before the group to commander", async () => {
    const left = [
      ...["", "help", "worker", "worker help", "worker list --help", "worker lst", "worker list x"],
      ...["worker get", "worker list --unknown", "worker list --json=yes", "worker list --name"],
      ...["worker list --name a --name b", "--json worker list", "run Ada -- -x"],
    ];
    for (const line of left) expect([line, await parsePlainLine(splitWords(line))]).toEqual([line, null]);
  });
});
