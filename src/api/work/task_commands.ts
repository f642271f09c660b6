import type { Gate, Verify } from "../../domain/work/command.ts";
import { invalid, ServiceError } from "../../domain/call/error.ts";
import { mayCall } from "../../domain/call/scope.ts";
import type { Catalog } from "../../engine/catalog.ts";
import type { Call } from "../call/call.ts";

/** Who sets commands, and by which engine they will be run. */
interface Setting {
  /** null: they stay as they are. */
  call: Call | null;
  engines: Catalog;
  /** Of the worker; "" is the default one. */
  engine: string;
}

/**
 * Throws `forbidden` for a caller who may not set commands, which is every run, and `invalid_request` where the engine of the
 * worker does not say how a command is run (contract 13). `undefined` is not set; null takes one away, which asks for the same.
 */
export function checkCommands(
  { call, engines, engine }: Setting,
  commands: { gate?: Gate | null | undefined; verify?: Verify | null | undefined },
): void {
  for (const name of ["gate", "verify"] as const) {
    const command = commands[name];
    if (command === undefined) continue;
    if (call !== null) checkMaySet(call, name);
    const found = engines.find(engine);
    if (command === null || found === null || found.kind !== "command" || found.config.shell !== undefined) {
      continue;
    }
    throw invalid(
      name,
      `the engine ${found.name} is of kind command and needs engines.${found.name}.shell for it`,
    );
  }
}

/** Throws `forbidden` for a caller who may not set this command, or take it away (contract 13). */
export function checkMaySet({ caller }: Call, name: "gate" | "verify"): void {
  if (mayCall(caller, "write:commands")) return;
  throw new ServiceError("forbidden", `Cannot set ${name}: this token lacks the scope write:commands`, {
    required_scope: "write:commands",
    errors: [{ path: name, message: "needs the scope write:commands" }],
  });
}

/** Throws `forbidden` for a run that would have results delivered elsewhere than to its own conversation (contract 15). */
export function checkDelivery({ caller }: Call, deliverTo: string | undefined): void {
  if (caller.run === null || deliverTo === undefined || deliverTo === "") return;
  if (deliverTo === caller.run.session_key) return;
  throw new ServiceError("forbidden", "Cannot set deliver_to: a run may name its own conversation only", {
    errors: [{ path: "deliver_to", message: "a run may name its own conversation only" }],
  });
}
