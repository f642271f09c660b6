import { join } from "node:path";
import { expect, it } from "vitest";
import { saveToken } from "../../cli/client/token_file.ts";
import { createTempDir } from "../harness/service/process.ts";

it("saveToken() reserves space before the token exists and leaves only the token in the file", async () => {
  await using folder = await createTempDir();
  const path = join(folder.path, "token");
  let room = 0;
  const made = await saveToken({ cwd: folder.path }, "token", async () => {
    room = (await Deno.stat(path)).size;
    return { json: "", value: { token: "eyJ.a.b", name: "r1" } };
  });
  expect(room).toBeGreaterThan(1_000);
  expect(made.value).toEqual({ name: "r1" });
  expect(await Deno.readTextFile(path)).toBe("eyJ.a.b\n");
});
