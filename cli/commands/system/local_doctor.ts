import { statfs } from "node:fs/promises";
import { load } from "../../../src/base/lazy_import.ts";
import { buildDataPaths } from "../../../src/base/paths.ts";
import { findExposure } from "../../../src/config/exposure.ts";
import { type ClientConfig, readClientConfig, readConfigSource } from "../../../src/config/file.ts";
import type { Row } from "../../terminal/column.ts";
import { formatReason } from "../../terminal/exit.ts";
import type { Io } from "../../terminal/io.ts";
import { isLocked } from "../../client/server_address.ts";

type Status = "ok" | "warn" | "fail";

/** The result of a check of this machine. */
interface Finding {
  status: Status;
  detail: string;
  hint: string;
  /** Fixes the problem without a risk of data loss. Returns a description. */
  fix?: () => Promise<string>;
}

interface DoctorInput {
  config: ClientConfig;
  configFlag: string | undefined;
  io: Io;
}

const MB = 1_000_000;
const DISK_WARN_BYTES = 1_000 * MB;
const DISK_FAIL_BYTES = 100 * MB;
// A run holds about ten files; the unit of `svc service` sets 65,536.
const OPEN_FILES_MIN = 4_096;

/**
 * Checks this machine without a server (contract 8.17). With `fix`, fixes safe problems and checks again. Returns the
 * result in the form of the server's doctor, and a description of each fix.
 */
export async function checkMachine(
  io: Io,
  configFlag: string | undefined,
  fix: boolean,
): Promise<{ answer: { status: Status; checks: Row[] }; done: string[] }> {
  const input = { io, configFlag, config: await readClientConfig(configFlag, io.env) };
  const done: string[] = [];
  const checks: Row[] = [];
  for (const [name, check] of Object.entries(CHECKS)) {
    let finding = await check(input);
    if (fix && finding.fix !== undefined) {
      done.push(await finding.fix().catch((error) => `cannot fix ${name}: ${formatReason(error)}`));
      finding = await check(input);
    }
    const { status, detail, hint } = finding;
    checks.push({ name, status, detail, hint });
  }
  const has = (status: Status) => checks.some((check) => check.status === status);
  return { answer: { status: has("fail") ? "fail" : has("warn") ? "warn" : "ok", checks }, done };
}

const CHECKS: Record<string, (input: DoctorInput) => Promise<Finding>> = {
  service: checkService,
  config: checkConfig,
  secrets: checkConfigSecrets,
  data_dir: checkDataDirectory,
  permissions: checkPermissions,
  disk: checkDisk,
  open_files: checkOpenFiles,
  account: checkAccount,
};

function reportOk(detail: string): Finding {
  return { status: "ok", detail, hint: "" };
}

async function checkService({ config }: DoctorInput): Promise<Finding> {
  const { lock } = buildDataPaths(config.dataDir);
  if (!await isLocked(lock)) {
    return {
      status: "fail",
      detail: "no server uses this data directory",
      hint: "start it with `svc serve`",
    };
  }
  const pid = (await Deno.readTextFile(lock).catch(() => "")).trim();
  const detail = `the server of ${config.dataDir}${pid === "" ? "" : ` (pid ${pid})`} does not respond`;
  return { status: "fail", detail, hint: "check its log; `svc health` reports when it is ready" };
}

async function checkConfig({ configFlag, io }: DoctorInput): Promise<Finding> {
  // Imported lazily, so that only this check loads the whole schema.
  const { loadConfig } = await load<typeof import("../../../src/config/schema.ts")>(
    "../../../src/config/schema.ts",
    import.meta.url,
  );
  try {
    const { path } = await loadConfig(configFlag, io.env);
    return reportOk(path === null ? "no config.yaml; using the defaults" : `${path} is valid`);
  } catch (error) {
    return { status: "fail", detail: formatReason(error), hint: "see `svc ctl config schema`" };
  }
}

