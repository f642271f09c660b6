/** The plan of a service, which `svc service print` writes as a unit. */
export interface ServicePlan {
  /** The name of the service and of its directories and, on Linux, of its account. */
  name: string;
  scope: "system" | "user";
  program: string;
  config: string;
  dataDir: string;
  /** The account of the service. In the scope `user`, this is the installing user. */
  account: string;
  /** A file of `NAME=value` lines. It may be missing. */
  environmentFile: string;
  /** Whether the service starts as a standby (contract 18). */
  standby: boolean;
  /** The PATH of the service. "" keeps the PATH that the service manager sets. */
  path: string;
  /** Directories outside of the data directory that workers can write to. */
  writable: readonly string[];
}

const SYSTEM_PATH = {
  linux: ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"],
  darwin: ["/usr/local/bin", "/opt/homebrew/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"],
};

/**
 * Returns a PATH for a service: the absolute directories of a shell's PATH, then the system's directories. Most agents are installed in a
 * user's own directories, which the user's service manager does not have in its PATH.
 */
export function buildServicePath(shellPath: string, os: "linux" | "darwin"): string {
  // deno-lint-ignore no-control-regex
  const usable = shellPath.split(":").filter((folder) => /^\/[^\u0000-\u001f\u007f]*$/.test(folder));
  return [...new Set([...usable, ...SYSTEM_PATH[os]])].join(":");
}

const HOMES = /^\/(home|root|run\/user)(\/|$)/;

/** Builds the systemd unit of a plan. Decision 0042 explains which settings are missing on purpose. */
export function buildSystemdUnit(plan: ServicePlan): string {
  const system = plan.scope === "system";
  const serve = buildServeCommand(plan).map(quoteCommandWord);
  return `# Created by svc service. After a change of data_dir in ${plan.config}, run: svc service install
[Unit]
Description=svc: runs AI agents as workers
${system ? "Wants=network-online.target\nAfter=network-online.target\n" : ""}StartLimitIntervalSec=30s
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart=${serve.join(" ")}
${system ? `User=${plan.account}\n` : ""}WorkingDirectory=${escapePercent(plan.dataDir)}
Environment=${quoteListWord(`SVC_DATA_DIR=${plan.dataDir}`)}
${plan.path === "" ? "" : `Environment=${quoteListWord(`PATH=${plan.path}`)}\n`}EnvironmentFile=-${
    escapePercent(plan.environmentFile)
  }
${buildDirectories(plan)}UMask=0077

# A restart does not fix an invalid configuration (2) or a data directory in use (5).
Restart=on-failure
RestartSec=2s
RestartPreventExitStatus=2 5
WatchdogSec=2min
# A start may back up and upgrade a large database first; a stop lets runs finish (shutdown_grace).
TimeoutStartSec=15min
TimeoutStopSec=2min
# The server ends its agents in order. systemd kills the rest.
KillMode=mixed
# Out of memory, the kernel kills an agent and not the whole service.
OOMPolicy=continue
LimitCORE=0
LimitNOFILE=65536
TasksMax=8192
NoNewPrivileges=yes
${system ? buildHardening(plan) : ""}
[Install]
WantedBy=${system ? "multi-user.target" : "default.target"}
`;
}

function buildServeCommand({ program, config, standby }: ServicePlan): string[] {
  return [program, "serve", "-c", config, ...(standby ? ["--standby"] : [])];
}

function buildDirectories(plan: ServicePlan): string {
  if (plan.scope === "user") return "";
  const isDefault = plan.dataDir === `/var/lib/${plan.name}`;
  const outside = [...plan.writable, ...(isDefault ? [] : [plan.dataDir])];
  const inHomes = outside.filter((path) => HOMES.test(path));
  const elsewhere = outside.filter((path) => !HOMES.test(path));
  return (isDefault ? `StateDirectory=${plan.name}\nStateDirectoryMode=0700\n` : "") +
    (inHomes.length === 0 ? "" : `BindPaths=${inHomes.map(quoteListWord).join(" ")}\n`) +
    (elsewhere.length === 0 ? "" : `ReadWritePaths=${elsewhere.map(quoteListWord).join(" ")}\n`);
}

function buildHardening(plan: ServicePlan): string {
  const homes = [plan.dataDir, ...plan.writable].some((path) => HOMES.test(path));
  return `
# Omitted, since V8 compiles at run time: MemoryDenyWriteExecute. Omitted, since runs could not have a separate pid
# namespace or a box: ProtectKernelTunables, ProtectKernelLogs, ProtectHostname, RestrictNamespaces=yes.
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=${homes ? "tmpfs" : "yes"}
PrivateTmp=yes
PrivateDevices=yes
PrivateMounts=yes
PrivateUsers=yes
DevicePolicy=closed
ProtectClock=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
ProtectProc=invisible
RestrictNamespaces=user pid mnt net ipc uts cgroup
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
KeyringMode=private
SystemCallArchitectures=native
SystemCallFilter=@system-service @mount
SystemCallErrorNumber=EPERM
`;
}

/** Quotes one value of a setting that has a list. `%` starts a specifier in a unit. */
function quoteListWord(text: string): string {
  const plain = escapePercent(text);
  return /^[\w@/.:=,+%$-]+$/.test(plain)
    ? plain
    : `"${plain.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

/** Quotes a word of a command line, where `$` starts a variable, too. */
function quoteCommandWord(text: string): string {
  return quoteListWord(text.replaceAll("$", "$$$$"));
}

function escapePercent(path: string): string {
  return path.replaceAll("%", "%%");
}

/** Builds the launchd property list of a plan. launchd has no environment file. */
export function buildLaunchdPlist(plan: ServicePlan): string {
  const serve = buildServeCommand(plan);
  const account = plan.scope === "system"
    ? `  <key>UserName</key><string>${escapeXml(plan.account)}</string>\n`
    : "";
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>${escapeXml(plan.name)}</string>
  <key>ProgramArguments</key>
  <array>
${serve.map((word) => `    <string>${escapeXml(word)}</string>`).join("\n")}
  </array>
${account}  <key>WorkingDirectory</key><string>${escapeXml(plan.dataDir)}</string>
  <key>EnvironmentVariables</key>
  <dict>
    <key>SVC_DATA_DIR</key><string>${escapeXml(plan.dataDir)}</string>
    <key>PATH</key><string>${escapeXml(plan.path || buildServicePath("", "darwin"))}</string>
  </dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>ThrottleInterval</key><integer>10</integer>
  <key>ExitTimeOut</key><integer>120</integer>
  <key>Umask</key><integer>63</integer>
  <key>StandardErrorPath</key><string>${escapeXml(`${plan.dataDir}/svc.err.log`)}</string>
</dict>
</plist>
`;
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
