import { Authority } from "../api/call/authority.ts";
import { LoginLimits } from "../api/call/login_limit.ts";
import type { Deps } from "../api/call/services.ts";
import type { Dependencies } from "../api/operations.ts";
import type { Platforms } from "../api/call/platforms.ts";
import { RunLimits } from "../api/call/run_limit.ts";
import { createSignIn } from "../api/account/sign_in.ts";
import type { Wakeups } from "../base/wakeups.ts";
import type { Clock } from "../base/clock.ts";
import { HumanWaits } from "../base/human_waits.ts";
import type { DataPaths } from "../base/paths.ts";
import { RecentActivity } from "../base/recent_activity.ts";
import { listSecretReferences } from "../config/secret_references.ts";
import type { LoadedConfig } from "../config/schema.ts";
import type { Connections } from "../http/server/connections.ts";
import { SecretStore } from "../store/account/secret_store.ts";
import type { Database } from "../store/db/database.ts";
import { DatabaseWatch } from "../store/db/database_watch.ts";
import { createConfiguration } from "./configuration.ts";
import { getFilePath } from "./data_marker.ts";
import type { DatabaseOwner } from "./database_owner.ts";
import type { Operator } from "./first_start.ts";
import type { DataLock } from "./data_directory.ts";
import { Gateways } from "../api/call/gateways.ts";
import { buildGateway } from "../domain/workers/gateway.ts";
import { Mirrors } from "../files/git/mirror.ts";
import type { Telemetry } from "../pipeline/telemetry/telemetry.ts";
import { SkillStore } from "../files/skills.ts";
import { GatewayKeys } from "../engine/gateway_keys.ts";
import { describeTools } from "../http/app.ts";
import { createCatalog } from "./host_limits.ts";

export interface BootResources {
  loaded: LoadedConfig;
  paths: DataPaths;
  db: Database;
  key: Uint8Array;
  operator: Operator;
  clock: Clock;
  /** The default time zone of schedules. */
  timeZone: string;
  lock: DataLock;
  /** The ownership of a database on a libSQL server, or null for a local database. */
  owner: DatabaseOwner | null;
  /** The bound port, which does not accept connections yet. */
  port: Deno.TcpListener;
  /** The platforms, which are not connected yet. */
  platforms: Platforms;
  /** The connections that the standby accepted, or null. */
  taken: Connections | null;
}

interface Process {
  wakeups: Wakeups;
  /** File mode mask of the programs that are started. */
  umask: number;
  memoryBytes: number | undefined;
  telemetry: Telemetry | null;
  stopping: AbortSignal;
}

/** Builds the dependencies of the operations. `running` comes from the server and its stages. */
export function buildDependencies(
  { loaded, paths, db, key, operator, clock, owner, platforms, timeZone }: BootResources,
  { wakeups, umask, memoryBytes, telemetry, stopping }: Process,
  running: Deps<"stages" | "interruptRun" | "interruptRouting" | "remote">,
  listensAt: () => string,
): Dependencies {
  const { auth, bee, engines, isolation, limits, server: network, retention, notices, push, database } =
    loaded.config;
  const { username: name, version } = operator.credential;
  const file = getFilePath(database.url);
  const authority = new Authority({
    key,
    instance: crypto.randomUUID(),
    operator: { id: operator.id, name, version },
    db,
    clock,
  });
  const secrets = new SecretStore({ db, clock, key: () => authority.key });
  const gateways = Object.entries(loaded.config.gateways).map(([name, one]) => buildGateway(name, one));
  const keys = new GatewayKeys();
  const kinds = Object.fromEntries(gateways.map(({ name, kind }) => [name, kind]));
  const catalog = createCatalog(engines, {
    ...{ umask, stopGraceMs: limits.stop_grace, memoryBytes, gateways: kinds, gatewayKeys: keys },
    describeTools,
  });
  return {
    db,
    clock,
    wakeups,
    paths,
    engines: catalog,
    authority,
    gateways: new Gateways({
      ...{ db, clock, wakeups, authority, keys, gateways, timeZone },
      readSecret: (name) => secrets.read(name),
      engines: catalog,
      calls: telemetry?.calls ?? null,
    }),
    launchers: loaded.config.launchers,
    countDroppedSpans: telemetry?.countDropped ?? null,
    signIn: createSignIn({
      oidc: auth.oidc,
      key: () => authority.key,
      clock,
      operatorId: operator.id,
      publicUrl: network.public_url,
      listensAt,
    }),
    platforms,
    secrets,
    mirrors: new Mirrors(),
    skills: new SkillStore(paths),
    secretReferences: listSecretReferences(loaded.config),
    runLimits: new RunLimits(db, clock),
    loginLimits: new LoginLimits(db, clock),
    waits: new HumanWaits(clock),
    steps: new RecentActivity(),
    lifecycle: { state: "starting", startedAt: clock.now(), stopping },
    auth,
    limits,
    bee,
    network,
    retention,
    notices,
    searches: loaded.config.search,
    push,
    isolation: { config: isolation, configPath: loaded.path, databaseUrl: database.url },
    configuration: createConfiguration(loaded),
    timeZone,
    passwordSource: auth.password_hash !== ""
      ? "config"
      : loaded.password !== ""
      ? "environment"
      : "operator",
    owner,
    watch: file === null ? null : new DatabaseWatch(db, file, clock),
    ...running,
  };
}
