import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { formatReplies, parseBashLine } from "../../cli/completion/bash_line.ts";
import { openApp } from "../harness/service/app.ts";
import { createTempDir, svc } from "../harness/service/process.ts";
import { Shell } from "../harness/shell.ts";
import { createSchedule } from "../harness/model/workload.ts";

vi.setConfig({ testTimeout: 270_000 });

async function listCandidates(words: string[], dataDir: string): Promise<string[]> {
  const { code, out, err } = await svc(["complete", "words", "--", ...words], { dataDir });
  expect([code, err]).toEqual([0, ""]);
  return out.split("\n").filter((line) => line !== "").map((line) => line.split("\t")[0] ?? "");
}

describe("svc completion (contract 6)", () => {
  it("offers commands, groups, flags and the values of flags", async () => {
    await using dir = await createTempDir();
    const ask = (...words: string[]) => listCandidates(words, dir.path);
    expect(await ask("")).toEqual(expect.arrayContaining(["serve", "ctl", "version", "completion", "help"]));
    expect(await ask("ctl", "")).toEqual(
      expect.arrayContaining(["worker", "task", "memory", "message", "events"]),
    );
    expect(await ask("ctl", "task", "c")).toEqual(["create", "cancel"]);
    expect(await ask("ctl", "task", "list", "--s")).toEqual(["--session-key", "--status"]);
    expect(await ask("ctl", "task", "create", "--type", "")).toEqual(["immediate", "countdown", "scheduled"]);
    expect(await ask("ctl", "task", "create", "--type=c")).toEqual(["--type=countdown"]);
    expect(await ask("ctl", "task", "list", "--status", "failed,c")).toEqual([
      "failed,completed",
      "failed,cancelled",
    ]);
    expect(await ask("ctl", "-c", "x.yaml", "worker", "del")).toEqual(["delete"]);
    expect(await ask("ctl", "chat", "--wor")).toEqual(["--worker"]);
    expect(await ask("ctl", "help", "task", "w")).toEqual(["wait"]);
    expect(await ask("service", "install", "--us")).toEqual(["--user"]);
    expect(await ask("completion", "z")).toEqual(["zsh"]);
    // Flags that are already set are offered again only if they may be repeated.
    expect(await ask("ctl", "worker", "create", "--name", "x", "--n")).toEqual([]);
    // Names that every JavaScript object has are not groups.
    expect(await ask("ctl", "constructor", "")).toEqual([]);
  });

  it("offers names and ids from the server, and nothing without one", async () => {
    await using app = await openApp();
    const { id } = await app.call("POST /api/workers", { name: "Ada" });
    await app.call("POST /api/departments", { name: "Labs" });
    const session = await app.call("POST /api/local/sessions", { name: "work" });
    await app.call("PUT /api/memory/entry", { scope: "global", key: "tone", value: "short" });
    const task = await createSchedule(app, id, "x");
    const ask = (...words: string[]) => listCandidates(["ctl", ...words], app.dataDir);
    expect(await ask("worker", "get", "")).toEqual(["Ada"]);
    expect(await ask("worker", "list", "--id", "")).toEqual(["Ada"]);
    expect(await ask("task", "list", "--worker-id", "")).toEqual(["Ada"]);
    expect(await ask("task", "cancel", "")).toEqual([task]);
    expect(await ask("department", "get", "L")).toEqual(["Labs"]);
    expect(await ask("worker", "create", "--department", "L")).toEqual(["Labs"]);
    expect(await ask("worker", "create", "--scopes", "read:workers,write:ta")).toEqual([
      "read:workers,write:tasks",
    ]);
    expect(await ask("worker", "create", "--engine=cl")).toEqual(["--engine=claude"]);
    expect(await ask("chat", "--worker", "A")).toEqual(["Ada"]);
    expect(await ask("run", "A")).toEqual(["Ada"]);
    expect(await ask("run", "Ada", "")).toEqual([]);
    expect(await ask("chat", "--session", "")).toEqual(["work"]);
    expect(await ask("session", "list", "--session-key", "")).toEqual([`local:${session.id}`]);
    expect(await ask("memory", "get", "--scope", "g")).toEqual(["global"]);
    expect(await ask("memory", "get", "--scope", "global", "--key", "")).toEqual(["tone"]);
    await using dir = await createTempDir();
    const started = performance.now();
    expect(await listCandidates(["ctl", "worker", "get", ""], dir.path)).toEqual([]);
    expect(performance.now() - started).toBeLessThan(15_000);
  });

  it("lists the supported shells for an unknown shell", async () => {
    await using dir = await createTempDir();
    const { code, out, err } = await svc(["completion", "tcsh"], { dataDir: dir.path });
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain("one of bash, zsh, fish");
  });
});

const BREAKS = " \t\n\"'@><=;|&(:";

