import { join } from "node:path";
import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { createTempDir, SVC } from "../harness/service/process.ts";
import { readText } from "../harness/house/tree.ts";

const missing: string[] = [];
for (const program of ["git", "curl", "openssl"]) {
  const found = await new Deno.Command(program, { args: ["version"], stdout: "null", stderr: "null" })
    .output()
    .then(() => true, () => false);
  if (!found) missing.push(program);
}

// An agent that does what the issue asks for.
const AGENT = {
  ...{ kind: "command", command: "sh" },
  args: ["-c", "cat > /dev/null; echo 'Good morning' > greeting.txt; echo 'I added greeting.txt.'"],
};

it.skipIf(missing.length > 0)(
  `the tutorial from an issue to a merged change works unchanged (needs git, curl and openssl)`,
  async () => {
    const tutorial = readText("docs/tutorials/from-an-issue-to-a-merged-change.md");
    const yaml = /```yaml\n([\s\S]*?)```/.exec(tutorial)?.[1] ?? "";
    expect(yaml).toContain("preset: github");
    await using app = await openApp({
      config: {
        engines: { default: "agent", agent: AGENT },
        platforms: {
          code: {
            ...{ kind: "webhook", preset: "github", worker: "Ada" },
            ...{ secret: "a secret of the webhook", allow: [4711] },
          },
        },
      },
    });
    await using folder = await createTempDir();
    const bin = join(folder.path, "bin");
    await Deno.mkdir(bin);
    await Deno.writeTextFile(join(bin, "svc"), `#!/bin/sh\nexec ${SVC.join(" ")} "$@"\n`, { mode: 0o755 });
    const place = join(folder.path, "place");
    await Deno.mkdir(place);
    const steps = [...tutorial.matchAll(/```sh\n(# tested: step[\s\S]*?)```/g)].map(([, step]) => step);
    const { stdout, stderr, code } = await new Deno.Command("bash", {
      args: ["-eu", "-c", steps.join("\n")],
      cwd: place,
      env: {
        PATH: `${bin}:${Deno.env.get("PATH")}`,
        SVC_URL: app.url,
        SVC_TOKEN: await app.token(),
        HOME: folder.path,
      },
    }).output();
    const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)) as [string, string];
    expect(code, `${out}\n${err}`).toBe(0);
    expect(out).toContain("+Good morning");
    expect(await Deno.readTextFile(join(place, "mine/greeting.txt"))).toBe("Good morning\n");
    const log = await new Deno.Command("git", {
      args: ["--git-dir", join(place, "forge/hello.git"), "log", "--format=%an %cn %s", "main"],
    }).output();
    expect(new TextDecoder().decode(log.stdout)).toMatch(/^Ada svc /);
    const messages = await app.call("GET /api/messages/inbound");
    expect(messages[0].session_key).toBe("code:me/hello#1");
  },
);
