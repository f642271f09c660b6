// Dovecot and Postfix on loopback, as children of the test, with all files in one directory.
import { join } from "node:path";
import { createTempDir, endProcess } from "../../harness/service/process.ts";
import { findFreePort } from "../../harness/service/port.ts";
import { waitUntil } from "../../harness/wait.ts";

const DOVECOT = "/usr/sbin/dovecot";
const POSTFIX = "/usr/sbin/postfix";
const POSTFIX_MASTER = "/usr/lib/postfix/sbin/master";

/** Says what is missing to run the servers, or "". Tests of mail are skipped without them. */
export const MAIL_SERVERS_MISSING = [
  ...[DOVECOT, POSTFIX].filter((path) => !isFile(path)),
  ...(Deno.uid() === 0 ? [] : ["root, which Postfix needs"]),
].join(", ");
if (MAIL_SERVERS_MISSING !== "") console.log(`skipped: tests of mail need ${MAIL_SERVERS_MISSING}`);

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

export const BOT = "svc@agents.test";
export const PASSWORD = "mail-secret-1";
/** The server that checks mail, as it names itself. */
export const MX = "mx.agents.test";
const PEOPLE = [
  "svc@agents.test",
  "ada@people.test",
  "bob@people.test",
  "ann@news.people.test",
  "eve@other.test",
];
/** Each test has its own mailboxes, such as ada3@people.test. */
const MAILBOXES_MAX = 40;
/** Owner of all mailboxes: the user without rights of Debian. */
const OWNER = 65534;

/** Port of Postfix by the result of its checks: the sender is genuine, is not, or is not checked. */
export type Check = "pass" | "fail" | "none";

export class MailServers implements AsyncDisposable {
  readonly dir: string;
  readonly ports: Record<Check | "imap" | "imaps" | "submission" | "submissions", number>;
  readonly #folder: AsyncDisposable;
  #dovecot: Deno.ChildProcess | null = null;
  #postfix: Deno.ChildProcess | null = null;
  /** Replaces the capabilities that Dovecot names. */
  capabilities = "";

  private constructor(folder: { path: string } & AsyncDisposable) {
    this.dir = folder.path;
    this.#folder = folder;
    const ports = new Set<number>();
    while (ports.size < 7) ports.add(findFreePort());
    const [pass = 0, fail = 0, none = 0, imap = 0, imaps = 0, submission = 0, submissions = 0] = ports;
    this.ports = { pass, fail, none, imap, imaps, submission, submissions };
  }

  static async start(): Promise<MailServers> {
    const servers = new MailServers(await createTempDir());
    await servers.#prepare();
    await Promise.all([servers.startDovecot(), servers.startPostfix()]);
    return servers;
  }

  /** Settings of the platform. */
  get config() {
    const login = { host: "127.0.0.1", tls: "none", user: BOT, password: PASSWORD };
    return {
      kind: "email",
      address: BOT,
      trusted_authserv: MX,
      imap: { ...login, port: this.ports.imap },
      smtp: { ...login, port: this.ports.submission },
    };
  }

  /** The certificate that signs the servers' certificate. */
  get authority(): string {
    return join(this.dir, "ca.pem");
  }

