import { z } from "zod";
import { content, CONTENT_MAX_BYTES, id, line } from "../call/field.ts";

/** A program's message to a hook without a template (contract 10.5). */
export const hookMessageSchema = z.strictObject({
  id: z.union([line(400), z.int()]).optional(),
  conversation: line(400).optional(),
  sender: line(400).optional(),
  text: content(CONTENT_MAX_BYTES),
}).meta({ id: "HookMessage", examples: [{ id: "42", conversation: "ops", text: "The disk is full" }] });

/** A message, or any JSON for a hook with a template. */
export const hookBodySchema = z.union([hookMessageSchema, z.looseObject({})]).meta({ id: "HookBody" });

/** A `challenge` is the response to Slack's check of the address. */
export const hookReceivedSchema = z.union([
  z.strictObject({ status: z.literal("queued"), message_id: id }),
  z.strictObject({ status: z.literal("ignored"), reason: z.string() }),
  z.strictObject({ challenge: z.string() }),
]).meta({ id: "HookReceived" });
export type HookAnswer = z.output<typeof hookReceivedSchema>;
