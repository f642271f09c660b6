import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { BoxEtc } from "../../src/engine/process/box_etc.ts";
import { findBoxFault } from "../../src/engine/process/box_fault.ts";
import { BOX_SETTINGS } from "../harness/box.ts";
import { buildShellEngine } from "../harness/fakes/agents.ts";
import { openApp } from "../harness/service/app.ts";
import { createTempDir } from "../harness/service/process.ts";

vi.setConfig({ testTimeout: 120_000 });

const fault = await findBoxFault(BOX_SETTINGS);
const why = fault === null ? "" : ` (skipped: ${fault})`;

/** Runs a script in a box of the machine's network. Returns its lines. */
async function runBoxed(script: string, more: { read?: string[] } = {}): Promise<string[]> {
  const isolation = { box: { ...BOX_SETTINGS.box, ...more } };
  await using app = await openApp({
    config: { isolation, engines: { default: "sh", sh: { ...buildShellEngine(script), shell: [] } } },
  });
  const box = { network: "host", ...more };
  const worker = await app.call("POST /api/workers", { name: "Ada", isolation: { box } });
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "x" });
  await app.settle();
  const [{ result, error }] = await app.call("GET /api/executions");
  expect(error).toBe("");
  return result.trim().split("\n");
}

describe(`the system's files in a box${why} [BOX-1]`, () => {
  it.skipIf(fault !== null)("are those that programs need, read-only, and no others", async () => {
    const lines = await runBoxed(
      "cmp /etc/passwd - < /etc/passwd && id -un; getent hosts localhost | wc -l; ls /etc/shadow /etc/svc /etc/sudoers 2>/dev/null; " +
        "date +%Z; ls -A /etc/ssl/certs | wc -l; touch /etc/x /etc/hosts 2>/dev/null && echo bad; ls -A /etc/alternatives | wc -l",
    );
    const count = (path: string) => String([...Deno.readDirSync(path)].length);
    const zone = new TextDecoder().decode(new Deno.Command("date", { args: ["+%Z"] }).outputSync().stdout)
      .trim();
    expect(lines).toEqual([
      ...[BOX_SETTINGS.box.user || lines[0], "1", zone],
      ...["/etc/ssl/certs", "/etc/alternatives"].map(count),
    ]);
  });

  it.skipIf(fault !== null)("stay when the worker may read another file there", async () => {
    const path = "/etc/adduser.conf";
    const [first, ...rest] = await runBoxed(
      `head -c 1 ${path}; echo; cat /etc/hosts; ls /etc/shadow 2>/dev/null; true`,
      {
        read: [path],
      },
    );
    expect(first).toBe(Deno.readTextFileSync(path).slice(0, 1));
    expect(rest.join("\n")).toBe(Deno.readTextFileSync("/etc/hosts").trim());
  });

  it.skipIf(fault !== null)("have read-only settings of the kernel", async () => {
    const settings = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];
    const lines = await runBoxed(`awk '{ print $5, $6 }' /proc/self/mountinfo`);
    for (const path of settings.filter(exists)) {
      expect([path, lines.findLast((line) => line.startsWith(`${path} `))]).toEqual([
        path,
        expect.stringMatching(/ ro,/),
      ]);
    }
  });
});

describe("the /etc of boxes", () => {
  it("follows the machine while boxes run, and has what all users may read", async () => {
    await using folder = await createTempDir();
    const [machine, box] = ["machine", "box"].map((name) => join(folder.path, name)) as [string, string];
    const [hosts, certs] = ["hosts", "ssl/certs"].map((name) => join(machine, name)) as [string, string];
    await Deno.mkdir(certs, { recursive: true });
    await Deno.mkdir(box);
    await Deno.writeTextFile(join(box, "left"), "from before");
    await Deno.writeTextFile(hosts, "one");
    await Deno.writeTextFile(join(machine, "shadow"), "hash");
    await Deno.symlink("/usr/bin/env", join(machine, "localtime"));
    await Deno.symlink("hosts", join(machine, "resolv.conf"));
    const etc = new BoxEtc(box, machine);
    etc.refresh();
    const list = () => [...Deno.readDirSync(box)].map(({ name }) => name).sort();
    expect(list()).toEqual(["hosts", "localtime", "resolv.conf", "ssl"]);
    expect([Deno.readLinkSync(join(box, "localtime")), Deno.readTextFileSync(join(box, "resolv.conf"))])
      .toEqual([Deno.realPathSync("/usr/bin/env"), "one"]);
    for (const path of [box, join(box, "ssl"), join(box, "ssl/certs")]) {
      expect((Deno.statSync(path).mode ?? 0) & 0o777, path).toBe(0o755);
    }
    const shown = await Deno.stat(box);
    await Deno.writeTextFile(hosts, "another");
    await Deno.remove(join(machine, "localtime"));
    etc.refresh();
    expect(Deno.readTextFileSync(join(box, "hosts"))).toBe("another");
    expect(list()).toEqual(["hosts", "resolv.conf", "ssl"]);
    expect((await Deno.stat(box)).ino).toBe(shown.ino);
  });
});

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}
