import { z } from "zod";
import { buildDurationSchema } from "./value.ts";
import { hasConversation } from "../domain/chat/message.ts";
import { matchNoticeKinds, TO_WEBHOOK } from "../domain/system/notice.ts";

const NOTICE_RULES_MAX = 50;

const target = z.string().min(1).max(1_100).refine(
  (to) => /^[a-z][a-z0-9_-]*:./.test(to) && hasConversation(to),
  { error: `must be a session key such as local:<id>, or ${TO_WEBHOOK}<name>` },
);

export const noticesSchema = z.array(
  z.strictObject({
    on: z.array(
      z.string().refine((pattern) => matchNoticeKinds(pattern).length > 0, {
        error: 'must be a kind of notice such as schedule.paused or budget.*, or "*"',
      }),
    ).min(1).max(100),
    to: target.optional(),
    program: z.array(z.string()).min(1).max(100).refine(
      ([name = ""]) => name !== "" && (name.startsWith("/") || !name.includes("/")),
      { error: "must start with a program on PATH, or with its absolute path" },
    ).optional(),
    every: buildDurationSchema("10m"),
  }).refine(({ to, program }) => (to === undefined) !== (program === undefined), {
    error: "must have either `to` or `program`",
  }),
).max(NOTICE_RULES_MAX, { error: `must be at most ${NOTICE_RULES_MAX} rules` }).default([]);
