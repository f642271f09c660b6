import type { Hono } from "hono";

/** What the server knows of a request beside the request itself. */
interface Connection {
  address: string;
}

/** The application: Hono with what the server knows of a request. */
export type App = Hono<{ Bindings: Connection; Variables: { requestId: string } }>;
