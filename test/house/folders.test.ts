import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { findCycle } from "../harness/house/cycle.ts";
import { listSourceFiles, readText } from "../harness/house/tree.ts";

const FILES_MAX = 27;

/** The topics of each floor. Every floor uses the same words, see docs/explanation/architecture.md. */
const TOPICS: Record<string, readonly string[]> = {
  "src/store": ["db", "events", "work", "chat", "workers", "account", "migrations"],
  "src/api": ["call", "work", "chat", "workers", "account", "system"],
  "src/domain": ["call", "work", "chat", "workers", "account", "system"],
  "src/run": ["local", "remote"],
  "src/pipeline": ["stage", "intake", "dispatch", "delivery", "maintenance", "telemetry"],
  "src/engine": ["adapters", "process", "protocol"],
  "src/http": ["routes", "server", "stream", "gateway", "openai"],
  "cli": ["terminal", "client", "completion", "service", "commands"],
};

interface Edge {
  from: string;
  to: string;
}

/** Lists the static imports between files of the folders, types included. */
function listImports(...folders: string[]): Edge[] {
  return listSourceFiles(...folders).flatMap((from) =>
    [...readText(from).matchAll(/^(?:import|export)\b[^;]*?from "(\.[^"]+)";|^import "(\.[^"]+)";/gm)]
      .map(([, named, bare]) => ({ from, to: join(dirname(from), named ?? bare ?? "") }))
  );
}

/** Returns the topic of a file on a floor, or null for a file at the top of the floor. */
function findTopic(floor: string, file: string): string | null {
  const [topic = "", ...rest] = file.slice(floor.length + 1).split("/");
  return rest.length === 0 ? null : topic;
}

describe("folders (architecture, Folders)", () => {
  it(`hold at most ${FILES_MAX} files`, () => {
    const counts = new Map<string, number>();
    for (const file of listSourceFiles("src", "cli", "console", "test", "build", "bench")) {
      counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
    }
    expect([...counts].filter(([, files]) => files > FILES_MAX)).toEqual([]);
  });

  describe.each(Object.entries(TOPICS))("%s", (floor, topics) => {
    const files = listSourceFiles(floor);
    const edges = listImports(floor).filter(({ to }) => to.startsWith(`${floor}/`));

    it("have only topics that the architecture names", () => {
      const found = new Set(files.map((file) => findTopic(floor, file)).filter((topic) => topic !== null));
      expect([...found].filter((topic) => !topics.includes(topic))).toEqual([]);
    });

    it("have no two topics that import each other, directly or in a circle", () => {
      const between = new Map<string, string[]>();
      for (const { from, to } of edges) {
        const [source, target] = [findTopic(floor, from), findTopic(floor, to)];
        if (source === null || target === null || source === target) continue;
        between.set(source, [...between.get(source) ?? [], target]);
      }
      expect(findCycle(between)).toBeNull();
    });
  });

  it("have no circle of files, including types and the console", () => {
    const edges = new Map<string, string[]>();
    for (const { from, to } of listImports("src", "cli", "console")) {
      edges.set(from, [...edges.get(from) ?? [], to]);
    }
    expect(findCycle(edges)).toBeNull();
  });
});
