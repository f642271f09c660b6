import { z } from "zod";
import { id } from "./field.ts";

/** Answer of POST /hooks/:name; a challenge is answered where Slack asks whether the address is ours. */
export const hookReceivedSchema = z.union([
  z.strictObject({ status: z.literal("queued"), message_id: id }),
  z.strictObject({ challenge: z.string() }),
]).meta({ id: "HookReceived" });

export type HookReceived = z.output<typeof hookReceivedSchema>;
