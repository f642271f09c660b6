import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { createTempDir } from "../harness/service/process.ts";
import { readText } from "../harness/house/tree.ts";

const hasCurl = await new Deno.Command("curl", { args: ["--version"] }).output().then(
  () => true,
  () => false,
);

it.skipIf(!hasCurl)("the tutorial's walk through the REST API works unchanged", async () => {
  await using app = await openApp({ password: "read me" });
  await using folder = await createTempDir();
  const script = /```sh\n(# tested:[\s\S]*?)```/.exec(readText("docs/tutorials/rest-api.md"))?.[1] ?? "";
  const { stdout, stderr, code } = await new Deno.Command("bash", {
    args: ["-eu", "-c", script],
    cwd: folder.path,
    env: { SVC_URL: app.url, PASSWORD: "read me" },
  }).output();
  const out = new TextDecoder().decode(stdout);
  expect([code, new TextDecoder().decode(stderr)]).toEqual([0, ""]);
  expect(out).not.toMatch(/"code":/);
  expect(out).toContain('"content":"hello"');
  expect(out).toContain('"description":"Repeats everything"');
  expect(out).toMatch(/event: message\ndata: .*"content":"hello"/);
  expect(out).toMatch(/\[echo starts in /);
  expect(out.match(/"status":"deleted"/g)).toHaveLength(2);
});
