/** How svc runs as a service: what `svc service print` writes down. */
export interface ServicePlan {
  /** Name of the service, its directories and, on Linux, its account. */
  name: string;
  scope: "system" | "user";
  /** Absolute path of the executable. */
  program: string;
  config: string;
  dataDir: string;
  /** The account that it runs as; in scope `user` whoever installs it. */
  account: string;
  /** `NAME=value` lines for it and its engines; need not exist. */
  environmentFile: string;
  /** Whether it waits while another machine serves (contract 18). */
  standby: boolean;
  /** Directories beside the data directory in which workers may write. */
  writable: readonly string[];
}

const HOMES = /^\/(home|root|run\/user)(\/|$)/;

/** The systemd unit of a plan (decision 0018, which also says what is missing on purpose). */
export function systemdUnit(plan: ServicePlan): string {
  const system = plan.scope === "system";
  const serve = serveOf(plan).map(commandWord);
  return `# Made by svc service. After a change of data_dir in ${plan.config}: svc service install, again.
[Unit]
Description=svc: AI worker agents, messages in, tasks out, replies back
${system ? "Wants=network-online.target\nAfter=network-online.target\n" : ""}StartLimitIntervalSec=30s
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart=${serve.join(" ")}
${system ? `User=${plan.account}\n` : ""}WorkingDirectory=${wholeLine(plan.dataDir)}
Environment=${listWord(`SVC_DATA_DIR=${plan.dataDir}`)}
EnvironmentFile=-${wholeLine(plan.environmentFile)}
${directories(plan)}UMask=0077

# A wrong configuration (2) or a data directory in use (5) does not get better by trying again.
Restart=on-failure
RestartSec=2s
RestartPreventExitStatus=2 5
WatchdogSec=2min
# A start may back up and upgrade a large database first; a stop lets runs finish (shutdown_grace).
TimeoutStartSec=15min
TimeoutStopSec=2min
# The server ends its agents itself and in order; what it leaves is killed.
KillMode=mixed
# An agent that takes too much memory is killed alone.
OOMPolicy=continue
LimitCORE=0
LimitNOFILE=65536
TasksMax=8192
NoNewPrivileges=yes
${system ? systemHardening(plan) : ""}
[Install]
WantedBy=${system ? "multi-user.target" : "default.target"}
`;
}

function serveOf({ program, config, standby }: ServicePlan): string[] {
  return [program, "serve", "-c", config, ...(standby ? ["--standby"] : [])];
}

function directories(plan: ServicePlan): string {
  if (plan.scope === "user") return "";
  const isDefault = plan.dataDir === `/var/lib/${plan.name}`;
  const outside = [...plan.writable, ...(isDefault ? [] : [plan.dataDir])];
  const inHomes = outside.filter((path) => HOMES.test(path));
  const elsewhere = outside.filter((path) => !HOMES.test(path));
  return (isDefault ? `StateDirectory=${plan.name}\nStateDirectoryMode=0700\n` : "") +
    (inHomes.length === 0 ? "" : `BindPaths=${inHomes.map(listWord).join(" ")}\n`) +
    (elsewhere.length === 0 ? "" : `ReadWritePaths=${elsewhere.map(listWord).join(" ")}\n`);
}

function systemHardening(plan: ServicePlan): string {
  const homes = [plan.dataDir, ...plan.writable].some((path) => HOMES.test(path));
  return `
# Not here, because V8 compiles as it runs: MemoryDenyWriteExecute. Not here, because with them no run gets a pid
# namespace of its own: ProtectKernelTunables, ProtectKernelLogs, ProtectHostname, RestrictNamespaces=yes.
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=${homes ? "tmpfs" : "yes"}
PrivateTmp=yes
PrivateDevices=yes
DevicePolicy=closed
ProtectClock=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
ProtectProc=invisible
RestrictNamespaces=user pid mnt
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

/** One word of a list, quoted where it has to be; `%` begins a specifier everywhere in a unit. */
function listWord(text: string): string {
  const plain = wholeLine(text);
  return /^[\w@/.:=,+%$-]+$/.test(plain)
    ? plain
    : `"${plain.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

/** One word of a command line, where `$` begins a variable too. */
function commandWord(text: string): string {
  return listWord(text.replaceAll("$", "$$$$"));
}

function wholeLine(path: string): string {
  return path.replaceAll("%", "%%");
}

/** The launchd property list of a plan. launchd has no file of variables: they go into EnvironmentVariables. */
export function launchdPlist(plan: ServicePlan): string {
  const serve = serveOf(plan);
  const account = plan.scope === "system"
    ? `  <key>UserName</key><string>${xml(plan.account)}</string>\n`
    : "";
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>${xml(plan.name)}</string>
  <key>ProgramArguments</key>
  <array>
${serve.map((word) => `    <string>${xml(word)}</string>`).join("\n")}
  </array>
${account}  <key>WorkingDirectory</key><string>${xml(plan.dataDir)}</string>
  <key>EnvironmentVariables</key>
  <dict>
    <key>SVC_DATA_DIR</key><string>${xml(plan.dataDir)}</string>
    <key>PATH</key><string>/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin</string>
  </dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>ThrottleInterval</key><integer>10</integer>
  <key>ExitTimeOut</key><integer>120</integer>
  <key>Umask</key><integer>63</integer>
  <key>StandardErrorPath</key><string>${xml(`${plan.dataDir}/svc.err.log`)}</string>
</dict>
</plist>
`;
}

function xml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
