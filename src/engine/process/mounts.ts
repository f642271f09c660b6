/** Reads the mounts that this process sees; "" where the system does not list them. */
export function readMounts(): string {
  try {
    return Deno.readTextFileSync("/proc/self/mountinfo");
  } catch {
    return "";
  }
}

/** Filters the lines of `mounts` to those of mount points at or below a real path. */
export function listMountsBelow(path: string, mounts: string = readMounts()): string[] {
  return mounts.split("\n").filter((line) => {
    // Blanks in a path are octal escapes.
    const point = (line.split(" ")[4] ?? "").replace(
      /\\([0-7]{3})/g,
      (_, code) => String.fromCharCode(parseInt(code, 8)),
    );
    return point === path || point.startsWith(path.endsWith("/") ? path : `${path}/`);
  });
}
