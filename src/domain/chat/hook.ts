import { z } from "zod";
import { content, CONTENT_MAX_BYTES, id, line } from "../call/field.ts";

/** What a program says to a hook without a template (contract 10.5). */
export const hookMessageSchema = z.strictObject({
  id: z.union([line(400), z.int()]).optional(),
  conversation: line(400).optional(),
  sender: line(400).optional(),
  text: content(CONTENT_MAX_BYTES),
}).meta({ id: "HookMessage", examples: [{ id: "42", conversation: "ops", text: "The disk is full" }] });

/** Body of POST /hooks/:name: a message, or with a template any JSON. */
export const hookBodySchema = z.union([hookMessageSchema, z.looseObject({})]).meta({ id: "HookBody" });

/** Answer of POST /hooks/:name; a challenge is answered where Slack asks whether the address is ours. */
export const hookReceivedSchema = z.union([
  z.strictObject({ status: z.literal("queued"), message_id: id }),
  z.strictObject({ challenge: z.string() }),
]).meta({ id: "HookReceived" });

export type HookReceived = z.output<typeof hookReceivedSchema>;
