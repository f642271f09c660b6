import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BrokenPipe, type Io } from "../../cli/terminal/io.ts";
import { type Machine, runService } from "../../cli/service/service.ts";
import { createSystemd } from "../../cli/service/systemd.ts";
import { createTempDir } from "../harness/service/process.ts";
import { splitWords } from "../harness/terminal.ts";

const ROOT_MACHINE: Partial<Machine> = { os: "linux", uid: 0, program: "/usr/local/bin/svc" };

async function call(
  args: string[],
  machine: Partial<Machine> = {},
  env: Record<string, string> = {},
  closedPipe = false,
) {
  const said = { out: "", err: "" };
  const io: Io = {
    out: (text) => {
      if (closedPipe) throw new BrokenPipe();
      said.out += text;
    },
    err: (text) => said.err += text,
    stdin: new Blob([]).stream(),
    hideInput: () => {},
    rawInput: () => {},
    outIsTerminal: false,
    errIsTerminal: false,
    inIsTerminal: false,
    width: 0,
    env,
    cwd: "/work",
    signal: new AbortController().signal,
  };
  const initSystem = () => {
    throw new Error("no init system is asked here");
  };
  const code = await runService(args, io, { ...ROOT_MACHINE, initSystem, ...machine } as Machine);
  return { code, ...said };
}

