/** A platform of a release. */
export interface Target {
  /** The target's name in the names of archives. */
  name: string;
  /** Deno's name. */
  triple: string;
  /** Package of libSQL's addon. */
  addon: string;
  program: "svc" | "svc.exe";
  archive: "tar.gz" | "zip";
}

const unix = { program: "svc", archive: "tar.gz" } as const;

/** The targets of a release. Deno has no base for musl. */
export const TARGETS: readonly Target[] = [
  { name: "linux-x64", triple: "x86_64-unknown-linux-gnu", addon: "@libsql/linux-x64-gnu", ...unix },
  { name: "linux-arm64", triple: "aarch64-unknown-linux-gnu", addon: "@libsql/linux-arm64-gnu", ...unix },
  { name: "macos-x64", triple: "x86_64-apple-darwin", addon: "@libsql/darwin-x64", ...unix },
  { name: "macos-arm64", triple: "aarch64-apple-darwin", addon: "@libsql/darwin-arm64", ...unix },
  {
    name: "windows-x64",
    triple: "x86_64-pc-windows-msvc",
    addon: "@libsql/win32-x64-msvc",
    program: "svc.exe",
    archive: "zip",
  },
];

/** Finds a target by its name, or the target of this machine. Throws Error with the known names. */
export function findTarget(name: string | undefined): Target {
  const found = TARGETS.find((target) =>
    name === undefined ? target.triple === Deno.build.target : target.name === name
  );
  if (found !== undefined) return found;
  const names = TARGETS.map((target) => target.name).join(", ");
  throw new Error(`Cannot build for ${name ?? Deno.build.target}: there are ${names}`);
}
