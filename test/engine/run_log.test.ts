import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RunLog, type RunLogOptions } from "../../src/engine/process/run_log.ts";
import { createTempDir } from "../harness/service/process.ts";

const STAMP = "2026-01-05T08:00:00.000Z ";

async function logged(
  work: (log: RunLog) => void,
  options: Partial<RunLogOptions> = {},
): Promise<{ bytes: Uint8Array; text: string }> {
  await using folder = await createTempDir();
  const path = join(folder.path, "ab", "x.log");
  const now = () => Date.parse("2026-01-05T08:00:00Z");
  const log = RunLog.open({
    path,
    maxBytes: 1_000_000,
    stamped: true,
    now,
    onWrite: () => {},
    ...options,
  });
  work(log);
  await log.close();
  const bytes = await Deno.readFile(path);
  expect((await Deno.stat(path)).mode ?? 0 & 0o777).toBe(0o100600);
  return { bytes, text: new TextDecoder().decode(bytes) };
}

const bytes = (text: string) => new TextEncoder().encode(text);

describe("RunLog (contract 3, Execution)", () => {
  it("adds a time to each line, for every split of the bytes", async () => {
    const { text } = await logged((log) => {
      log.line("[starts]");
      log.write(bytes("one\ntw"));
      log.write(bytes("o\n\nthree"));
      log.line("[ends]");
    });
    expect(text).toBe(
      ["[starts]", "one", "two", "", "three", "[ends]"].map((line) => `${STAMP}${line}\n`).join(""),
    );
  });

  it("writeTogether() writes once, in order, also when the work throws", async () => {
    let writes = 0;
    const { text } = await logged((log) => {
      log.line("before");
      const failing = () =>
        log.writeTogether(() => {
          for (let i = 0; i < 3; i++) log.line(`line ${i}`);
          throw new Error("broken");
        });
      expect(failing).toThrow("broken");
      expect(writes).toBe(2);
      log.line("after");
    }, { onWrite: () => writes++, stamped: false });
    expect(text).toBe("before\nline 0\nline 1\nline 2\nafter\n");
  });

  it("keeps bytes unchanged: bad UTF-8, NUL, ANSI, long lines [CHD-7]", async () => {
    const odd = new Uint8Array([0xff, 0xfe, 0x00, 0x1b, 0x5b, 0x33, 0x31, 0x6d, 0x0a]);
    const { bytes: stored } = await logged((log) => log.write(odd));
    expect(stored.subarray(STAMP.length)).toEqual(odd);
    const { text } = await logged((log) => log.write(new Uint8Array(900_000).fill(120)));
    expect(text.length).toBe(STAMP.length + 900_000);
  });

  it("is cut at its limit with a line that reports the cut", async () => {
    const { text } = await logged((log) => {
      for (let i = 0; i < 100; i++) log.write(bytes("0123456789\n"));
    }, { maxBytes: 1_024 });
    expect(text.length).toBeLessThan(1_024 + 150);
    expect(text).toMatch(/\[log cut: it reached limits.max_log_bytes, 1024 bytes\]\n$/);
  });

  it("masks secrets, also when they are split between writes [SEC-3]", async () => {
    const secret = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl";
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 12 }),
        async (cuts) => {
          const whole = bytes(`token=${secret} eyJhbGci ${secret}${secret}\nrest eyJ`);
          const { text } = await logged((log) => {
            log.mask(secret);
            let at = 0;
            for (const cut of cuts) log.write(whole.subarray(at, at += cut));
            log.write(whole.subarray(at));
          });
          const stars = "*".repeat(secret.length);
          expect(text).toBe(`${STAMP}token=${stars} eyJhbGci ${stars}${stars}\n${STAMP}rest eyJ`);
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe("secrets at the border of two chunks", () => {
  it.each([1, 2, 3, 5, 7, 11])(
    "are masked in chunks of %i bytes, also when two start alike",
    async (size) => {
      await using folder = await createTempDir();
      const path = join(folder.path, "log");
      const file = RunLog.open({ path, maxBytes: 1_000_000, stamped: false, now: () => 0, onWrite() {} });
      const secrets = [
        "abcdefgh",
        "abcdefghijkl",
        "line-one-1\nline-two-2",
        "line-one-1",
        "line-two-2",
        "hijklmnop",
      ];
      for (const secret of secrets) file.mask(secret);
      const text = `1 abcdefghijkl 2 abcdefgh 3 line-one-1\nline-two-2 4 abcdefghijklmnop 5 abcdefg\n`;
      const bytes = new TextEncoder().encode(text);
      for (let at = 0; at < bytes.length; at += size) file.write(bytes.subarray(at, at + size));
      await file.close();
      const written = await Deno.readTextFile(path);
      for (const part of ["abcdefgh", "ijkl", "line-one", "line-two"]) expect(written).not.toContain(part);
      expect(written).toContain(" 5 abcdefg\n");
      expect(written).toMatch(/^1 \*{12} 2 \*{8} 3 \*+/);
    },
  );
});
