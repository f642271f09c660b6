import type { Hono } from "hono";
import type { Caller } from "../domain/call/scope.ts";

/** What the server knows about a request, beside the request itself. */
interface Connection {
  address: string;
  /** Called when it is known who sends the request. */
  onCaller?: (caller: Caller) => void;
}

/** The application. */
export type App = Hono<{ Bindings: Connection; Variables: { requestId: string } }>;
