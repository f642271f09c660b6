import type { Hono } from "hono";

/** What the server knows about a request, beside the request itself. */
interface Connection {
  address: string;
}

/** The application. */
export type App = Hono<{ Bindings: Connection; Variables: { requestId: string } }>;
