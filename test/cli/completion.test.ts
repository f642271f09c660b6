import { describe, expect, it } from "vitest";
import { openApp } from "../harness/app.ts";
import { svc, tempDir } from "../harness/process.ts";
import { Shell } from "../harness/shell.ts";

async function candidates(words: string[], dataDir: string): Promise<string[]> {
  const { code, out, err } = await svc(["complete", "--", ...words], { dataDir });
  expect([code, err]).toEqual([0, ""]);
  return out.split("\n").filter((line) => line !== "" && !line.startsWith(":")).map((line) =>
    line.split("\t")[0] ?? ""
  );
}

describe("svc completion (contract 6)", () => {
  it("offers commands, groups, flags and the values of flags", async () => {
    await using dir = await tempDir();
    const ask = (...words: string[]) => candidates(words, dir.path);
    expect(await ask("")).toEqual(expect.arrayContaining(["serve", "ctl", "version", "completion", "help"]));
    expect(await ask("ctl", "")).toEqual(
      expect.arrayContaining(["worker", "task", "memory", "message", "events"]),
    );
    expect(await ask("ctl", "task", "c")).toEqual(["create", "cancel"]);
    expect(await ask("ctl", "task", "list", "--s")).toEqual(["--session-key", "--status"]);
    expect(await ask("ctl", "task", "create", "--type", "")).toEqual(["immediate", "countdown", "scheduled"]);
    expect(await ask("ctl", "chat", "--wor")).toEqual(["--worker"]);
    expect(await ask("completion", "z")).toEqual(["zsh"]);
    // Names that every object of JavaScript has are no groups.
    expect(await ask("ctl", "constructor", "")).toEqual([]);
  });

  it("offers ids and names from the server, and nothing without one", async () => {
    await using app = await openApp();
    const { id } = await app.call("POST /api/workers", { name: "Ada" });
    await app.call("POST /api/departments", { name: "Labs" });
    expect(await candidates(["ctl", "worker", "get", ""], app.dataDir)).toEqual([id]);
    expect(await candidates(["ctl", "department", "get", "L"], app.dataDir)).toEqual(["Labs"]);
    await using dir = await tempDir();
    expect(await candidates(["ctl", "worker", "get", ""], dir.path)).toEqual([]);
  });

  it("names the shells when it is asked for another", async () => {
    await using dir = await tempDir();
    const { code, out, err } = await svc(["completion", "tcsh"], { dataDir: dir.path });
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain("one of bash, zsh, fish");
  });
});

const SHELLS: { shell: string; command: string; setup: string }[] = [
  {
    shell: "bash",
    command: "bash --norc -i",
    setup: ". /usr/share/bash-completion/bash_completion; source <(svc completion bash)",
  },
  {
    shell: "zsh",
    command: "zsh -f -i",
    setup: "autoload -Uz compinit; compinit -u -D; source <(svc completion zsh)",
  },
  { shell: "fish", command: "fish --no-config -i", setup: "svc completion fish | source" },
];

for (const { shell, command, setup } of SHELLS) {
  const there = await Shell.has(shell) &&
    (shell !== "bash" ||
      await Deno.stat("/usr/share/bash-completion/bash_completion").then(() => true, () => false));
  describe.skipIf(!there)(`completion in a real ${shell}`, () => {
    it("completes groups, commands, flags and values at TAB", async () => {
      await using dir = await tempDir();
      await using terminal = await Shell.start(command, dir.path, { SVC_DATA_DIR: dir.path });
      await terminal.type(`${setup}; echo rea''dy\n`);
      await terminal.until(/^ready|[^']ready/m);
      await terminal.type("svc ctl wor\t");
      await terminal.until(/worker /);
      await terminal.type("lis\t");
      await terminal.until(/list /);
      await terminal.type("--no-rec\t");
      await terminal.until(/--no-recursive/);
      await terminal.type("\u0015svc ctl task create --type cou\t");
      await terminal.until(/countdown/);
      await terminal.type("\u0015svc ctl dep\tg\t");
      await terminal.until(/department[ \b]*get/);
      await terminal.type("\u0015exit\n");
    }, 60_000);
  });
}
