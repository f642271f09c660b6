import { findCheckedAddresses, RefusedAddressError } from "../../base/address.ts";
import { resolveBox } from "../../domain/workers/isolation.ts";
import type { Check } from "../../domain/system/system.ts";
import { detectIsolation } from "../../engine/process/isolation.ts";
import { findDelegatedGroup } from "../../engine/process/box_group.ts";
import { findBoxFault } from "../../engine/process/box_fault.ts";
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
  const limits =
    boxed.some(({ box }) => box?.memory ?? box?.pids ?? box?.cpu) && findDelegatedGroup() === null
      ? "; memory, pids and cpu of boxes do not count, because no control group is delegated to the service"
      : "";
  const shared = boxed.filter(({ box }) => (box?.network ?? config.box.network) === "host");
  const host = URL.parse(databaseUrl)?.hostname.replace(/^\[(.*)\]$/, "$1") ?? "";
  if (shared.length > 0 && host !== "" && await isPrivateHost(host)) {
    return {
      status: "warn",
      detail: `${
        formatNames(shared)
      } are in no box: with network: host, their runs reach the database at ${host}`,
      hint: "Name the hosts that they need, or set network: none",
    };
  }
  const network = shared.length === 0
    ? ""
    : `; ${
      formatNames(shared)
    } share the machine's network, its abstract sockets and what listens on localhost`;
  const words =
    `a pid namespace per run, under the service's own user; workers in a box: ${boxed.length}${network}${limits}`;
  const open = workers.filter(({ isFull, box }) => isFull && box === null);
  if (open.length === 0) return { status: "ok", detail: words, hint: "" };
  return {
    status: "warn",
    detail: `${words}; ${formatNames(open)} have an engine with permissions: full and no box`,
    hint: "Give them a box: svc ctl worker update <id> --isolation box",
  };
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
