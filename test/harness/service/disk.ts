import { join } from "node:path";

/** A separate file system of the given size, if this machine allows it. */
export class SmallDisk implements AsyncDisposable {
  private constructor(readonly path: string) {}

  /** Mounts it on `path`, which is created if missing. Throws if mounting is not allowed; see canMountDisk(). */
  static async mount(path: string, megabytes: number): Promise<SmallDisk> {
    await Deno.mkdir(path, { recursive: true, mode: 0o700 });
    const options = `size=${megabytes}m,mode=0700`;
    if (!await runCommand("mount", ["-t", "tmpfs", "-o", options, "none", path])) {
      throw new Error("cannot mount");
    }
    return new SmallDisk(path);
  }

  async fill(): Promise<void> {
    const file = await Deno.open(join(this.path, "filler"), { write: true, create: true, append: true });
    for (let size = 1 << 20; size >= 1;) {
      try {
        await file.write(new Uint8Array(size));
      } catch {
        size = Math.floor(size / 4);
      }
    }
    file.close();
  }

  async free(): Promise<void> {
    await Deno.remove(join(this.path, "filler"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await runCommand("umount", ["-l", this.path]);
  }
}

/** Returns whether small disks can be mounted here, which needs root. */
export async function canMountDisk(): Promise<boolean> {
  if (Deno.build.os !== "linux" || Deno.uid() !== 0) return false;
  const path = await Deno.makeTempDir({ prefix: "svc-mount-" });
  try {
    await using _disk = await SmallDisk.mount(path, 1);
    return true;
  } catch {
    return false;
  } finally {
    await Deno.remove(path, { recursive: true }).catch(() => {});
  }
}

async function runCommand(command: string, args: string[]): Promise<boolean> {
  try {
    return (await new Deno.Command(command, { args, stdout: "null", stderr: "null" }).output()).success;
  } catch {
    return false;
  }
}
