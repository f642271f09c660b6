/** Returns the mounts that this process sees, or "" on a system that does not list them. */
export function readMounts(): string {
  try {
    return Deno.readTextFileSync("/proc/self/mountinfo");
  } catch {
    return "";
  }
}

/** Returns the lines of `mounts` with mount points at or below a real path. */
export function listMountsBelow(path: string, mounts: string = readMounts()): string[] {
  return mounts.split("\n").filter((line) => {
    // The list writes blanks in a path as octal escapes.
    const point = (line.split(" ")[4] ?? "").replace(
      /\\([0-7]{3})/g,
      (_, code) => String.fromCharCode(parseInt(code, 8)),
    );
    return point === path || point.startsWith(path.endsWith("/") ? path : `${path}/`);
  });
}
