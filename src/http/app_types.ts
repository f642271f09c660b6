import type { Context, Hono } from "hono";
import type { Caller } from "../domain/call/scope.ts";

interface Connection {
  address: string;
  /** Called after authentication. */
  onCaller?: (caller: Caller) => void;
}

interface AppEnv {
  Bindings: Connection;
  Variables: { requestId: string };
}

export type App = Hono<AppEnv>;
export type AppContext = Context<AppEnv>;