describe("svc service print (contract 6)", () => {
  it("writes the unit of the whole machine for root, and changes nothing", async () => {
    const { code, out, err } = await call(["print"]);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toContain("\nExecStart=/usr/local/bin/svc serve -c /etc/svc/config.yaml\n");
    expect(out).toContain("\nUser=svc\n");
    expect(out).toContain("\nStateDirectory=svc\n");
    expect(out).toContain("\nEnvironmentFile=-/etc/svc/environment\n");
    expect(out).toContain("\nWantedBy=multi-user.target\n");
  });

  it("writes the unit of a standby with --standby (contract 18)", async () => {
    const { out } = await call(["print", "--standby"]);
    expect(out).toContain("\nExecStart=/usr/local/bin/svc serve -c /etc/svc/config.yaml --standby\n");
  });

  it("omits settings that break V8 or the namespaces of runs (facts, Deno 5; decision 0018)", async () => {
    const { out } = await call(["print"]);
    const lines = out.split("\n").filter((line) => !line.startsWith("#"));
    expect(
      lines.filter((line) =>
        /MemoryDenyWriteExecute|ProtectKernel(Tunables|Logs)|ProtectHostname/.test(line)
      ),
    ).toEqual([]);
    expect(lines).toContain("RestrictNamespaces=user pid mnt net ipc uts cgroup");
    expect(lines).toContain("NotifyAccess=main");
  });

  it("without root writes a unit for one user, with that user's directories", async () => {
    const { out } = await call(["print"], { uid: 1000 }, { HOME: "/home/ada" });
    expect(out).toContain("\nExecStart=/usr/local/bin/svc serve -c /home/ada/.config/svc/config.yaml\n");
    expect(out).toContain("\nWorkingDirectory=/home/ada/.local/share/svc\n");
    expect(out).not.toMatch(/^(User|StateDirectory|ProtectSystem)=/m);
    const other = await call(["print"], { uid: 1000 }, {
      HOME: "/home/ada",
      XDG_DATA_HOME: "/d",
      XDG_CONFIG_HOME: "/c",
    });
    expect(other.out).toContain("\nWorkingDirectory=/d/svc\n");
    expect(other.out).toContain("-c /c/svc/config.yaml\n");
  });

  describe("writes the PATH of the installing shell into the unit of one user", () => {
    const tools =
      ".local/bin .nvm/versions/node/v24.1.0/bin .bun/bin .cargo/bin .npm-global/bin .volta/bin .asdf/shims";
    const mine = splitWords(tools).map((folder) => `/home/ada/${folder}`);
    const print = (PATH: string, os: "linux" | "darwin" = "linux", ...flags: string[]) =>
      call(["print", ...flags], { os, uid: 1000 }, { HOME: "/home/ada", PATH });

    it("lists every directory of the user first, then the system's", async () => {
      const { out } = await print([...mine, "/usr/bin"].join(":"));
      expect(out).toContain(
        `\nEnvironment=PATH=${mine.join(":")}:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:`,
      );
      // A PATH in the environment file still wins.
      expect(out.indexOf("Environment=PATH")).toBeLessThan(out.indexOf("EnvironmentFile="));
    });

    it("omits relative, empty, repeated and unprintable entries", async () => {
      const { out } = await print("/opt/a::.:bin:~/bin:/opt/b\n[Service]:/opt/\u0007c:/opt/a:/bin");
      expect(out).toContain(
        "\nEnvironment=PATH=/opt/a:/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin\n",
      );
    });

    it("quotes blanks, quotes, backslashes, percent signs and other scripts for systemd", async () => {
      const { out } = await print(`/opt/my tools:/opt/50%/b:/opt/a"b\\c:/opt/$X:/home/ада/bin`);
      expect(out).toContain(
        `\nEnvironment="PATH=/opt/my tools:/opt/50%%/b:/opt/a\\"b\\\\c:/opt/$X:/home/ада/bin:/usr/local/sbin:`,
      );
    });

    it("escapes the PATH for XML in a launchd unit", async () => {
      const { out } = await print("/Users/ada/.local/bin:/opt/a&b:bin", "darwin");
      expect(out).toContain(
        "<key>PATH</key><string>/Users/ada/.local/bin:/opt/a&amp;b:/usr/local/bin:/opt/homebrew/bin:/usr/bin:",
      );
    });

    it("lists only the system's directories when the shell has no PATH", async () => {
      expect((await print("")).out).toContain(
        "\nEnvironment=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n",
      );
    });

    it("writes no PATH into the unit of the whole machine", async () => {
      const { out } = await call(["print"], {}, { PATH: mine.join(":") });
      expect(out).not.toContain("PATH=");
      const plist = await call(["print", "--system"], { os: "darwin" }, { PATH: mine.join(":") });
      expect(plist.out).toContain("<key>PATH</key><string>/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:");
    });
  });

  it("accepts every flag, and resolves relative paths from the current directory", async () => {
    const flags = splitWords("--run-as bee --env-file keys --name bees --program bin/svc -c my.yaml");
    const { out } = await call(["print", ...flags]);
    expect(out).toContain("\nUser=bee\n");
    expect(out).toContain("\nEnvironmentFile=-/work/keys\n");
    expect(out).toContain("\nExecStart=/work/bin/svc serve -c /work/my.yaml\n");
    expect(out).toContain("\nStateDirectory=bees\n");
  });

  it("adds writable directories: in homes by a bind mount, elsewhere directly", async () => {
    const { out } = await call(
      splitWords("print --data-dir /srv/svc --writable /home/ada/code --writable '/opt/a b'"),
    );
    expect(out).toContain("\nProtectHome=tmpfs\n");
    expect(out).toContain("\nBindPaths=/home/ada/code\n");
    expect(out).toContain('\nReadWritePaths="/opt/a b" /srv/svc\n');
    expect(out).not.toContain("StateDirectory");
    expect((await call(["print"])).out).toContain("\nProtectHome=yes\n");
  });

  it("quotes what systemd would interpret", async () => {
    const { out } = await call(["print", "--program", '/opt/50% "x"/$HOME/svc', "--data-dir", "/srv/50%"]);
    expect(out).toContain('\nExecStart="/opt/50%% \\"x\\"/$$HOME/svc" serve -c /etc/svc/config.yaml\n');
    expect(out).toContain("\nWorkingDirectory=/srv/50%%\n");
  });

  it("takes the data directory that the configuration names", async () => {
    await using folder = await createTempDir();
    const config = join(folder.path, "config.yaml");
    await Deno.writeTextFile(config, "data_dir: data\n");
    expect((await call(["print", "-c", config])).out).toContain(`SVC_DATA_DIR=${folder.path}/data\n`);
    expect((await call(["print", "-c", config, "--data-dir", "/d"])).out).toContain("SVC_DATA_DIR=/d\n");
    await Deno.writeTextFile(config, "data_dir: [\n");
    expect(await call(["print", "-c", config])).toMatchObject({ code: 2, out: "" });
  });

  it("writes a property list on macOS", async () => {
    const { code, out } = await call(["print", "--program", "/opt/a&b/svc"], { os: "darwin" });
    expect(code).toBe(0);
    expect(out).toContain("<string>/opt/a&amp;b/svc</string>\n    <string>serve</string>");
    expect(out).toContain("<key>UserName</key><string>svc</string>");
    const mine = await call(["print"], { os: "darwin", uid: 501 }, { HOME: "/Users/ada" });
    expect(mine.out).not.toContain("UserName");
  });
});