  async #prepare(): Promise<void> {
    await Deno.chmod(this.dir, 0o755);
    for (const name of ["mail", "dovecot", "postfix", "queue", "data"]) {
      await Deno.mkdir(join(this.dir, name));
    }
    await Deno.chown(join(this.dir, "mail"), OWNER, OWNER);
    await run("chown", "postfix", join(this.dir, "data"));
    await createCertificate(this.dir);
    const { dir } = this;
    const write = (name: string, text: string) => Deno.writeTextFile(join(dir, name), text);
    await write(
      "boxes",
      listAddresses().map((one) => `${one} ${one.split("@").toReversed().join("/")}/Maildir/\n`).join(""),
    );
    await write(
      "pass",
      `/^([^@]*@)?(.+)$/ PREPEND Authentication-Results: ${MX}; dmarc=pass header.from=$2\n`,
    );
    await write(
      "fail",
      `/^([^@]*@)?(.+)$/ PREPEND Authentication-Results: ${MX}; dmarc=fail header.from=$2; spf=softfail smtp.mailfrom=$2\n`,
    );
    // A server removes what a sender writes in its name (RFC 8601, 5).
    await write("strict", `/^Authentication-Results: *${MX}/ IGNORE\n`);
    await write("postfix/main.cf", formatMain(dir));
    await write("postfix/master.cf", formatMaster(dir, this.ports));
  }

  async startDovecot(): Promise<void> {
    const path = join(this.dir, "dovecot/dovecot.conf");
    await Deno.writeTextFile(path, formatDovecot(this.dir, this.ports, this.capabilities));
    this.#dovecot = spawn(DOVECOT, "-F", "-c", path);
    await waitForPort(this.ports.imap);
  }

  async startPostfix(): Promise<void> {
    const config = join(this.dir, "postfix");
    // `postfix start-fg` would leave its child when it ends.
    await run(POSTFIX, "-c", config, "check");
    this.#postfix = spawn(POSTFIX_MASTER, "-c", config, "-s");
    await waitForPort(this.ports.submission);
  }

  async stopDovecot(): Promise<void> {
    if (this.#dovecot !== null) await endProcess(this.#dovecot, "SIGTERM");
    this.#dovecot = null;
  }

  async stopPostfix(): Promise<void> {
    if (this.#postfix !== null) await endProcess(this.#postfix, "SIGTERM");
    this.#postfix = null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Processes of Postfix keep connections to Dovecot, which waits for them.
    await this.stopPostfix();
    await this.stopDovecot();
    await this.#folder[Symbol.asyncDispose]();
  }
}

function spawn(program: string, ...args: string[]): Deno.ChildProcess {
  return new Deno.Command(program, { args, stdin: "null", stdout: "null", stderr: "null" }).spawn();
}

function listAddresses(): string[] {
  return Array.from({ length: MAILBOXES_MAX }, (_, at) => PEOPLE.map((one) => one.replace("@", `${at + 1}@`)))
    .flat();
}

async function run(program: string, ...args: string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command(program, { args, stdin: "null" }).output();
  if (!success) throw new Error(`${program} ${args.join(" ")}: ${new TextDecoder().decode(stderr)}`);
}

async function waitForPort(port: number): Promise<void> {
  await waitUntil(`port ${port} answers`, async () => {
    try {
      using _connection = await Deno.connect({ hostname: "127.0.0.1", port });
      return true;
    } catch {
      return false;
    }
  });
}

async function createCertificate(dir: string): Promise<void> {
  const path = (name: string) => join(dir, name);
  const openssl = (...args: string[]) => run("openssl", ...args);
  const key = (
    name: string,
  ) => ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path(name)];
  await openssl(
    "req",
    "-x509",
    ...key("ca.key"),
    "-out",
    path("ca.pem"),
    "-subj",
    "/CN=Test authority",
    "-days",
    "2",
  );
  await openssl("req", ...key("tls.key"), "-out", path("tls.csr"), "-subj", "/CN=localhost");
  await Deno.writeTextFile(path("tls.ext"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
  await openssl(
    "x509",
    "-req",
    "-in",
    path("tls.csr"),
    "-CA",
    path("ca.pem"),
    "-CAkey",
    path("ca.key"),
    "-CAcreateserial",
    "-out",
    path("tls.pem"),
    "-extfile",
    path("tls.ext"),
    "-days",
    "2",
  );
}

function formatMain(dir: string): string {
  return `compatibility_level = 3.6
queue_directory = ${dir}/queue
data_directory = ${dir}/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
meta_directory = /etc/postfix
shlib_directory = /usr/lib/postfix
mail_owner = postfix
setgid_group = postdrop
maillog_file = ${dir}/postfix.log
maillog_file_prefixes = ${dir}
inet_interfaces = loopback-only
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
myhostname = ${MX}
mydestination =
relay_domains =
local_recipient_maps =
alias_maps =
alias_database =
virtual_mailbox_domains = ${[...new Set(PEOPLE.map((one) => one.replace(/^.*@/, "")))].join(", ")}
virtual_mailbox_base = ${dir}/mail
virtual_mailbox_maps = texthash:${dir}/boxes
virtual_uid_maps = static:${OWNER}
virtual_gid_maps = static:${OWNER}
virtual_mailbox_limit = 0
message_size_limit = 60000000
smtpd_sasl_type = dovecot
smtpd_sasl_path = ${dir}/dovecot/auth
smtpd_tls_cert_file = ${dir}/tls.pem
smtpd_tls_key_file = ${dir}/tls.key
smtpd_helo_restrictions =
smtpd_peername_lookup = no
header_size_limit = 4000000
`;
}

function formatMaster(dir: string, ports: MailServers["ports"]): string {
  const take = (port: number, options: string[]) =>
    [`127.0.0.1:${port} inet n - n - - smtpd`, ...options.map((option) => `  -o ${option}`)].join("\n");
  const checked = (check: Check) =>
    take(ports[check], [`{ smtpd_sender_restrictions = check_sender_access regexp:${dir}/${check} }`]);
  const login = [
    "smtpd_sasl_auth_enable=yes",
    "smtpd_recipient_restrictions=permit_sasl_authenticated,reject",
  ];
  return `${checked("pass")}
${checked("fail")}
${take(ports.none, ["cleanup_service_name=strict"])}
${take(ports.submission, ["smtpd_tls_security_level=may", ...login])}
${take(ports.submissions, ["smtpd_tls_wrappermode=yes", ...login])}
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
strict unix n - n - 0 cleanup
  -o { header_checks = regexp:${dir}/strict }
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
`;
}

function formatDovecot(dir: string, ports: MailServers["ports"], capabilities: string): string {
  return `protocols = imap
listen = 127.0.0.1
base_dir = ${dir}/dovecot/run
state_dir = ${dir}/dovecot/state
log_path = ${dir}/dovecot/log
ssl = yes
ssl_cert = <${dir}/tls.pem
ssl_key = <${dir}/tls.key
disable_plaintext_auth = no
mail_location = maildir:${dir}/mail/%d/%n/Maildir
first_valid_uid = ${OWNER}
first_valid_gid = ${OWNER}
${capabilities === "" ? "" : `protocol imap {\n  imap_capability = ${capabilities}\n}`}
passdb {
  driver = static
  args = password=${PASSWORD}
}
userdb {
  driver = static
  args = uid=${OWNER} gid=${OWNER} home=${dir}/mail/%d/%n
}
namespace inbox {
  inbox = yes
  mailbox Sent {
    special_use = \\Sent
    auto = create
  }
}
shutdown_clients = yes
service imap-login {
  chroot =
  inet_listener imap {
    port = ${ports.imap}
  }
  inet_listener imaps {
    port = ${ports.imaps}
  }
}
service anvil {
  chroot =
}
service auth {
  unix_listener ${dir}/dovecot/auth {
    mode = 0666
  }
}
`;
}
