import { join } from "node:path";
import { expect, it } from "vitest";
import { readPlain, readPlainEnd, writePlain } from "../../src/base/plain_file.ts";
import { createTempDir } from "../harness/service/process.ts";

it("readPlain and writePlain handle regular files, and refuse pipes, devices and directories without waiting [CHD-6]", async () => {
  await using folder = await createTempDir();
  const at = (name: string) => join(folder.path, name);
  writePlain(at("a"), "hello", 0o600);
  writePlain(at("a"), "hällo", 0o600);
  expect(((await Deno.stat(at("a"))).mode ?? 0) & 0o777).toBe(0o600);
  expect([readPlain(at("a"), 6), readPlainEnd(at("a"), 3), readPlain(at("none"), 6)]).toEqual([
    "hällo",
    { text: "llo", isWhole: false },
    null,
  ]);
  expect(() => readPlain(at("a"), 5)).toThrow("more than 5 bytes");
  await new Deno.Command("mkfifo", { args: [at("pipe")] }).output();
  for (const path of [at("pipe"), "/dev/zero", folder.path]) {
    expect(() => readPlain(path, 100)).toThrow();
  }
  expect(() => writePlain(at("pipe"), "x", 0o600)).toThrow();
});
