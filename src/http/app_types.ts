import type { Hono } from "hono";
import type { Caller } from "../domain/call/scope.ts";

interface Connection {
  address: string;
  /** Called after authentication. */
  onCaller?: (caller: Caller) => void;
}

export type App = Hono<{ Bindings: Connection; Variables: { requestId: string } }>;
