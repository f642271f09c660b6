import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { createTempDir } from "../harness/service/process.ts";
import { OpenAgents } from "./open_agents.ts";
import { checkTurns, type Note, readNotes } from "./open_checker.ts";
import { withChangedCopy } from "./checker.ts";

vi.setConfig({ testTimeout: 180_000 });

/** Creates a data directory after two turns in one process. */
async function createTurns(folder: string, dataDir: string): Promise<void> {
  const { env } = await OpenAgents.begin(folder);
  const open = {
    kind: "claude",
    command: env.SVC_ENGINES__OPEN__COMMAND,
    permissions: "full",
    warm: {},
    env: { FAKE_OPEN_LEDGER: env.SVC_ENGINES__OPEN__ENV__FAKE_OPEN_LEDGER },
  };
  await using app = await openApp({ dataDir, config: { engines: { default: "open", open } } });
  const worker = await app.call("POST /api/workers", { name: "Ada" });
  const { id } = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  for (const content of ["say hello 1", "say hello 2"]) {
    await app.call(`POST /api/local/sessions/${id}/messages`, { content });
    await app.settle();
  }
}

const ROWS: [rule: RegExp, change: string][] = [
  [/has a token of no run/, "update execution set id = 'x' where instruction = 'say hello 2'"],
  [/has the token of another conversation/, "update execution set session_key = 'local:x'"],
  [/has the token of "say no"/, "update execution set instruction = 'say no'"],
  [/has a bash of another run/, "update execution set task_id = 'x'"],
  [/has the context of another run/, "update execution set session_key = 'local:x'"],
  [/remembers what was said to others: say hello 1/, "update execution set instruction = 'say no'"],
  [/DSP-2: .* no agent has done it/, "update execution set id = 'x' where instruction = 'say hello 2'"],
  [
    /I9: .* has a token/,
    `update execution set result = 'eyJ${"a".repeat(20)}.${"b".repeat(30)}.${"c".repeat(30)}'`,
  ],
];

const NOTES: [rule: RegExp, change: (note: Note) => Note][] = [
  [/had a token that has expired/, (note) => ({ ...note, status: 401 })],
  [/could use the token before/, (note) => ({ ...note, statusBefore: 200 })],
  [/no turn could ask with its token/, (note) => ({ ...note, status: 0 })],
  [/the turn "say hello 1" had no token/, (note) => ({ ...note, word: "blind" })],
  [/has a bash with another run's token/, (note) => ({ ...note, bash: { ...note.bash, token: "x" } })],
  [/no process stayed open/, (note) => ({ ...note, process: crypto.randomUUID() })],
];

it("the checker of open agents finds nothing in a correct directory, and each kind of violation [CHD-15]", async () => {
  await using folder = await createTempDir();
  const dataDir = join(folder.path, "data");
  const ledger = join(folder.path, "turns.log");
  await Deno.mkdir(dataDir);
  await createTurns(folder.path, dataDir);
  expect(await checkTurns(dataDir, ledger)).toEqual([]);
  for (const [rule, sql] of ROWS) {
    await withChangedCopy(
      dataDir,
      [sql],
      async (copy) => expect(await checkTurns(copy, ledger)).toContainEqual(expect.stringMatching(rule)),
    );
  }
  const notes = await readNotes(ledger);
  for (const [rule, change] of NOTES) {
    const changed = notes.map((note) => JSON.stringify(note.word === "turn" ? change(note) : note));
    await Deno.writeTextFile(ledger, `${changed.join("\n")}\n`);
    expect(await checkTurns(dataDir, ledger)).toContainEqual(expect.stringMatching(rule));
  }
  const second = JSON.stringify({ word: "overlap", process: "x", words: "y" });
  await Deno.writeTextFile(ledger, `${notes.map((note) => JSON.stringify(note)).join("\n")}\n${second}\n`);
  expect(await checkTurns(dataDir, ledger)).toEqual(["CHD-15: two processes had the session y"]);
  const known = JSON.stringify({ word: "spare", process: "x", own: ["SVC_TOKEN"], words: "" });
  await Deno.writeTextFile(ledger, `${notes.map((note) => JSON.stringify(note)).join("\n")}\n${known}\n`);
  expect(await checkTurns(dataDir, ledger)).toEqual([
    "CHD-15: the spare process x has a token or SVC_TOKEN",
  ]);
  const twice = [...notes, ...notes].map((note) => JSON.stringify(note));
  await Deno.writeTextFile(ledger, `${twice.join("\n")}\n`);
  expect(await checkTurns(dataDir, ledger)).toContainEqual(
    expect.stringMatching(/DSP-1: .* was started 2 times/),
  );
});