async function checkConfigSecrets({ configFlag }: DoctorInput): Promise<Finding> {
  const { path } = await readConfigSource(configFlag);
  if (path === null) return reportOk("no configuration file");
  const exposure = await findExposure(path);
  if (exposure === null) return reportOk(`other users cannot read secrets in ${path}`);
  const detail = `other users can read ${exposure.key} in ${path}`;
  return { status: "warn", detail, hint: `chmod go= ${path}`, fix: () => closePermissions(path) };
}

async function checkDataDirectory({ config }: DoctorInput): Promise<Finding> {
  const path = config.dataDir;
  const info = await Deno.stat(path).catch(() => null);
  if (info === null) {
    const hint = "the first start creates it, or `svc doctor --fix`";
    const fix = async () => {
      await Deno.mkdir(path, { recursive: true, mode: 0o700 });
      return `created ${path}`;
    };
    return { status: "warn", detail: `${path} does not exist yet`, hint, fix };
  }
  if (!info.isDirectory) {
    return { status: "fail", detail: `${path} is not a directory`, hint: "set data_dir to another path" };
  }
  try {
    const probe = await Deno.makeTempFile({ dir: path, prefix: ".probe-" });
    await Deno.remove(probe);
    return reportOk(`${path} is writable`);
  } catch (error) {
    const detail = `${path}: ${formatReason(error)}`;
    return { status: "fail", detail, hint: "run svc as the owner of the directory" };
  }
}

async function checkPermissions({ config }: DoctorInput): Promise<Finding> {
  const { root, secretKey, logs, uploads } = buildDataPaths(config.dataDir);
  const open: string[] = [];
  for (const path of [root, secretKey, logs, uploads]) {
    if (((await readMode(path) ?? 0) & 0o077) !== 0) open.push(path);
  }
  if (open.length === 0) return reportOk(`only the owner can read ${root}`);
  return {
    status: open.includes(secretKey) || open.includes(root) ? "fail" : "warn",
    detail: `other users can read ${open.join(", ")}`,
    hint: `chmod go= ${open.join(" ")}`,
    fix: async () => (await Promise.all(open.map(closePermissions))).join("; "),
  };
}

async function checkDisk({ config }: DoctorInput): Promise<Finding> {
  const found = await statfs(config.dataDir).catch(() => null);
  if (found === null) return reportOk("not checked: no data directory yet");
  const free = found.bavail * found.bsize;
  const detail = `${Math.round(free / MB)} MB free in ${config.dataDir}`;
  if (free >= DISK_WARN_BYTES) return reportOk(detail);
  const hint = "free disk space, or shorten retention in the configuration";
  return { status: free < DISK_FAIL_BYTES ? "fail" : "warn", detail, hint };
}

async function checkOpenFiles(): Promise<Finding> {
  const limits = await Deno.readTextFile("/proc/self/limits").catch(() => "");
  const soft = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1];
  if (soft === undefined) return reportOk("not checked on this system");
  const detail = `at most ${soft} open files (soft limit of this shell)`;
  if (soft === "unlimited" || Number(soft) >= OPEN_FILES_MIN) return reportOk(detail);
  return { status: "warn", detail, hint: "run `ulimit -n 65536` before `svc serve`, or use `svc service`" };
}

function checkAccount(): Promise<Finding> {
  if (Deno.uid() !== 0) return Promise.resolve(reportOk("not root"));
  const detail = "svc runs as root, so agents have full access";
  const hint = "use a separate account: `svc service install` creates one";
  return Promise.resolve({ status: "warn", detail, hint });
}

async function readMode(path: string): Promise<number | null> {
  return Deno.build.os === "windows" ? null : (await Deno.stat(path).catch(() => null))?.mode ?? null;
}

async function closePermissions(path: string): Promise<string> {
  await Deno.chmod(path, ((await Deno.stat(path)).mode ?? 0o700) & 0o700);
  return `chmod go= ${path}`;
}
