import { configure, type LogRecord } from "@logtape/logtape";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runNoticeProgram } from "../../src/run/local/notice_program.ts";
import { createTempDir } from "../harness/service/process.ts";

/** Runs a shell script as a notice program. Returns the log lines by level and text. */
async function told(script: string, body = "{}"): Promise<string[]> {
  const records: LogRecord[] = [];
  await configure({
    reset: true,
    sinks: { kept: (record) => records.push(record) },
    loggers: [{ category: ["svc", "notices"], sinks: ["kept"] }, {
      category: ["logtape", "meta"],
      sinks: [],
    }],
  });
  await runNoticeProgram(["sh", "-c", script], body, 0o077, new AbortController().signal);
  return records.map(({ level, message }) => `${level}: ${message.join("")}`);
}

it("a notice program gets the body on its standard input, and its failures go to the log (contract 11)", async () => {
  await using folder = await createTempDir();
  const got = join(folder.path, "got");
  expect(await told(`cat > ${got}`, "a body")).toEqual([]);
  expect(await Deno.readTextFile(got)).toBe("a body");
  expect(await told("echo no room; exit 3")).toEqual([
    expect.stringMatching(/^warning: The program "?sh"? of a notice failed: "?exit code 3"?; "?no room/),
  ]);
  expect(await told("kill -9 $$")).toEqual([expect.stringContaining("failed")]);
  await runNoticeProgram(["/nowhere/program"], "{}", 0o077, new AbortController().signal);
});