it("svc service returns exit 0 after its reader closes the pipe", async () => {
  expect(await call(["print"], {}, {}, true)).toEqual({ code: 0, out: "", err: "" });
});

describe("svc service refuses", () => {
  const cases: [string, string[], Partial<Machine>, number, RegExp][] = [
    ["an unknown command", ["start"], {}, 2, /print, install, uninstall or status/],
    ["an unknown flag", ["print", "--frob"], {}, 2, /--frob/],
    ["an extra argument", ["print", "x"], {}, 2, /unexpected argument "x"/],
    ["both scopes", ["print", "--user", "--system"], {}, 2, /cannot be used together/],
    ["another account for a service of one's own", ["print", "--user", "--run-as", "x"], {}, 2, /--run-as/],
    ["a name that is not a file name", ["print", "--name", "../x"], {}, 2, /--name/],
    ["an invalid account name", ["print", "--run-as", "a b"], {}, 2, /--run-as/],
    ["a path with a line break", ["print", "--data-dir", "/a\nUser=root"], {}, 2, /control characters/],
    ["a program that is not built", ["print"], { program: null }, 2, /make build/],
    ["Windows", ["install"], { os: "windows" }, 2, /WSL 2/],
    ["a service of the machine without root", ["install", "--system"], { uid: 1000 }, 4, /requires root/],
    ["no command, with the help", [], {}, 2, /^Usage: svc service/],
  ];
  it.each(cases)("%s", async (_what, args, machine, code, words) => {
    const ran = await call(args, machine, { HOME: "/home/ada" });
    expect(ran.code).toBe(code);
    expect(ran.err).toMatch(words);
    expect(ran.out).toBe("");
  });

  it("a service for one user without a home", async () => {
    expect(await call(["print", "--user"])).toMatchObject({ code: 2, err: expect.stringContaining("HOME") });
  });

  it("to install a program that the service cannot read, before any change", async () => {
    const ran = await call(["install"], { program: "/root/svc", initSystem: (_os, io) => createSystemd(io) });
    expect(ran).toMatchObject({
      code: 2,
      err: expect.stringContaining("install -m 755 /root/svc /usr/local/bin/svc"),
    });
  });
});

describe("svc service status", () => {
  it("exits 0, 6 or 3, and prints what the manager says", async () => {
    const status = {
      state: "active (running)",
      starts_at_boot: true,
      pid: 7,
      restarts: 0,
      says: "",
      unit: "/u",
    };
    const initSystem = (installed: boolean, running: boolean) => () => ({
      install: () => Promise.resolve(),
      uninstall: () => Promise.resolve(),
      status: () => Promise.resolve({ installed, running, ...status }),
    });
    const up = await call(["status"], { initSystem: initSystem(true, true) });
    expect([up.code, up.out]).toEqual([0, expect.stringContaining("state\tactive (running)\n")]);
    expect((await call(["status"], { initSystem: initSystem(true, false) })).code).toBe(6);
    const none = await call(["status", "--json"], { initSystem: initSystem(false, false) });
    expect([none.code, JSON.parse(none.out)]).toEqual([
      3,
      expect.objectContaining({ installed: false, pid: 7 }),
    ]);
  });
});
