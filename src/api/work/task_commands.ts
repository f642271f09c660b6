import type { Gate, Verify } from "../../domain/work/command.ts";
import { invalid, ServiceError } from "../../domain/call/error.ts";
import { mayCall } from "../../domain/call/scope.ts";
import type { Catalog } from "../../engine/catalog.ts";
import type { Call } from "../call/call.ts";

/** A change of commands and the engine that runs them. */
interface CommandChange {
  /** Null when the commands stay unchanged. */
  call: Call | null;
  engines: Catalog;
  /** The worker's engine, or "" for the default engine. */
  engine: string;
}

/**
 * Checks a change of commands. Throws `forbidden` for a caller without the scope (all runs), and `invalid_request` when
 * the engine has no setting for running commands (contract 13). `undefined` changes nothing, and null removes a command
 * with the same scope.
 */
export function checkCommands(
  { call, engines, engine }: CommandChange,
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
    throw invalid(name, `engine ${found.name} of kind command requires engines.${found.name}.shell`);
  }
}

/** Throws `forbidden` for a caller who cannot set or remove this command (contract 13). */
export function checkMaySet(
  { caller }: Call,
  name:
    | "gate"
    | "verify"
    | "gateways"
    | "isolation"
    | "fallback"
    | "repo"
    | "skills"
    | "runs_on"
    | "home"
    | "resources",
): void {
  if (mayCall(caller, "write:commands")) return;
  throw new ServiceError("forbidden", `Cannot set ${name}: this token lacks the scope write:commands`, {
    required_scope: "write:commands",
    errors: [{ path: name, message: "needs the scope write:commands" }],
  });
}

/** Throws `forbidden` for a run that delivers results outside its own conversation. */
export function checkDelivery({ caller }: Call, deliverTo: string | undefined): void {
  if (caller.run === null || deliverTo === undefined || deliverTo === "") return;
  if (deliverTo === caller.run.session_key) return;
  throw new ServiceError("forbidden", "Cannot set deliver_to: a run can name only its own conversation", {
    errors: [{ path: "deliver_to", message: "a run can name only its own conversation" }],
  });
}
