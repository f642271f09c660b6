// The /etc of boxes: a directory with copies of what programs need. A mount for each file would double the start of a box (decision 0031).
import { dirname, join } from "node:path";

// Users, hosts, the resolver, certificates without private keys, the time zone, alternatives and the loader's cache.
const FILES = [
  ...["passwd", "group", "nsswitch.conf", "hosts", "host.conf", "hostname", "resolv.conf", "gai.conf"],
  ...["services", "protocols", "localtime", "timezone", "ld.so.cache", "ld.so.conf"],
  ...["ssl/cert.pem", "ssl/openssl.cnf", "pki/tls/cert.pem", "pki/tls/openssl.cnf"],
  ...["os-release", "debian_version", "mime.types", "shells", "bash.bashrc", "profile", "inputrc"],
];
// Directories with large files, which are mounted instead of copied.
const DIRECTORIES = [
  ...["alternatives", "ld.so.conf.d", "ssl/certs", "pki/ca-trust/extracted", "pki/tls/certs"],
  "crypto-policies",
];

/** The directories of the machine's /etc that a box mounts. */
export const ETC_DIRECTORIES = DIRECTORIES.map((name) => `/etc/${name}`);
/** The files of a box's /etc. */
export const ETC_FILES = FILES.map((name) => `/etc/${name}`);

/** The directory that boxes have as /etc. Only the service writes to it. */
export class BoxEtc {
  readonly #folder: string;
  readonly #machine: string;
  /** The state of the machine's file when its copy was made, by name. */
  readonly #made = new Map<string, string>();

  /** `machine` replaces /etc. */
  constructor(folder: string, machine = "/etc") {
    this.#folder = folder;
    this.#machine = machine;
  }

  /** Copies what the machine has changed. Boxes that have started see the new copies, too. Throws errors of the file system. */
  refresh(): void {
    if (this.#made.size === 0) removeAll(this.#folder);
    makeOpenDirectory(this.#folder);
    for (const name of [...FILES, ...DIRECTORIES]) {
      const state = describe(join(this.#machine, name));
      if (this.#made.get(name) === state) continue;
      this.#make(name, state);
      this.#made.set(name, state);
    }
  }

  #make(name: string, state: string): void {
    const path = join(this.#folder, name);
    if (state === MISSING) return removeAll(path);
    this.#makeParents(name);
    if (DIRECTORIES.includes(name)) return makeOpenDirectory(path);
    const source = join(this.#machine, name);
    const real = Deno.realPathSync(source);
    const fresh = `${path}.new`;
    removeAll(fresh);
    try {
      // Programs read the name of the time zone from the link.
      if (real.startsWith("/usr/")) Deno.symlinkSync(real, fresh);
      else Deno.copyFileSync(source, fresh);
      Deno.renameSync(fresh, path);
    } catch (error) {
      // A box cannot read the file either.
      if (!(error instanceof Deno.errors.PermissionDenied)) throw error;
      removeAll(path);
    }
  }

  #makeParents(name: string): void {
    const parent = dirname(name);
    if (parent === ".") return;
    this.#makeParents(parent);
    makeOpenDirectory(join(this.#folder, parent));
  }
}

const MISSING = "";

/** Describes the file at a path. The text changes with the file. */
function describe(path: string): string {
  try {
    const { isDirectory, dev, ino, size, mtime } = Deno.statSync(path);
    if (isDirectory) return "directory";
    return [dev, ino, size, mtime?.getTime()].join(" ");
  } catch {
    return MISSING;
  }
}

// The service's umask hides new directories from the user of a box.
function makeOpenDirectory(path: string): void {
  Deno.mkdirSync(path, { recursive: true });
  Deno.chmodSync(path, 0o755);
}

function removeAll(path: string): void {
  try {
    Deno.removeSync(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
