import { invalid } from "../../domain/call/error.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { checkMaySet } from "../work/task_commands.ts";

/** Throws `forbidden` for a caller who cannot set the gateways of a worker, as all runs, and `invalid_request` for an unknown gateway. */
export function checkGateways(deps: Deps<"gateways">, call: Call, wanted: readonly string[]): void {
  checkMaySet(call, "gateways");
  checkGatewayNames(deps, wanted, "gateways");
}

/** Throws `invalid_request` for a gateway that the configuration does not name. */
export function checkGatewayNames(
  { gateways }: Deps<"gateways">,
  wanted: readonly string[],
  path: string,
): void {
  const unknown = wanted.findIndex((name) => !gateways.names.includes(name));
  if (unknown === -1) return;
  const known = gateways.names.join(", ") || "none";
  throw invalid(
    `${path}.${unknown}`,
    `no gateway is called ${JSON.stringify(wanted[unknown])}. Gateways of config.yaml: ${known}.`,
  );
}
