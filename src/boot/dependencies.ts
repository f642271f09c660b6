import { finishRotation } from "../api/system/key_rotation.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { createLogger } from "../base/log.ts";
import { buildDataPaths, type DataPaths } from "../base/paths.ts";
import { ConfigError } from "../config/file.ts";
import { listSecretReferences } from "../config/secret_references.ts";
import type { LoadedConfig } from "../config/schema.ts";
import { findMachineTimeZone } from "../config/time_zone.ts";
import type { Connections } from "../http/server/connections.ts";
import { bindPort, buildConnectionLimits } from "../http/server/listener.ts";
import { answerAsStandby } from "../http/server/standby.ts";
import type { Platform } from "../platform/platform.ts";
import { SecretStore } from "../store/account/secret_store.ts";
import { setAddonDirectory } from "../store/db/addon.ts";
import { Database } from "../store/db/database.ts";
import { DatabaseOwner, STANDBY_STOP_GRACE_MAX_MS } from "./database_owner.ts";
import { DataMarker, getFilePath } from "./data_marker.ts";
import { ensureCredential, loadKey } from "./first_start.ts";
import { lockDataDirectory, openDataDirectory } from "./data_directory.ts";
import { feedWatchdog, tellManager } from "./notify.ts";
import type { BootResources } from "./services.ts";
import { createPlatforms } from "./platforms.ts";
import { checkShared, claimFiles, loadSharedKey } from "./shared_database.ts";
import { openPatiently, takeWhenFree } from "./standby.ts";
import { upgrade } from "./upgrade.ts";

const log = createLogger("server");

interface Replaced {
  clock?: Clock;
  /** Aborts the wait for the database. */
  standby?: AbortSignal;
  platforms?: readonly Platform[];
}

interface Resources {
  loaded: LoadedConfig;
  paths: DataPaths;
  clock: Clock;
  port: Deno.TcpListener;
}

/**
 * Takes the data directory, the port and the database, and upgrades the schema. With `standby` it waits for the database first. Throws
 * LockedError, ServiceError, ConfigError, StandbyEnded or an Error for the operator, after releasing everything.
 */
export async function openBootResources(
  loaded: LoadedConfig,
  { clock = systemClock, standby, platforms }: Replaced,
): Promise<BootResources> {
  const { config } = loaded;
  const timeZone = config.scheduler.time_zone || findMachineTimeZone(Deno.env.get("TZ"));
  if (standby !== undefined) checkStopGrace(config.limits.stop_grace);
  const root = await openDataDirectory(config.data_dir);
  const hasFilesDir = config.files_dir !== config.data_dir;
  const paths = buildDataPaths(
    root,
    hasFilesDir ? await openDataDirectory(config.files_dir, "files_dir") : root,
  );
  const lock = await lockDataDirectory(paths.lock, getFilePath(config.database.url));
  let port: Deno.TcpListener | null = null;
  try {
    // Bind before storing anything, so that a failed start creates no password (contract 8.17).
    port = bindPort(config.server);
    const hasReferences = listSecretReferences(config).some(({ user }) => user.startsWith("platform:")) ||
      Object.values(config.platforms).some((platform) =>
        platform.kind === "webhook" && platform.gateway !== ""
      );
    const created = hasReferences ? null : await createPlatforms(config, clock, platforms);
    const resources = { loaded, paths, clock, port };
    const opened = await (standby === undefined ? openDatabase(resources) : standBy(resources, standby));
    // Secrets are in the database.
    const secrets = new SecretStore({ db: opened.db, clock, key: () => opened.key });
    const all = created ?? await createPlatforms(config, clock, platforms, secrets).catch(async (error) => {
      await opened.owner?.release();
      await opened.db.close();
      throw error;
    });
    return { ...resources, lock, ...opened, platforms: all, timeZone };
  } catch (error) {
    try {
      port?.close();
    } catch {
      // The standby has already closed the port.
    }
    lock.close();
    throw error;
  }
}