describe("a line of bash (decision 0010)", () => {
  it("is split by quotes and backslashes alone", () => {
    const words = (line: string) => parseBashLine(line, BREAKS)?.words;
    expect(words('svc ctl \'a b\' "c\\"d" e\\ f ')).toEqual(["svc", "ctl", "a b", 'c"d', "e f", ""]);
    expect(words("svc $(touch x) `y` $HOME ")).toEqual(["svc", "$(touch", "x)", "`y`", "$HOME", ""]);
    expect(words("svc 'open wor")).toEqual(["svc", "open wor"]);
    expect(words("svc 'a'b")).toBeUndefined();
  });

  it("formats candidates that bash inserts, quoted for their position", () => {
    const reply = (line: string, ...values: string[]) =>
      formatReplies(
        values.map((value) => ({ value, about: "what" })),
        parseBashLine(line, BREAKS) ?? expect.fail(),
        0,
      );
    expect(reply("svc ", "$(touch x)", "a b", "Größe 工人")).toEqual([
      "\\$\\(touch\\ x\\)",
      "a\\ b",
      "Größe\\ 工人",
    ]);
    expect(reply("svc local:a", "local:abc")).toEqual(["abc"]);
    expect(reply("svc --engine=cl", "--engine=claude")).toEqual(["claude"]);
    expect(reply("svc 'a", "a'b c")).toEqual(["a'\\''b c"]);
    expect(reply('svc "a', 'a$b"`')).toEqual(['a\\$b\\"\\`']);
    const listed = formatReplies(
      [{ value: "a", about: "x\ny" }, { value: "bc", about: "" }],
      parseBashLine("svc ", BREAKS) ?? expect.fail(),
      80,
    );
    expect(listed).toEqual(["a   (x y)", "bc"]);
    const wide = [{ value: "工人", about: "what it is for, at length" }, { value: "abc", about: "what" }];
    const line = parseBashLine("svc ", BREAKS) ?? expect.fail();
    expect(formatReplies(wide, line, 24)).toEqual(["工人  (what it is for…)", "abc   (what)"]);
    expect(formatReplies(wide, line, 16)).toEqual(["工人", "abc"]);
  });
});

// Loads the profile twice: no output either time, and no package is needed.
const SHELLS: { shell: string; command: string; setup: string }[] = [
  {
    shell: "bash",
    command: "bash --norc -i",
    setup: "source <(svc completion bash); source <(svc completion bash)",
  },
  {
    shell: "zsh",
    command: "zsh -f -i",
    setup: "source <(svc completion zsh); source <(svc completion zsh)",
  },
  {
    shell: "fish",
    command: "fish --no-config -i",
    setup: "svc completion fish | source; svc completion fish | source",
  },
];

for (const { shell, command, setup } of SHELLS) {
  describe.skipIf(!await Shell.has(shell))(`completion in a real ${shell}`, () => {
    it("completes groups, commands, flags and values at TAB", async () => {
      await using dir = await createTempDir();
      await using terminal = await Shell.start(command, dir.path, { SVC_DATA_DIR: dir.path });
      await terminal.type(`${setup}; echo rea''dy\n`);
      const silent = await terminal.until(/^ready|[^']ready/m);
      expect(silent).not.toMatch(/readonly|not found|error|insecure/i);
      await terminal.type("svc ctl wor\t");
      await terminal.until(/worker /);
      await terminal.type("lis\t");
      await terminal.until(/list /);
      await terminal.type("--no-rec\t");
      await terminal.until(/--no-recursive/);
      await terminal.type("\u0015svc ctl task create --type cou\t");
      await terminal.until(/countdown/);
      await terminal.type("\u0015svc ctl task create --type=cou\t");
      await terminal.until(/countdown/);
      await terminal.type("\u0015svc ctl dep\tg\t");
      await terminal.until(/department[ \b]*get/);
      await terminal.type("\u0015exit\n");
    });

    it("never runs a part of the line or of a name", async () => {
      await using app = await openApp();
      await app.call("POST /api/departments", { name: "Dep $(touch named) 'q' `touch ticked`" });
      await using dir = await createTempDir();
      const env = { SVC_DATA_DIR: app.dataDir, SVC_SERVER__PORT: "0" };
      await using terminal = await Shell.start(command, dir.path, env);
      await terminal.type(`${setup}; echo rea''dy\n`);
      await terminal.until(/^ready|[^']ready/m);
      const lines = [
        "svc ctl worker get $(touch typed) \t",
        "svc ctl worker get `touch typed` \t",
        'svc ctl worker get "$(touch typed)" \t',
        "svc ctl department get '$(touch typed)\t'",
        "svc $(touch typed) ctl wor\t",
        "svc ctl chat --worker; touch typed;\u0015svc ctl work\t",
        // zsh itself expands the end of a word for every command.
        ...(shell === "zsh" ? [] : ["svc ctl chat --worker=$(touch typed)\t"]),
      ];
      for (const line of lines) {
        await terminal.type(line);
        await terminal.type("\u0015echo a''fter\n");
        await terminal.until(/^after|[^']after/m);
      }
      await terminal.type("svc ctl department get D\t");
      await terminal.until(/touch/);
      await terminal.type("\u0015echo a''fter\n");
      await terminal.until(/^after|[^']after/m);
      const left = Array.fromAsync(Deno.readDir(dir.path));
      expect((await left).map(({ name }) => name).filter((name) => /typed|named|ticked/.test(name))).toEqual(
        [],
      );
      // The shell would run an unquoted name.
      await terminal.type("svc ctl department get D\t > got\n");
      await terminal.type("\u0015echo a''fter\n");
      await terminal.until(/^after|[^']after/m);
      expect(await Deno.readTextFile(join(dir.path, "got"))).toContain(
        "Dep $(touch named) 'q' `touch ticked`",
      );
    });
  });
}
