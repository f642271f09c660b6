import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { ctl } from "../harness/terminal.ts";

// Control characters of terminals, as one character and as two, and a character that reverses text.
const EVIL = "\u009b31mred\u202e\u001b[2J";
// deno-lint-ignore no-control-regex
const DRIVES = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;

it("export, diff and apply escape texts of agents on a terminal (contract 8.1, contract 16)", async () => {
  await using app = await openApp({ inMemory: true });
  const fleet = { memory: { tone: EVIL, "key\u202e": "1" } };
  await app.call("POST /api/fleet/apply", { fleet });
  const plain = { stdin: JSON.stringify({ memory: { tone: "formal" } }) };
  const calls: [args: string[], options: Parameters<typeof ctl>[2]][] = [
    [["export"], {}],
    [["diff", "-f", "-"], plain],
    [["apply", "-f", "-", "--prune", "--dry-run"], plain],
  ];
  for (const [args, options] of calls) {
    const piped = await ctl(app, args, options);
    const shown = await ctl(app, args, { ...options, terminal: true });
    expect([args[0], shown.out + shown.err]).toEqual([args[0], expect.not.stringMatching(DRIVES)]);
    expect([args[0], shown.out]).toEqual([args[0], expect.stringContaining("key\\u{202E}")]);
    expect([args[0], piped.out]).toEqual([args[0], expect.stringContaining("key\u202e")]);
  }
  const file = `${app.dataDir}/fleet.json`;
  await Deno.writeTextFile(file, plain.stdin);
  const asked = await ctl(app, ["apply", "-f", file, "--prune"], { stdin: "n\n", terminal: true });
  expect(asked.err).toContain("This deletes memory key\\u{202E}");
  expect([asked.code, asked.err]).toEqual([7, expect.not.stringMatching(DRIVES)]);
});
