import { createHash } from "node:crypto";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { packTarGz } from "../../build/archive.ts";
import { findTarget } from "../../build/target.ts";
import { createTempDir } from "../harness/service/process.ts";
import { ROOT } from "../harness/house/tree.ts";

const NAME = `svc-9.9.9-${findTarget(undefined).name}`;
const WORKS = "#!/bin/sh\necho svc 9.9.9\n";

/** Serves archives on loopback. */
function serve(files: Record<string, Uint8Array | string>): { url: string } & AsyncDisposable {
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    const file = files[new URL(request.url).pathname.slice(1)];
    return file === undefined ? new Response("no", { status: 404 }) : new Response(file as BodyInit);
  });
  return { url: `http://127.0.0.1:${server.addr.port}`, [Symbol.asyncDispose]: () => server.shutdown() };
}

function buildArchives(program = WORKS): Record<string, Uint8Array | string> {
  const bytes = new TextEncoder().encode(program);
  const archive = packTarGz([{ name: `${NAME}/svc`, bytes, executable: true }], new Date(0));
  const sum = createHash("sha256").update(archive).digest("hex");
  return {
    [`${NAME}.tar.gz`]: archive,
    "SHA256SUMS": `${"0".repeat(64)}  other.tar.gz\n${sum}  ${NAME}.tar.gz\n`,
  };
}

async function install(env: Record<string, string>, script = join(ROOT, "install.sh"), args: string[] = []) {
  const { code, stdout, stderr } = await new Deno.Command("/bin/sh", {
    args: [script, ...args],
    clearEnv: true,
    env: { PATH: "/usr/bin:/bin", SVC_VERSION: "9.9.9", ...env },
    stdin: "null",
  }).output();
  const words = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, out: words(stdout), err: words(stderr) };
}

async function listEntries(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder))).map((entry) => entry.name);
}

