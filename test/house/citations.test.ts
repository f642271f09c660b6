import { describe, expect, it } from "vitest";
import {
  findRefused,
  findUnresolved,
  listCitingFiles,
  parseProse,
  readProse,
  readTargets,
} from "../harness/house/citations.ts";
import { listDocuments } from "../harness/house/tree.ts";

describe("citations (architecture, Style)", () => {
  const targets = readTargets();

  it("lead to a rule, a fact, a decision or a file that exists", () => {
    const prose = [...listCitingFiles(), ...listDocuments(), "README.md", "CHANGELOG.md"].map(readProse);
    expect(prose.flatMap((one) => findUnresolved(one, targets))).toEqual([]);
  });

  it("have one form, and name no document outside this repository", () => {
    expect(listCitingFiles().map(readProse).flatMap(findRefused)).toEqual([]);
  });

  it("are found across line breaks, with their line", () => {
    const text = "/** First.\n * Second (contract\n * 99.1). */\n// (interface 4.2,\n// task lost)\n";
    expect(findUnresolved(parseProse("a.ts", text), targets)).toEqual([
      { place: "a.ts:2", problem: expect.stringContaining("contract 99.1") },
      { place: "a.ts:4", problem: expect.stringContaining("interface 4.2, task lost") },
    ]);
  });

  it.each([
    "contract 4.99",
    "contract 3, Nobody",
    "interface 10",
    "reliability DUR-99",
    "reliability DUR-1, DUR-98",
    "facts, libSQL 99",
    "facts, Deno",
    "architecture, sentence 7",
    "decision 9999",
    "see `src/nowhere.ts`",
    "see docs/nowhere.md",
  ])("are reported if they lead nowhere: %s", (citation) => {
    expect(findUnresolved(parseProse("a.ts", `// why (${citation})\n`), targets)).toHaveLength(1);
  });

  it.each([
    "contract 4.5",
    "contract 3, Task",
    "interface 4.2, task list",
    "interface 7.2, contract 3, Task; decision 0018",
    "reliability DUR-9",
    "reliability SHD-1 to SHD-6",
    "facts, libSQL 8",
    "architecture, sentence 2",
    "decision 0021",
  ])("are accepted in each of their forms: %s", (citation) => {
    const prose = parseProse("a.ts", `// why (${citation})\n`);
    expect([...findUnresolved(prose, targets), ...findRefused(prose)]).toEqual([]);
  });

  it.each([
    "promises DUR-9",
    "house, sentence 2",
    "house 3",
    "style, SQL",
    "see the specification",
    "as ../shared/facts/deno.md says",
    "contract 4, point 5",
    "contract 2, 5",
    "contract 6 and 7",
    "interface 4.2 task list",
    'contract, "Words"',
    "facts engines 2",
    "facts, libSQL, finding 3",
  ])("are refused in any other form: %s", (citation) => {
    expect(findRefused(parseProse("a.ts", `// why (${citation})\n`)).length).toBeGreaterThan(0);
  });
});
