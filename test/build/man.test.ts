import { describe, expect, it } from "vitest";
import { buildManPages } from "../../build/man.ts";
import { listCommands } from "../harness/model/walk.ts";

const pages = await buildManPages({ version: "9.9.9", commitTime: "2026-11-21T14:20:00.000Z" });

async function runGroff(page: string): Promise<{ out: string; err: string }> {
  const child = new Deno.Command("groff", {
    args: ["-man", "-ww", "-Tutf8", "-P-c", "-rLL=100n"],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(page));
  await writer.close();
  const { stdout, stderr } = await child.output();
  return { out: new TextDecoder().decode(stdout), err: new TextDecoder().decode(stderr) };
}

const hasGroff = await new Deno.Command("groff", { args: ["--version"] }).output().then(
  () => true,
  () => false,
);

describe("man pages (contract 6)", () => {
  it("name every command of svc and of ctl, with its flags", async () => {
    expect(Object.keys(pages)).toEqual(["svc.1", "svc-ctl.1"]);
    for (const name of ["serve", "restore", "service", "health", "version"]) {
      expect(pages["svc.1"]).toContain(`\n.SS svc ${name} `);
    }
    for (const name of await listCommands()) {
      expect(pages["svc-ctl.1"]).toContain(`\n.SS svc ctl ${name.replaceAll("-", "\\-")} `);
    }
    expect(pages["svc-ctl.1"]).toMatch(/^\.TH SVC-CTL 1 "2026-11-21" "svc 9\.9\.9"/);
  });

  it.skipIf(!hasGroff)("render in groff without a warning and with unchanged text", async () => {
    for (const page of Object.values(pages)) expect((await runGroff(page)).err).toBe("");
    const { out } = await runGroff(pages["svc-ctl.1"] ?? "");
    expect(out).toContain("svc ctl worker list --department research --no-recursive");
    expect(out).toContain("124");
  });
});
