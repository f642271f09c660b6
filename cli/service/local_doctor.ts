import { statfs } from "node:fs/promises";
import { load } from "../../src/base/load.ts";
import { dataPaths } from "../../src/base/paths.ts";
import { findExposure } from "../../src/config/exposure.ts";
import { type ClientConfig, readClientConfig, readConfigSource } from "../../src/config/file.ts";
import type { Row } from "../terminal/column.ts";
import type { Io } from "../terminal/io.ts";
import { isLocked } from "../client/server_address.ts";

type Status = "ok" | "warn" | "fail";

/** What one look at this machine found, and how it is put right. */
interface Finding {
  status: Status;
  detail: string;
  hint: string;
  /** Puts it right where nothing can be lost by it; returns what was done. */
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
// One run holds about ten; the unit of `svc service` asks for 65,536.
const OPEN_FILES_MIN = 4_096;

/**
 * Examines this machine without a server: configuration, data directory, permissions, lock, disk, open files, account (contract
 * 8.17). With `fix` puts right what is safe and examines again. Returns the answer of the server's doctor in the same form, and
 * what was done.
 */
export async function checkMachine(
  io: Io,
  configFlag: string | undefined,
  fix: boolean,
): Promise<{ answer: { status: Status; checks: Row[] }; done: string[] }> {
  const patient = { io, configFlag, config: await readClientConfig(configFlag, io.env) };
  const done: string[] = [];
  const checks: Row[] = [];
  for (const [name, look] of Object.entries(CHECKS)) {
    let finding = await look(patient);
    if (fix && finding.fix !== undefined) {
      done.push(await finding.fix().catch((error) => `cannot fix ${name}: ${formatError(error)}`));
      finding = await look(patient);
    }
    const { status, detail, hint } = finding;
    checks.push({ name, status, detail, hint });
  }
  const has = (status: Status) => checks.some((check) => check.status === status);
  return { answer: { status: has("fail") ? "fail" : has("warn") ? "warn" : "ok", checks }, done };
}

const CHECKS: Record<string, (patient: DoctorInput) => Promise<Finding>> = {
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
  const { lock } = dataPaths(config.dataDir);
  if (await isLocked(lock)) {
    const pid = (await Deno.readTextFile(lock).catch(() => "")).trim();
    return {
      status: "fail",
      detail: `a server holds ${config.dataDir}${pid === "" ? "" : ` (pid ${pid})`} and does not answer`,
      hint: "look at its log; svc health says when it is ready",
    };
  }
  return {
    status: "fail",
    detail: "no server runs on this data directory",
    hint: "start it with: svc serve",
  };
}

async function checkConfig({ configFlag, io }: DoctorInput): Promise<Finding> {
  // The whole schema is loaded by this only.
  const { loadConfig } = await load<typeof import("../../src/config/schema.ts")>(
    "../../src/config/schema.ts",
    import.meta.url,
  );
  try {
    const { path } = await loadConfig(configFlag, io.env);
    return reportOk(path === null ? "there is no config.yaml, so the defaults hold" : `${path} is right`);
  } catch (error) {
    return { status: "fail", detail: formatError(error), hint: "see: svc ctl config schema" };
  }
}

async function checkConfigSecrets({ configFlag }: DoctorInput): Promise<Finding> {
  const { path } = await readConfigSource(configFlag);
  if (path === null) return reportOk("there is no configuration file");
  const exposure = await findExposure(path);
  if (exposure === null) return reportOk(`${path} shows no secret to others`);
  return {
    status: "warn",
    detail: `others may read ${path}, which holds ${exposure.key}`,
    hint: `chmod go= ${path}`,
    fix: () => closePermissions(path),
  };
}

async function checkDataDirectory({ config }: DoctorInput): Promise<Finding> {
  const path = config.dataDir;
  const info = await Deno.stat(path).catch(() => null);
  if (info === null) {
    return {
      status: "warn",
      detail: `there is no ${path} yet`,
      hint: "the first start makes it; or: svc doctor --fix",
      fix: async () => {
        await Deno.mkdir(path, { recursive: true, mode: 0o700 });
        return `made ${path}`;
      },
    };
  }
  if (!info.isDirectory) {
    return { status: "fail", detail: `${path} is no directory`, hint: "set data_dir to another place" };
  }
  try {
    const probe = await Deno.makeTempFile({ dir: path, prefix: ".probe-" });
    await Deno.remove(probe);
    return reportOk(`${path} can be written to`);
  } catch (error) {
    return {
      status: "fail",
      detail: `${path}: ${formatError(error)}`,
      hint: "run it as the owner of the directory",
    };
  }
}

async function checkPermissions({ config }: DoctorInput): Promise<Finding> {
  const { root, secretKey, logs, uploads } = dataPaths(config.dataDir);
  const open: string[] = [];
  for (const path of [root, secretKey, logs, uploads]) {
    if (((await readMode(path) ?? 0) & 0o077) !== 0) open.push(path);
  }
  if (open.length === 0) return reportOk(`only its owner may read ${root}`);
  return {
    status: open.includes(secretKey) || open.includes(root) ? "fail" : "warn",
    detail: `others may read ${open.join(", ")}`,
    hint: `chmod go= ${open.join(" ")}`,
    fix: async () => (await Promise.all(open.map(closePermissions))).join("; "),
  };
}

async function checkDisk({ config }: DoctorInput): Promise<Finding> {
  const found = await statfs(config.dataDir).catch(() => null);
  if (found === null) return reportOk("not looked at: there is no data directory yet");
  const free = found.bavail * found.bsize;
  const detail = `${Math.round(free / MB)} MB free in ${config.dataDir}`;
  if (free >= DISK_WARN_BYTES) return reportOk(detail);
  const hint = "free some space, or keep less (retention in the configuration)";
  return { status: free < DISK_FAIL_BYTES ? "fail" : "warn", detail, hint };
}

async function checkOpenFiles(): Promise<Finding> {
  const limits = await Deno.readTextFile("/proc/self/limits").catch(() => "");
  const soft = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1];
  if (soft === undefined) return reportOk("not looked at on this system");
  const detail = `at most ${soft} at once (soft limit of this shell)`;
  if (soft === "unlimited" || Number(soft) >= OPEN_FILES_MIN) return reportOk(detail);
  return {
    status: "warn",
    detail,
    hint: "ulimit -n 65536 before svc serve, or use svc service, which asks for it",
  };
}

function checkAccount(): Promise<Finding> {
  if (Deno.uid() !== 0) return Promise.resolve(reportOk("not root"));
  return Promise.resolve({
    status: "warn",
    detail: "this is root, and agents that root starts may do everything",
    hint: "run it as an account of its own: svc service install makes one",
  });
}

async function readMode(path: string): Promise<number | null> {
  return Deno.build.os === "windows" ? null : (await Deno.stat(path).catch(() => null))?.mode ?? null;
}

async function closePermissions(path: string): Promise<string> {
  await Deno.chmod(path, ((await Deno.stat(path)).mode ?? 0o700) & 0o700);
  return `chmod go= ${path}`;
}

function formatError(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/ \(os error.*/s, "");
}
