import { findCheckedAddresses, RefusedAddressError } from "../../base/address.ts";
import { resolveBox, resolveNetwork } from "../../domain/workers/isolation.ts";
import type { Check } from "../../domain/system/system.ts";
import { detectIsolation } from "../../engine/process/isolation.ts";
import { findBoxFault } from "../../engine/process/box.ts";
import { listWorkerIsolations } from "../../store/workers/worker.ts";
import type { Deps } from "../call/services.ts";

type Finding = Omit<Check, "name">;

const NAMES_SHOWN_MAX = 5;
const NAME_WAIT_MS = 2_000;

/** Examines how runs are isolated: what the machine allows, and which workers have every permission outside a box. */
export async function checkIsolation(
  { db, engines, isolation: { config, databaseUrl } }: Deps<"db" | "engines" | "isolation">,
): Promise<Finding> {
  const workers = (await listWorkerIsolations(db)).map(({ name, engine, isolation }) => ({
    name,
    isFull: engines.find(engine)?.config.permissions === "full",
    box: resolveBox(isolation, config),
  }));
  const boxed = workers.filter(({ box }) => box !== null);
  const fault = config.default === "box" || boxed.length > 0 ? await findBoxFault(config) : null;
  if (fault !== null) {
    return {
      status: "fail",
      detail: `${formatNames(boxed)} cannot run: no box can be set up here: ${fault}`,
      hint: "Without a box these workers do not run. See docs/how-to/isolate-agents.md.",
    };
  }
  if (await detectIsolation() !== "namespace") {
    return {
      status: "warn",
      detail: "a process group per run: a program that clears its environment can outlive its run",
      hint:
        "Allow user and pid namespaces (docs/explanation/security.md), or run the service in a separate container.",
    };
  }
  const onHost = boxed.filter(({ box }) => box !== null && resolveNetwork(box, config, []) === "host");
  const shared = onHost.length === 0 ? null : await describeSharedNetwork(formatNames(onHost), databaseUrl);
  if (shared !== null) return shared;
  const words = `a pid namespace per run, under the service's own user; workers in a box: ${boxed.length}`;
  const open = workers.filter(({ isFull, box }) => isFull && box === null);
  if (open.length === 0) return { status: "ok", detail: words, hint: "" };
  return {
    status: "warn",
    detail: `${words}; ${formatNames(open)} have an engine with permissions: full and no box`,
    hint: "Give them a box: svc ctl worker update <id> --isolation box",
  };
}

/** A box on the machine's network reaches abstract sockets, services on loopback, and a database on a private address. */
async function describeSharedNetwork(names: string, databaseUrl: string): Promise<Finding> {
  const host = URL.parse(databaseUrl)?.hostname.replace(/^\[(.*)\]$/, "$1") ?? "";
  const detail = host !== "" && await isPrivateHost(host)
    ? `${names} have isolation.box.network: host, which is no box here: their runs reach the database at ${host}`
    : `${names} have isolation.box.network: host: their runs reach the machine's abstract sockets and the services ` +
      "on its loopback";
  return { status: "warn", detail, hint: "Name the hosts that they need, or set network: none" };
}

async function isPrivateHost(host: string): Promise<boolean> {
  try {
    await findCheckedAddresses(host, { timeoutMs: NAME_WAIT_MS });
    return false;
  } catch (error) {
    return error instanceof RefusedAddressError;
  }
}

function formatNames(workers: readonly { name: string }[]): string {
  if (workers.length === 0) return "the workers of isolation.default";
  const shown = workers.slice(0, NAMES_SHOWN_MAX).map(({ name }) => name).join(", ");
  const more = workers.length - NAMES_SHOWN_MAX;
  return more > 0 ? `${shown} and ${more} more` : shown;
}
