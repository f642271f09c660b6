import { expect, it } from "vitest";

it("the scripted model speaks the four formats of models and MCP, and follows its markers", async () => {
  const program = new URL("stub_model/selftest.mjs", import.meta.url).pathname;
  const { code, stdout } = await new Deno.Command(Deno.execPath(), { args: ["run", "-A", program] }).output();
  const lines = new TextDecoder().decode(stdout).trim().split("\n");
  expect(lines.filter((line) => !line.startsWith("ok"))).toEqual(["all good"]);
  expect(code).toBe(0);
});
