import { join } from "node:path";
import { createTempDir } from "../harness/service/process.ts";
import { waitUntil } from "../harness/wait.ts";

const PROGRAMS = ["sbatch", "squeue", "scancel", "scontrol", "sinfo", "slurmctld", "slurmd", "munged"];
const START_MAX_MS = 60_000;
const END_MAX_MS = 10_000;

/** The programs of Slurm that this machine lacks. */
export const MISSING: readonly string[] = (await Promise.all(PROGRAMS.map(async (name) => {
  const { success } = await new Deno.Command("sh", { args: ["-c", `command -v ${name}`], stdout: "null" })
    .output();
  return success ? [] : [name];
}))).flat();

/** A real Slurm with one node of 2 processors and 20 places on loopback. Starts as root in a temporary directory, and ends with its jobs. */
export class SlurmCluster implements AsyncDisposable {
  readonly folder: string;
  readonly #daemons: Deno.ChildProcess[] = [];
  readonly #remove: () => PromiseLike<void>;

  private constructor(folder: string, remove: () => PromiseLike<void>) {
    this.folder = folder;
    this.#remove = remove;
  }

  static async start(cpus: number): Promise<SlurmCluster> {
    const temp = await createTempDir();
    const cluster = new SlurmCluster(temp.path, () => temp[Symbol.asyncDispose]());
    try {
      await cluster.#start(cpus);
    } catch (error) {
      const log = await Deno.readTextFile(join(temp.path, "ctld.log")).catch(() => "");
      await cluster[Symbol.asyncDispose]();
      throw new Error(
        `Slurm does not start: ${error instanceof Error ? error.message : error}\n${log.slice(-2_000)}`,
      );
    }
    return cluster;
  }

  get env(): { SLURM_CONF: string } {
    return { SLURM_CONF: join(this.folder, "slurm.conf") };
  }

  /** Runs a program of Slurm. Returns its output, or throws. */
  async call(program: string, ...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await new Deno.Command(program, { args, env: this.env, stdin: "null" })
      .output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    if (code !== 0) throw new Error(`${program} ${args.join(" ")} exits with ${code}: ${text(stderr)}`);
    return text(stdout).trim();
  }

  /** Lists the jobs in the queue, each as `<name> <state> <reason>`. */
  async jobs(): Promise<string[]> {
    const text = await this.call("squeue", "-h", "-o", "%j %T %r");
    return text.split("\n").filter((line) => line !== "");
  }

  async #start(cpus: number): Promise<void> {
    const { folder } = this;
    await Deno.chmod(folder, 0o755);
    await Deno.mkdir(join(folder, "munge"), { mode: 0o700 });
    for (const name of ["run", "ctld", "d"]) await Deno.mkdir(join(folder, name), { mode: 0o755 });
    await Deno.writeFile(join(folder, "munge/key"), crypto.getRandomValues(new Uint8Array(128)), {
      mode: 0o600,
    });
    const node = await this.call("hostname", "-s");
    await Deno.writeTextFile(
      join(folder, "slurm.conf"),
      formatConfig(folder, { node, cpus, ports: findPorts() }),
    );
    const socket = join(folder, "run/munge.sock");
    const at = (option: string, name: string) => `--${option}=${join(folder, name)}`;
    this.#spawn("munged", [
      ...["--foreground", `--socket=${socket}`, "--num-threads=2", at("key-file", "munge/key")],
      ...[at("pid-file", "run/munged.pid"), at("log-file", "munge/log"), at("seed-file", "munge/seed")],
    ]);
    await waitUntil("munged", () => exists(socket), START_MAX_MS);
    this.#spawn("slurmctld", ["-D"]);
    this.#spawn("slurmd", ["-D"]);
    const isIdle = () => this.call("sinfo", "-h", "-o", "%T").then((state) => state === "idle", () => false);
    await waitUntil("an idle node", isIdle, START_MAX_MS);
  }

  #spawn(program: string, args: string[]): void {
    const command = new Deno.Command(program, {
      args,
      env: this.env,
      stdin: "null",
      stdout: "null",
      stderr: "null",
    });
    this.#daemons.push(command.spawn());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The end of slurmd ends no job.
    await this.call("scancel", "--state=PENDING", "--user=root").catch(() => {});
    await this.call("scancel", "--user=root").catch(() => {});
    await waitUntil("the end of the jobs", async () => (await this.jobs()).length === 0, END_MAX_MS).catch(
      () => {},
    );
    for (const daemon of this.#daemons.reverse()) await endDaemon(daemon);
    await this.#remove();
  }
}

async function endDaemon(daemon: Deno.ChildProcess): Promise<void> {
  const send = (signal: Deno.Signal) => {
    try {
      daemon.kill(signal);
    } catch {
      // The daemon has ended.
    }
  };
  send("SIGTERM");
  const timer = setTimeout(() => send("SIGKILL"), END_MAX_MS);
  await daemon.status;
  clearTimeout(timer);
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

function findPorts(): [number, number] {
  const listeners = [0, 0].map(() => Deno.listen({ hostname: "127.0.0.1", port: 0 }));
  const [one = 0, other = 0] = listeners.map(({ addr }) => (addr as Deno.NetAddr).port);
  for (const listener of listeners) listener.close();
  return [one, other];
}

function formatConfig(
  folder: string,
  { node, cpus, ports: [controller, daemon] }: { node: string; cpus: number; ports: [number, number] },
): string {
  return `ClusterName=one
SlurmctldHost=${node}(127.0.0.1)
SlurmctldPort=${controller}
SlurmdPort=${daemon}
AuthType=auth/munge
AuthInfo=socket=${folder}/run/munge.sock
CryptoType=crypto/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=${folder}/ctld
SlurmdSpoolDir=${folder}/d
SlurmctldPidFile=${folder}/run/slurmctld.pid
SlurmdPidFile=${folder}/run/slurmd.pid
SlurmctldLogFile=${folder}/ctld.log
SlurmdLogFile=${folder}/d.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=10000
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
InactiveLimit=0
KillWait=5
MinJobAge=300
NodeName=${node} NodeAddr=127.0.0.1 CPUs=${cpus} RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=${node} Default=YES MaxTime=INFINITE State=UP
`;
}