type OpenedDatabase = Pick<BootResources, "db" | "key" | "operator" | "owner" | "taken">;

async function openDatabase({ loaded, paths, clock }: Resources): Promise<OpenedDatabase> {
  const { database, limits } = loaded.config;
  const marker = await DataMarker.read(paths, database.url);
  setAddonDirectory(paths.addon);
  const db = await Database.open(database.url, database.auth_token);
  const owner = db.remote
    ? await DatabaseOwner.open(db, ownerOptions(paths, clock, limits.stop_grace))
    : null;
  try {
    await owner?.take();
    return { ...await prepare({ loaded, paths, clock, db, owner, marker }), taken: null };
  } catch (error) {
    await owner?.release();
    throw error;
  }
}

/** Answers as a standby until the database has no owner, then opens it. Accepts connections all the time (contract 18). */
async function standBy(
  { loaded, paths, clock, port }: Resources,
  ended: AbortSignal,
): Promise<OpenedDatabase> {
  const { server, database, auth, limits } = loaded.config;
  const announced = { path: paths.serverFile, instance: crypto.randomUUID() };
  const taken = answerAsStandby(port, buildConnectionLimits(server), announced);
  let owner: DatabaseOwner | null = null;
  try {
    const marker = await DataMarker.read(paths, database.url);
    const db = await openPatiently(database.url, database.auth_token, { clock, ended });
    const check = () => checkShared(db, paths, auth.jwt_secret);
    await check();
    owner = await DatabaseOwner.open(db, ownerOptions(paths, clock, limits.stop_grace));
    log.info("Standing by: this server takes over when the owner of the database is gone");
    feedWatchdog();
    void tellManager("READY=1", "STATUS=standby: another server owns the database");
    await takeWhenFree(owner, { db, clock, ended, check });
    log.info("Taking over the database");
    return { ...await prepare({ loaded, paths, clock, db, owner, marker }), taken };
  } catch (error) {
    await owner?.release();
    await closeStandby(taken, paths);
    throw error;
  }
}

function ownerOptions(paths: DataPaths, clock: Clock, stopGraceMs: number) {
  return { idPath: paths.ownerId, clock, stopGraceMs };
}

// A standby may become the owner, and must then end its runs before the next takeover.
function checkStopGrace(stopGraceMs: number): void {
  if (stopGraceMs <= STANDBY_STOP_GRACE_MAX_MS) return;
  throw new ConfigError(
    `limits.stop_grace: must be at most ${
      STANDBY_STOP_GRACE_MAX_MS / 1_000
    }s with --standby, so that runs end ` +
      "before another service takes over",
  );
}

async function closeStandby(taken: Connections, paths: DataPaths): Promise<void> {
  await Deno.remove(paths.serverFile).catch(() => {});
  await taken.close(0);
}

interface TakenDatabase {
  loaded: LoadedConfig;
  paths: DataPaths;
  clock: Clock;
  db: Database;
  owner: DatabaseOwner | null;
  marker: DataMarker;
}

/** Checks and upgrades the database, and prepares key, files and credential. */
async function prepare(
  { loaded, paths, clock, db, owner, marker }: TakenDatabase,
): Promise<Omit<OpenedDatabase, "taken">> {
  const { jwt_secret: secret } = loaded.config.auth;
  await marker.check(db);
  if (db.remote) await checkShared(db, paths, secret);
  await upgrade(db, paths, clock);
  await owner?.fence();
  // Reports start early, because on a busy machine the rest of the start can take longer than a standby waits for one.
  owner?.start();
  await marker.write(db);
  if (db.remote) await claimFiles(db, paths);
  // After the fence no batch of an earlier process can commit, so the database says which key fits.
  if (secret === "") await finishRotation(db, paths);
  const key = db.remote ? await loadSharedKey(db, paths, secret) : await loadKey(secret, paths.secretKey);
  return { db, key, operator: await ensureCredential(db, loaded, clock), owner };
}