describe("install.sh", () => {
  it("prints its help, refuses an unknown option, and installs nothing", async () => {
    await using home = await createTempDir();
    await using place = serve(buildArchives());
    const env = { SVC_BASE_URL: place.url, SVC_INSTALL_DIR: home.path };
    const script = join(ROOT, "install.sh");
    const help = await install(env, script, ["--help"]);
    expect(help).toMatchObject({ code: 0, err: "", out: expect.stringContaining("SVC_INSTALL_DIR") });
    expect(await install(env, script, ["--prefix=/x"])).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringContaining("does not know --prefix=/x"),
    });
    expect(await listEntries(home.path)).toEqual([]);
  });

  it("installs the program with the right checksum in the given place, and prints the next step", async () => {
    await using home = await createTempDir();
    await using place = serve(buildArchives());
    const folder = join(home.path, "my bin");
    const ran = await install({ SVC_BASE_URL: place.url, SVC_INSTALL_DIR: folder });
    expect(ran).toMatchObject({ code: 0, err: "" });
    expect(ran.out).toContain(`svc 9.9.9 is at ${folder}/svc\n`);
    expect(ran.out).toContain("add it to your PATH");
    expect(await Deno.readTextFile(join(folder, "svc"))).toBe(WORKS);
    expect((await Deno.stat(join(folder, "svc"))).mode ?? 0).toSatisfy((mode: number) =>
      (mode & 0o777) === 0o755
    );
  });

  it("replaces an older program in one step", async () => {
    await using folder = await createTempDir();
    await using place = serve(buildArchives());
    await Deno.writeTextFile(join(folder.path, "svc"), "old", { mode: 0o755 });
    const env = {
      SVC_BASE_URL: place.url,
      SVC_INSTALL_DIR: folder.path,
      PATH: `/usr/bin:/bin:${folder.path}`,
    };
    expect((await install(env)).out).not.toContain("add it to your PATH");
    expect(await Deno.readTextFile(join(folder.path, "svc"))).toBe(WORKS);
    expect(await listEntries(folder.path)).toEqual(["svc"]);
  });

  const refusals: [string, (files: Record<string, Uint8Array | string>) => void, RegExp][] = [
    [
      "an archive with another checksum",
      (files) => files[`${NAME}.tar.gz`] = "evil",
      /the sum of .* is .* and should be/,
    ],
    ["an archive without a checksum", (files) => files.SHA256SUMS = "", /does not name/],
    ["a server without the archive", (files) => delete files[`${NAME}.tar.gz`], /cannot get .*tar\.gz/],
    ["a server without checksums", (files) => delete files.SHA256SUMS, /cannot get .*SHA256SUMS/],
  ];
  it.each(refusals)("refuses %s and installs nothing", async (_what, spoil, words) => {
    await using folder = await createTempDir();
    const files = buildArchives();
    spoil(files);
    await using place = serve(files);
    const ran = await install({ SVC_BASE_URL: place.url, SVC_INSTALL_DIR: folder.path });
    expect(ran).toMatchObject({ code: 1, out: "" });
    expect(ran.err).toMatch(words);
    expect(await listEntries(folder.path)).toEqual([]);
  });

  it("keeps the old program when the new one does not run here", async () => {
    await using folder = await createTempDir();
    await using place = serve(buildArchives("#!/bin/sh\nexit 1\n"));
    await Deno.writeTextFile(join(folder.path, "svc"), "old");
    const ran = await install({ SVC_BASE_URL: place.url, SVC_INSTALL_DIR: folder.path });
    expect(ran).toMatchObject({ code: 1, err: expect.stringContaining("does not run on this machine") });
    expect(await listEntries(folder.path)).toEqual(["svc"]);
    expect(await Deno.readTextFile(join(folder.path, "svc"))).toBe("old");
  });

  it("installs the program and man pages of an unpacked archive or of a checkout with a built svc", async () => {
    await using folder = await createTempDir();
    for (const place of ["archive", "checkout"]) {
      const at = join(folder.path, place);
      const parts = join(at, place === "checkout" ? "dist" : "");
      await Deno.mkdir(join(parts, "man"), { recursive: true });
      await Deno.copyFile(join(ROOT, "install.sh"), join(at, "install.sh"));
      await Deno.writeTextFile(join(parts, "svc"), WORKS, { mode: 0o755 });
      for (const page of ["svc.1", "svc-ctl.1"]) await Deno.writeTextFile(join(parts, "man", page), page);
      const home = join(folder.path, `home-${place}`);
      const ran = await install(
        { SVC_VERSION: "", SVC_INSTALL_DIR: join(home, "bin") },
        join(at, "install.sh"),
      );
      expect(ran).toMatchObject({ code: 0, err: "", out: expect.stringContaining("svc 9.9.9 is at ") });
      expect(await Deno.readTextFile(join(home, "bin/svc"))).toBe(WORKS);
      expect((await listEntries(join(home, "share/man/man1"))).sort()).toEqual(["svc-ctl.1", "svc.1"]);
    }
  });

  it("prints the command for a checkout without a built svc, and for an empty directory", async () => {
    await using folder = await createTempDir();
    const script = join(folder.path, "install.sh");
    await Deno.copyFile(join(ROOT, "install.sh"), script);
    const env = { SVC_VERSION: "", SVC_INSTALL_DIR: "/x" };
    expect(await install(env, script)).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringMatching(/unpack a release archive.*make build\n.*SVC_BASE_URL/),
    });
    await Deno.writeTextFile(join(folder.path, "main.ts"), "");
    expect(await install(env, script)).toMatchObject({
      code: 1,
      err: expect.stringContaining("make build && sh install.sh"),
    });
  });

  it("names missing settings", async () => {
    expect(await install({ SVC_INSTALL_DIR: "/x" })).toMatchObject({
      code: 1,
      err: expect.stringContaining("SVC_BASE_URL"),
    });
    const unversioned = await install({ SVC_VERSION: "", SVC_BASE_URL: "http://127.0.0.1:9" });
    expect(unversioned).toMatchObject({ code: 1, err: expect.stringContaining("SVC_VERSION") });
  });
});
